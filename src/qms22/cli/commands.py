"""Shared by all commands: escape control characters, and survive a closed standard output."""

from __future__ import annotations

import codecs
import io
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from qms22._runtime.visible_text import one_line
from qms22.tables.databases.database_place import masked

# The exit code of click for what cannot be done.
_FAILED = 2


class Commands(click.Group):
    """Commands that end with one sentence if their result cannot be printed."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command on standard streams that take any text."""
        _accept_any_text()
        return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the options, and print the help if it is asked for."""
        with _failures_in_words():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _failures_in_words():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run a command as a program; a fault of this package is not exit code 1 of a policy."""
        try:
            return self.main(*args, **options)
        except Exception:
            traceback.print_exc()
            sys.exit(_FAILED)


@contextmanager
def _failures_in_words() -> Iterator[None]:
    """Report what cannot be printed; names in errors cannot control a terminal."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:  # the help has many lines
        raise
    except click.ClickException as error:
        vars(error)["message"] = one_line(masked(error.message))
        raise
    except OSError as error:
        if error.filename is not None:
            raise click.UsageError(
                f"{error.filename} cannot be opened ({error.strerror}); correct the path"
            ) from error
        # Python would try to write the rest at its end.
        with suppress(OSError):
            sys.stdout.close()
        raise click.UsageError(
            f"standard output cannot be written ({error.strerror or error}); free some space or "
            "write elsewhere"
        ) from error


def _accept_any_text() -> None:
    """Write codes for letters that standard output does not have, in place of an error.

    The C locale has only those of English: a pipe then gets UTF-8, as files do.
    """
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        is_ascii = codecs.lookup(stream.encoding).name == "ascii"
        encoding = "utf-8" if is_ascii and not stream.isatty() else stream.encoding
        stream.reconfigure(encoding=encoding, errors="backslashreplace")
