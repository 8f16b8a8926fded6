"""What commands share: errors as sentences, and results on the terminal, in pipes and in files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pandas as pd

OUTPUT_SUFFIXES = (".csv", ".parquet", ".json")

# What a spreadsheet takes for the beginning of a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors that users can mend into one sentence and exit code 2; warnings into notes."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            yield
    except (ValueError, OSError, ImportError, MemoryError) as error:
        words = str(error).splitlines() or [type(error).__name__]
        raise click.UsageError(words[0]) from error


def _note(message: Warning | str, *_: object, **__: object) -> None:
    click.echo(f"note: {message}", err=True)


def require(option: str, extra: str, *packages: str) -> None:
    """Complain of packages that are not installed before the work, not after it."""
    for package in packages:
        if find_spec(package) is None:
            remedy = f"run pip install 'qms22[{extra}]'"
            raise click.UsageError(f"{option} needs {package}, which is not installed; {remedy}")


def check_output(path: Path | None, suffixes: tuple[str, ...], option: str) -> None:
    """Complain about a file that cannot be written before the work, not after it."""
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


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a result by the suffix of its file."""
    write_tables([table], path)


def write_tables(tables: Iterable[pd.DataFrame], path: Path) -> None:
    """Write the parts of a result, at least one and with columns alike, into one file."""
    from qms22._runtime.files import written_whole

    write = {".parquet": _write_parquet, ".json": _write_json}.get(path.suffix.lower(), _write_csv)
    with written_whole(path) as temporary:
        write(tables, temporary)


def _write_parquet(tables: Iterable[pd.DataFrame], path: Path) -> None:
    from qms22._runtime.packages import need

    pa = need("pyarrow")
    parts = (_with_unique_names(table) for table in tables)
    first = pa.Table.from_pandas(next(parts), preserve_index=False)
    with need("pyarrow.parquet").ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(pa.Table.from_pandas(part, first.schema, preserve_index=False))


def _write_json(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        before = "\n"
        for table in tables:
            plain = _with_unique_names(_with_plain_types(table))
            if records := plain.to_json(orient="records", indent=1)[1:-1].strip("\n"):
                file.write(before + records)
                before = ",\n"
        file.write("\n]")


def _write_csv(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for at, table in enumerate(tables):
            without_formulas(table).to_csv(file, index=False, header=at == 0)


def print_table(table: pd.DataFrame, title: str) -> None:
    """Print a table for people on a terminal, as CSV into a pipe."""
    if not sys.stdout.isatty():
        click.echo(without_formulas(table).to_csv(index=False), nl=False)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title=escape(title))
    for name, dtype in zip(table.columns, table.dtypes, strict=True):
        shown.add_column(escape(str(name)), justify="right" if dtype.kind in "if" else "left")
    for row in table.itertuples(index=False, name=None):
        cells = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        shown.add_row(*map(escape, cells))
    Console().print(shown)


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would run as formulas."""

    def harmless(value: object) -> object:
        if isinstance(value, str) and value.startswith(_FORMULA_STARTS) and not _is_number(value):
            return f"'{value}"
        return value

    safe = table.copy()
    for at, dtype in enumerate(table.dtypes):
        if dtype.kind not in "ifbM":
            safe.isetitem(at, table.iloc[:, at].map(harmless))
    return safe.set_axis([harmless(name) for name in table.columns], axis=1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_unique_names(table: pd.DataFrame) -> pd.DataFrame:
    """Rename a column of the batch that is called as one of ours: these formats bear no twins."""
    names: list[str] = []
    for name in map(str, table.columns):
        unique = name
        while unique in names:
            unique += "_"
        names.append(unique)
    return table.set_axis(names, axis=1)


def _with_plain_types(table: pd.DataFrame) -> pd.DataFrame:
    """Turn columns that keep the types of a file into pandas' own, which it can write as JSON."""
    import pandas as pd

    plain = table.copy(deep=False)
    for at, dtype in enumerate(table.dtypes):
        if isinstance(dtype, pd.ArrowDtype):
            plain.isetitem(at, table.iloc[:, at].array.__arrow_array__().to_pandas())
    return plain
