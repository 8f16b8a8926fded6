"""Shared by all commands: options, error messages, checks of paths and packages."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

_SUFFIXES = {
    "--output": (".csv", ".parquet", ".json", ".jsonl", ".xlsx"),
    "--suspicious-normal": (".csv", ".parquet", ".xlsx"),
    "--report": (".html",),
    "--save-model": (".skops",),
}

FILE = click.Path(path_type=Path)

id_option = click.option("--id", metavar="COLUMN", help="The column that names the rows.")
output_option = click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write all rows with score, rank, flag and reasons to a .csv, .xlsx, .parquet, .json or "
    ".jsonl file. The most suspicious rows come first; if files are read part by part, rows are in "
    "the order of the file.",
)
only_flagged_option = click.option(
    "--only-flagged", is_flag=True, help="With --output: write only the flagged rows."
)
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="No progress bar, no table of columns and no verdict."
)


@contextmanager
def explained() -> Iterator[None]:
    """Report errors that users can fix in one sentence, with exit code 2, and warnings as notes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            yield
    except (ValueError, OSError, ImportError, MemoryError) as error:
        words = str(error).splitlines() or [type(error).__name__]
        raise click.UsageError(words[0]) from error


def _note(message: Warning | str, *_: object, **__: object) -> None:
    click.echo(f"note: {message}", err=True)


def require(option: str, extra: str, *packages: str) -> None:
    """Raise UsageError if a package is not installed."""
    for package in packages:
        if find_spec(package) is None:
            remedy = f"run pip install 'qms22[{extra}]'"
            raise click.UsageError(f"{option} needs {package}, which is not installed; {remedy}")


def check_goes_with(option: str, value: object, other: str, other_value: object) -> None:
    """Raise UsageError if an option is given without the one that it needs."""
    if value and other_value is None:
        raise click.UsageError(f"{option} goes with {other}; give both or neither")


def check_output(path: Path | None, suffixes: tuple[str, ...], option: str) -> None:
    """Raise UsageError if an output file could not be written."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise click.UsageError(f"{option} {path} must end in {wanted}")
    if not path.parent.is_dir():
        raise click.UsageError(f"{option} {path}: there is no directory {path.parent}")
    if path.is_dir():
        raise click.UsageError(f"{option} {path} is a directory; name a file")


def check_overwriting(inputs: Iterable[Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise UsageError if an output is one of the inputs or another output.

    Parameters
    ----------
    inputs : iterable of Path or None
    outputs : mapping of str to Path or None
        Paths by option.
    """
    read = [path.expanduser() for path in inputs if path is not None]
    written: dict[str, Path] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        for other in read:
            if _is_same_file(path, other):
                raise click.UsageError(
                    f"{option} {path} is the input {other}, which would be lost; name another file"
                )
        for other_option, other in written.items():
            if _is_same_file(path, other):
                raise click.UsageError(
                    f"{option} {path} is the file of {other_option} as well; name another file"
                )
        written[option] = path


def check_table_outputs(inputs: list[Path | None], outputs: dict[str, Path | None]) -> None:
    """Raise UsageError if outputs cannot be written or would overwrite inputs."""
    for option, path in outputs.items():
        check_output(path, _SUFFIXES[option], option)
    check_overwriting(inputs, outputs)
    require("reading tables", "table", "pandas", "pyarrow", "narwhals")
    if outputs.get("--report") is not None:
        require("--report", "report", "jinja2")
    if outputs.get("--save-model") is not None:
        require("--save-model", "model", "skops")


def _is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths name one file, also through links and other spellings."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()
