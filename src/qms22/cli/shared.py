"""Shared by all commands: options, error messages, checks of paths and packages."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from qms22._runtime.memory import memory_limit
from qms22._runtime.stages import clear_stage
from qms22._runtime.visible_text import one_line
from qms22.tables.databases.database_place import DatabasePlace, find_database, masked

_TABLES = (".csv", ".parquet", ".json", ".jsonl", ".xlsx")
_SUFFIXES = {
    **dict.fromkeys(("--output", "--good", "--bad"), _TABLES),
    "--normal-to-check": (".csv", ".parquet", ".xlsx"),
    "--report": (".html",),
    "--save-model": (".skops",),
    "--json": (".json",),
    "--junit": (".xml",),
    "--summary": (".md",),
}

FILE = click.Path(path_type=Path)
# The file from which standard input comes, if it is one.
REDIRECTED = Path("/dev/stdin")
_PRINTED = Path("/dev/stdout")
_NAMES = {REDIRECTED: "on standard input"}

# Parameters of the library that messages name, and the options of the command.
_PARAMETERS = (
    "k fdr missing max_samples n_jobs preset device ignore id by time marks history kinds "
    "memory_limit"
)
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _PARAMETERS.split()}
_OPTIONS |= {"k": "--top", "kinds": "--as"}
# How messages name them: k=5, missing="drop", (max_samples). Paths and quoted names stay.
_GIVEN = re.compile(
    rf"""(?<![\w'"=/\\.])({"|".join(_OPTIONS)})=(?:["'](\w+)["']|(\w[\w.]*\b))(?![\w/\\])"""
)
_NAMED = re.compile(r"""(?<![\w'"/\\.-])(fdr|max_samples|memory_limit|n_jobs)(?![\w'"=/\\]|\.\w)""")


class Parsed(click.ParamType):  # type: ignore[type-arg]  # old versions take none
    """What a function reads from a text; its ValueError is the message."""

    def __init__(self, name: str, parse: Callable[[Any], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a text."""
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_share(value: object) -> float:
    """Return 0.1 for 0.1 and for 10%."""
    text = str(value).strip()
    number = text.removesuffix("%").rstrip().replace(",", ".")
    share = float(number) if re.fullmatch(r"\d*\.?\d+|\d+\.", number) else 0.0
    if text.endswith("%"):
        share /= 100
    elif 1 < share < 100:
        raise ValueError(f"{value} is not a share between 0 and 1; did you mean {number}%?")
    if not 0 < share < 1:
        raise ValueError(f"{value!r} is not a share between 0 and 1; write 0.1 or 10%")
    return share


def parse_size(value: object) -> int:
    """Return 8000000000 for 8GB."""
    found = re.fullmatch(r"(\d+\.?\d*) ?([kmgt]?)(i?)b?", str(value).strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise ValueError(f"{value!r} is not a size; write 500MB or 8GB")
    power = ("", "k", "m", "g", "t").index(found[2].lower())
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def parse_rules(value: Any, known: Sequence[str]) -> tuple[str, ...]:
    """Return names of rules that a text separates by commas, each once."""
    texts = value.split(",") if isinstance(value, str) else value
    names = tuple(dict.fromkeys(str(text).strip() for text in texts))
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    return names


class RulesType(Parsed):
    """Names of some known rules."""

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__("rules", partial(parse_rules, known=known))
        self.known = known


def _place(value: Any, *, new: bool = False) -> str | Path | DatabasePlace:
    """Return a place in a database, the path of a new file, or the text of others as it is."""
    if isinstance(value, Path | DatabasePlace):
        return value
    try:
        return find_database(value, new=new) or (Path(value) if new else str(value))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


TABLE = Parsed("table", _place)
NEW_TABLE = Parsed("table", partial(_place, new=True))
SHARE = Parsed("share", parse_share)

id_option = click.option("--id", metavar="COLUMN", help="The column with the names of the rows.")
memory_limit_option = click.option(
    "--memory-limit",
    type=Parsed("size", parse_size),
    metavar="SIZE",
    expose_value=False,
    callback=lambda context, _, size: context.with_resource(memory_limit(size)),
    help="Let tables take about this much memory, such as 8GB: larger files are read in parts, and "
    "those that cannot be are refused. The default is half of what is free.",
)
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print no progress, no verdict and no list of columns."
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of the random numbers.",
)


@contextmanager
def explained() -> Iterator[list[str]]:
    """Report errors that users can fix in one sentence, with exit code 2; yield the warnings.

    They are notes, to be printed after the answer; before an error they are printed here.
    """
    notes: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: notes.append(str(message))
            yield notes
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print_notes(notes)
        words = str(error).splitlines() or [type(error).__name__]
        raise click.UsageError(in_options(words[0])) from error


def print_notes(notes: Iterable[str]) -> None:
    """Print notes to standard error."""
    for note in notes:
        say(f"note: {in_options(note)}")


def say(text: str) -> None:
    """Print a line to standard error; on a terminal it is broken between words."""
    clear_stage()
    line = one_line(masked(text))
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    click.echo(line, err=True)


def in_options(text: str) -> str:
    """Return a message of the library with options in the place of its parameters.

    >>> in_options('k=9 is more than the 5 rows there are; or set missing="drop"')
    '--top 9 is more than the 5 rows there are; or set --missing drop'
    >>> in_options("at most 1000 rows are drawn to learn from (max_samples)")
    'at most 1000 rows are drawn to learn from (--max-samples)'
    """
    text = _GIVEN.sub(lambda found: f"{_OPTIONS[found[1]]} {found[2] or found[3]}", text)
    return _NAMED.sub(lambda found: f"{_OPTIONS[found[1]]}", text)


def check_goes_with(option: str, value: object, other: str, other_value: object) -> None:
    """Raise UsageError if an option is given without the one that it needs."""
    if value and other_value is None:
        raise click.UsageError(f"{option} needs {other}; give both or neither")


def check_outputs(
    inputs: Iterable[Path | DatabasePlace | None],
    outputs: Mapping[str, Path | DatabasePlace | None],
    history: Path | None = None,
) -> None:
    """Raise UsageError if an output, by its option, cannot be written.

    Neither may it be one of the inputs, another output or the history.
    """
    for option, path in outputs.items():
        if isinstance(path, DatabasePlace):
            with explained():
                from qms22.tables.databases.database_source import check_new_table

                check_new_table(path)
        elif path is not None:
            _check_path(path, option)
    taken = [
        (path.expanduser(), "", f"would overwrite the input {_NAMES.get(path, path)}")
        for path in inputs
        if isinstance(path, Path)
    ]
    written: list[tuple[Path, str, str]] = []
    for option, place in {**outputs, "--history": history, "output to": _PRINTED}.items():
        # The tables of a database share its file; a new one may be in the database that is read.
        path, table = (place.path, place.what) if isinstance(place, DatabasePlace) else (place, "")
        if path is None:
            continue
        for other, other_table, trouble in written if table else taken + written:
            is_beside = table and other_table and table != other_table
            if not is_beside and _is_same_file(path, other):
                raise click.UsageError(f"{option} {path} {trouble}; name another file")
        written.append((path, table, f"is also the file of {option}"))


def _check_path(path: Path, option: str) -> None:
    """Raise UsageError if a file could not be written."""
    *others, last = _SUFFIXES[option]
    if path.suffix.lower() not in (*others, last):
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise click.UsageError(f"{option} {path} must end in {wanted}")
    # Of a link, the file that it names is written.
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise click.UsageError(
            f"{option} {path}: the directory {folder} does not exist; create it or name another"
        )
    if path.is_dir():
        raise click.UsageError(f"{option} {path} is a directory; name a file")


def _is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths name one file, also through links and other spellings."""
    try:
        one, other = _stat(first), _stat(second)
        return stat.S_ISREG(one.st_mode) and os.path.samestat(one, other)
    except (OSError, ValueError, AttributeError):  # not there, or no standard stream
        return os.path.realpath(first) == os.path.realpath(second)


def _stat(path: Path) -> os.stat_result:
    streams = {REDIRECTED: sys.stdin, _PRINTED: sys.stdout}
    return os.fstat(streams[path].fileno()) if path in streams else path.stat()
