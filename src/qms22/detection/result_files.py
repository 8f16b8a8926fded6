"""Results in files (CSV, Parquet, JSON, JSON Lines, Excel) and databases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qms22.detection.csv_text import csv_lines
from qms22.tables.databases.database_place import DatabasePlace

if TYPE_CHECKING:
    import pandas as pd

    from qms22.tables import Table

# Rows below the header, columns and characters of a cell that a sheet of Excel can have.
MOST_SHEET_ROWS = (1 << 20) - 1
_MOST_SHEET_COLUMNS = 1 << 14
_MOST_CHARACTERS = (1 << 15) - 1
# Whole numbers up to this size are exact in Excel, and its dates begin with this year.
_EXACT = 1 << 53
_FIRST_YEAR = 1900
# Cells of a column whose length is looked at, the widest column in characters (a line of text), and
# the width of the button with which a column is filtered.
_MOST_MEASURED = 1000
_WIDEST_COLUMN = 80
_FILTER_BUTTON = 3


def write_tables(tables: Iterable[pd.DataFrame], path: Path | DatabasePlace) -> None:
    """Write the parts of a table, at least one and all with the same columns, into one table."""
    from qms22._runtime.files import atomic_path

    if isinstance(path, DatabasePlace):
        from qms22.tables.databases.database_source import write_database

        return write_database(path, tables)
    writers = {
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".json": _write_json,
        ".jsonl": _write_json_lines,
        ".xlsx": _write_excel,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise ValueError(f"{path} must end in {', '.join(list(writers)[:-1])} or .xlsx")
    with atomic_path(path) as temporary:
        write(tables, temporary)


def check_sheet_size(path: Path | DatabasePlace | None, source: Table) -> None:
    """Raise ValueError if a file is a workbook and cannot hold the rows of a table."""
    # To count the rows of a text file takes time.
    if isinstance(path, Path) and path.suffix.lower() == ".xlsx":
        _check_sheet_rows(source.n_rows)


def _check_sheet_rows(n_rows: int) -> None:
    if n_rows > MOST_SHEET_ROWS:
        raise ValueError(
            f"an Excel sheet holds {MOST_SHEET_ROWS:,} rows below its header, not {n_rows:,}; "
            "write a .csv or .parquet file, or only the flagged rows"
        )


def _write_parquet(tables: Iterable[pd.DataFrame], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = iter(tables)
    first = pa.Table.from_pandas(next(parts), preserve_index=False)
    # pyarrow opens only files whose names are UTF-8.
    with (
        path.open("wb") as file,
        pq.ParquetWriter(file, first.schema) as writer,
    ):
        writer.write_table(first)
        for part in parts:
            writer.write_table(pa.Table.from_pandas(part, first.schema, preserve_index=False))


def _write_json(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        before = "\n"
        for record in _json_records(tables):
            file.write(before + record)
            before = ",\n"
        file.write("\n]\n")


def _write_json_lines(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(record + "\n" for record in _json_records(tables))


def _json_records(tables: Iterable[pd.DataFrame]) -> Iterator[str]:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for table in tables:
        names = [str(name) for name in table.columns]
        columns = [_json_values(table.iloc[:, at]) for at in range(len(names))]
        for row in zip(*columns, strict=True):
            yield encode(dict(zip(names, row, strict=True)))


def _write_csv(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for at, table in enumerate(tables):
            file.writelines(csv_lines(table, header=at == 0))


def _write_excel(tables: Iterable[pd.DataFrame], path: Path) -> None:
    """Write a workbook with one sheet; texts stay texts, so that Excel runs no formula."""
    import xlsxwriter

    try:
        # Rows are written to disk one after the other.
        with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
            _fill_sheet(book, tables)
    except xlsxwriter.exceptions.XlsxFileError as error:
        raise OSError(str(error)) from error


def _fill_sheet(book: Any, tables: Iterable[pd.DataFrame]) -> None:
    bold = book.add_format({"bold": True})
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    sheet = book.add_worksheet("rows")
    sheet.freeze_panes(1, 0)
    n_rows, n_columns = 0, 0
    for table in tables:
        _check_sheet_rows(n_rows + len(table))
        if not n_rows:
            if table.shape[1] > _MOST_SHEET_COLUMNS:
                raise ValueError(
                    f"an Excel sheet holds {_MOST_SHEET_COLUMNS:,} columns, and there are "
                    f"{table.shape[1]:,}; write a .csv or .parquet file"
                )
            for at, name in enumerate(table.columns):
                sheet.write_string(0, at, str(name), bold)
                sheet.set_column(at, at, _column_width(table.iloc[:, at]))
            n_columns = table.shape[1]
        columns = [_values(table.iloc[:, at]) for at in range(table.shape[1])]
        for row in zip(*columns, strict=True):
            n_rows += 1
            for at, value in enumerate(row):
                _write_cell(sheet, n_rows, at, value, day, moment)
    if n_columns:
        sheet.autofilter(0, 0, n_rows, n_columns - 1)


def _column_width(column: pd.Series) -> int:
    """Return the width, in characters, that shows the name and nearly all of the first cells."""
    name = len(str(column.name)) + _FILTER_BUTTON
    widths = sorted(_shown_width(value) for value in _values(column.iloc[:_MOST_MEASURED]))
    usual = widths[int(0.95 * (len(widths) - 1))] if widths else 0
    return min(max(name, usual) + 1, _WIDEST_COLUMN)


def _shown_width(value: Any) -> int:
    """Return about how many characters a cell shows; Excel rounds numbers to its width."""
    if isinstance(value, datetime):
        return len("2024-12-31 00:00:00")
    return min(len(str(value)), 12) if isinstance(value, float) else len(str(value))


def _write_cell(sheet: Any, row: int, column: int, value: Any, day: Any, moment: Any) -> None:
    if type(value) is float and math.isfinite(value):  # most cells are such numbers
        sheet.write_number(row, column, value)
        return
    # The missing date of pandas does not equal itself.
    plain = value if isinstance(value, date) and value == value else _plain(value)
    if plain is None:
        return
    if isinstance(plain, bool):
        sheet.write_boolean(row, column, plain)
    elif isinstance(plain, int | float) and abs(plain) <= _EXACT:
        sheet.write_number(row, column, plain)
    elif isinstance(plain, date) and plain.year >= _FIRST_YEAR:
        local = plain.replace(tzinfo=None) if isinstance(plain, datetime) else plain
        has_time = isinstance(local, datetime) and local.time() != time()
        sheet.write_datetime(row, column, local, moment if has_time else day)
    else:
        sheet.write_string(row, column, str(plain)[:_MOST_CHARACTERS])


def _json_values(column: pd.Series) -> list[Any]:
    """Return the values of a column as JSON has them.

    pandas would round numbers, and write dates as milliseconds.
    """
    values = _values(column)
    is_plain = column.dtype.kind in "iub" and not column.hasnans
    return values if is_plain else [_plain(value) for value in values]


def _values(column: pd.Series) -> list[Any]:
    """Return the values of a column as Python has them."""
    import pandas as pd

    if isinstance(column.dtype, pd.ArrowDtype):
        values: list[Any] = column.array.__arrow_array__().to_pylist()
    else:
        values = column.tolist()
    return values


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
