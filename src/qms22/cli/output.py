"""Results of commands on the terminal, in pipes and in files."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

    from qms22.detection import Detection

# Columns that moved; of a batch that is unlike the normal rows all may have moved.
_MOST_MOVED = 10

# Rows that a line of text names.
_MOST_NAMED = 10


def write_tables(tables: Iterable[pd.DataFrame], path: Path) -> None:
    """Write the parts of a table, at least one and all with the same columns, into one file."""
    from qms22._runtime.files import atomic_path

    write = {".parquet": _write_parquet, ".json": _write_json}.get(path.suffix.lower(), _write_csv)
    with atomic_path(path) as temporary:
        write(tables, temporary)


def _write_parquet(tables: Iterable[pd.DataFrame], path: Path) -> None:
    from qms22._runtime.packages import need

    pa = need("pyarrow")
    parts = iter(tables)
    first = pa.Table.from_pandas(next(parts), preserve_index=False)
    with need("pyarrow.parquet").ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(pa.Table.from_pandas(part, first.schema, preserve_index=False))


def _write_json(tables: Iterable[pd.DataFrame], path: Path) -> None:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        before = "\n"
        for table in tables:
            names = [str(name) for name in table.columns]
            columns = [_json_values(table.iloc[:, at]) for at in range(len(names))]
            for row in zip(*columns, strict=True):
                file.write(before + encode(dict(zip(names, row, strict=True))))
                before = ",\n"
        file.write("\n]\n")


def _write_csv(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for at, table in enumerate(tables):
            without_formulas(table).to_csv(file, index=False, header=at == 0)


def print_marks(found: Detection) -> None:
    """Print what was learned from marks, and that all the rest is about the other rows."""
    if found.marks is not None:
        others = f"; the other {found.n_scored} rows were searched" if found.n_marked else ""
        click.echo(f"{found.marks}{others}", err=True)


def print_verdict(found: Detection) -> None:
    """Print the verdict on the batch to standard error: a sentence, what moved, what to do."""
    from qms22.detection.verdict import unnamed_moves
    from qms22.report.text import visible

    verdict = found.verdict
    if verdict is None:
        return
    lines = [str(verdict)]
    moved = unnamed_moves(verdict)
    lines += [f"  moved: {column.name}: {column.change}" for column in moved[:_MOST_MOVED]]
    if n_more := len(moved[_MOST_MOVED:]):
        lines.append(f"  moved: {n_more} more")
    lines += [f"  advice: {advice}" for advice in verdict.advice]
    # Of flags by a false discovery rate in a drifted batch, `detect` has warned.
    if found.remark and not (found.fdr is not None and verdict.decision == "drift"):
        lines.append(found.remark)
    for line in lines:
        click.echo(visible(line), err=True)


def print_flagged(found: Detection) -> None:
    """Print the flagged rows: a table on a terminal, CSV in a pipe."""
    flagged = found.summary()
    title = f"{len(flagged)} of {found.n_scored} rows are flagged"
    if found.fdr is not None:
        title += f" at a false discovery rate of {found.fdr:g}"
    elif found.normal is not None:
        title = f"The {len(flagged)} most suspicious of {found.n_scored} rows"
    if sys.stdout.isatty():
        _print_table(flagged, title)
    else:
        click.echo(without_formulas(flagged).to_csv(index=False), nl=False)
    if found.contamination is not None:
        share = found.facts()["estimated share of outliers"]
        click.echo(f"estimated share of outliers: {share}", err=True)


def _print_table(table: pd.DataFrame, title: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from qms22.detection.result_text import summary_text

    shown = Table(title=escape(title))
    for name, dtype in zip(table.columns, table.dtypes, strict=True):
        shown.add_column(escape(str(name)), justify="right" if dtype.kind in "if" else "left")
    for row in table.itertuples(index=False, name=None):
        shown.add_row(*map(escape, map(summary_text, table.columns, row)))
    Console().print(shown)


def print_columns(found: Detection) -> None:
    """Print how each column of the tables was understood."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(stderr=True)
    shown = Table(title="Columns")
    for heading in ("column", "kind", "usual value", "note"):
        shown.add_column(heading)
    for row in found.encoder.describe():
        shown.add_row(*map(escape, row.values()))
    console.print(shown)
    if found.n_dropped:
        console.print(f"{found.n_dropped} unlabeled rows with missing values were dropped")


def print_notes(found: Detection) -> None:
    """Print what was guessed or left out to read the tables."""
    for note in found.notes:
        click.echo(f"note: {note}", err=True)


def print_suspicious_normal(found: Detection) -> None:
    """Print which known-normal rows look like anomalies, if some clearly do."""
    rows = found.suspicious_normal
    if rows is None or rows.empty:
        return
    named = ", ".join(map(str, rows.index[:_MOST_NAMED]))
    if len(rows) > _MOST_NAMED:
        named += f" and {len(rows) - _MOST_NAMED} more"
    click.echo(
        f"known-normal rows {named} (counted from 0) look like the anomalies found: look at them "
        "(--suspicious-normal), and mark those that are not normal",
        err=True,
    )


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Add an apostrophe before texts that a spreadsheet would run as formulas."""
    from qms22.tables.words import FORMULA_STARTS

    def harmless(value: object) -> object:
        if isinstance(value, str) and value.startswith(FORMULA_STARTS) and not _is_number(value):
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


def _json_values(column: pd.Series) -> list[Any]:
    """Return the values of a column as JSON has them.

    pandas would round numbers, and write dates as milliseconds.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.ArrowDtype):
        values = column.array.__arrow_array__().to_pylist()
    else:
        values = column.tolist()
    is_plain = column.dtype.kind in "iub" and not column.hasnans
    return values if is_plain else [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    """Return a value in JSON's types; None for missing and infinite ones, text for others."""
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return _plain(value.tolist())
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)


def print_written(paths: Iterable[Path | None], *, quiet: bool) -> None:
    """Print the files that were written to standard error."""
    for path in paths:
        if path is not None and not quiet:
            click.echo(f"written: {path}", err=True)
