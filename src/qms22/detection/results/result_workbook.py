"""Results in a workbook of Excel: rows with the cells to blame, and a sheet about the whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from qms22.detection.results.result_data import column_values, data_in_words, plain
from qms22.tables.databases.database_place import DatabasePlace
from qms22.tables.sources.stored_rows import ColumnLook

if TYPE_CHECKING:
    from qms22.detection.result import Detection
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
# What is added to the width of a column, in a file, for its margins: 5 pixels of 7 a character.
_PADDING = 5 / 7
_BLAMED = "#FFD9B3"
_COMMENT = {"x_scale": 2, "author": "qms22"}


class Remarks(NamedTuple):
    """What a workbook has beside its rows: cells to blame, and the lines of the second sheet.

    `blamed` has, by row and column of the sheet below its header, from 0, the reason if the cell is
    the first to blame, or else an empty text; `looks` how the workbook that was searched shows its
    columns, by name.
    """

    blamed: Mapping[tuple[int, int], str]
    overview: list[tuple[str, str]]
    looks: Mapping[str, ColumnLook]

    @classmethod
    def of(cls, found: Detection, data: Mapping[str, Any], table: pd.DataFrame) -> Remarks:
        """Return the remarks on the table of a result, whose data is that of `result_data`."""
        names = [name for name in found.source.names if name != found.id]
        columns = {name: at for at, name in enumerate(names, table.shape[1] - len(names))}
        blamed: dict[tuple[int, int], str] = {}
        for row in data["rows"]:
            for reason in row["reasons"]:
                for at, name in enumerate(reason["columns"]):
                    if name in columns:
                        place = row["rank"] - 1, columns[name]
                        text = reason["text"] if at == 0 else ""
                        blamed[place] = "\n".join(filter(None, [blamed.get(place, ""), text]))
        findings = [f"{len(each['rows']):,} rows: {each['name']}" for each in data["findings"]]
        lines = {"result of": [data["batch"]], **data_in_words(data)}
        lines |= {"finding": findings, "note": data["notes"]}
        overview = [(what, text) for what, texts in lines.items() for text in texts]
        return cls(blamed, overview, found.source.content.looks())


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


def write_workbook(
    tables: Iterable[pd.DataFrame], path: Path, remarks: Remarks | None = None
) -> None:
    """Write a workbook; texts stay texts, so that Excel runs no formula."""
    import xlsxwriter

    try:
        # Rows are written to disk one after the other.
        with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
            _fill_sheet(book, tables, remarks or Remarks({}, [], {}))
            if remarks is not None:
                _fill_overview(book, remarks.overview)
    except xlsxwriter.exceptions.XlsxFileError as error:
        raise OSError(str(error)) from error


def _add_formats(book: Any, number_format: str | int) -> list[list[Any]]:
    """Add the formats of usual cells, and of those to blame: of numbers, days and moments."""
    is_general = number_format == "General"
    days = ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss") if is_general else (number_format,) * 2
    return [
        [book.add_format({**color, "num_format": each}) for each in (number_format, *days)]
        for color in ({}, {"bg_color": _BLAMED})
    ]


def _fill_sheet(book: Any, tables: Iterable[pd.DataFrame], remarks: Remarks) -> None:
    bold = book.add_format({"bold": True})
    sheet = book.add_worksheet("rows")
    sheet.freeze_panes(1, 0)
    n_rows, n_columns = 0, 0
    formats: list[list[list[Any]]] = []
    for table in tables:
        _check_sheet_rows(n_rows + len(table))
        if not n_rows:
            if table.shape[1] > _MOST_SHEET_COLUMNS:
                raise ValueError(
                    f"an Excel sheet holds {_MOST_SHEET_COLUMNS:,} columns, and there are "
                    f"{table.shape[1]:,}; write a .csv or .parquet file"
                )
            looks = [remarks.looks.get(str(name), ColumnLook()) for name in table.columns]
            for at, (name, look) in enumerate(zip(table.columns, looks, strict=True)):
                sheet.write_string(0, at, str(name), bold)
                width = _column_width(table.iloc[:, at])
                sheet.set_column(at, at, width if look.width is None else look.width - _PADDING)
            used = {look.number_format for look in looks}
            of_columns = {each: _add_formats(book, each) for each in used}
            formats = [of_columns[look.number_format] for look in looks]
            n_columns = table.shape[1]
        columns = [column_values(table.iloc[:, at]) for at in range(table.shape[1])]
        for row in zip(*columns, strict=True):
            n_rows += 1
            for at, value in enumerate(row):
                reason = remarks.blamed.get((n_rows - 1, at))
                _write_cell(sheet, n_rows, at, value, formats[at][reason is not None])
                if reason:
                    sheet.write_comment(n_rows, at, reason[:_MOST_CHARACTERS], _COMMENT)
    if n_columns:
        sheet.autofilter(0, 0, n_rows, n_columns - 1)


def _fill_overview(book: Any, lines: list[tuple[str, str]]) -> None:
    bold, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True})
    sheet = book.add_worksheet("result")
    sheet.set_column(0, 0, 12)
    sheet.set_column(1, 1, _WIDEST_COLUMN)
    for at, (heading, text) in enumerate(lines):
        sheet.write_string(at, 0, heading, bold)
        sheet.write_string(at, 1, text[:_MOST_CHARACTERS], wrapped)


def _column_width(column: pd.Series) -> int:
    """Return the width, in characters, that shows the name and nearly all of the first cells."""
    name = len(str(column.name)) + _FILTER_BUTTON
    widths = sorted(_shown_width(value) for value in column_values(column.iloc[:_MOST_MEASURED]))
    usual = widths[int(0.95 * (len(widths) - 1))] if widths else 0
    return min(max(name, usual) + 1, _WIDEST_COLUMN)


def _shown_width(value: Any) -> int:
    """Return about how many characters a cell shows; Excel rounds numbers to its width."""
    if isinstance(value, datetime):
        return len("2024-12-31 00:00:00")
    return min(len(str(value)), 12) if isinstance(value, float) else len(str(value))


def _write_cell(sheet: Any, row: int, column: int, value: Any, formats: list[Any]) -> None:
    usual, day, moment = formats
    if type(value) is float and math.isfinite(value):  # most cells are such numbers
        sheet.write_number(row, column, value, usual)
        return
    # The missing date of pandas does not equal itself.
    found = value if isinstance(value, date) and value == value else plain(value)
    if found is None:
        sheet.write_blank(row, column, None, usual)
    elif isinstance(found, bool):
        sheet.write_boolean(row, column, found, usual)
    elif isinstance(found, int | float) and abs(found) <= _EXACT:
        sheet.write_number(row, column, found, usual)
    elif isinstance(found, date) and found.year >= _FIRST_YEAR:
        local = found.replace(tzinfo=None) if isinstance(found, datetime) else found
        has_time = isinstance(local, datetime) and local.time() != time()
        sheet.write_datetime(row, column, local, moment if has_time else day)
    else:
        sheet.write_string(row, column, str(found)[:_MOST_CHARACTERS], usual)
