"""Workbooks of Excel and OpenDocument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, TypeVar

import numpy as np

from qms22._runtime.packages import need
from qms22._runtime.progress import reading_ended, report_reading
from qms22.tables.sources.compressed import TableFile, shorten_error
from qms22.tables.sources.csv_repair import is_footer
from qms22.tables.sources.header import find_header, unique_names
from qms22.tables.sources.source import EmptyTableError, WholeSource
from qms22.tables.sources.summary_rows import few_cells, is_sum, sums_note
from qms22.tables.sources.values import arrow_column, arrow_type, text_of, value_kinds
from qms22.tables.texts.words import list_some

# Excel keeps an encrypted workbook in a stream of this name.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
# Rows among which sums and remarks are looked for.
_MOST_FOOTER_ROWS = 20
# Rows in which the names of columns are looked for.
_SAMPLE = 80
# The estimated ratio of the sizes of the values and the file.
_RATIO = 8
# Workbooks with more values, in bytes, take seconds to read.
_SLOW = 1 << 24
# Whole numbers up to this size are exact in a workbook.
_EXACT = 2.0**53

Row = list[Any]
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class _Sheet:
    """The table of a sheet.

    Parameters
    ----------
    name : str
    table : pyarrow.Table
    numbers : list of int
        The number of each row in the sheet, from 1.
    notes : tuple of str
    """

    name: str
    table: Any
    numbers: list[int]
    notes: tuple[str, ...]


class ExcelSource(WholeSource):
    """A sheet of an .xlsx, .xlsm, .xlsb, .xls or .ods file.

    Parameters
    ----------
    file : TableFile
    sheet : str, optional
        By default the first that has at least two rows and columns; hidden ones come last.
    """

    def __init__(self, file: TableFile, sheet: str | None = None) -> None:
        super().__init__(file)
        self._wanted_sheet = sheet
        if sheet is not None:
            self.name += f"#{sheet}"

    @property
    def title(self) -> str:
        """The name of the file, and of the sheet if one is wanted."""
        sheet = self._wanted_sheet
        return super().title if sheet is None else f"{super().title}#{sheet}"

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values."""
        return _RATIO * self.file.n_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Which sheet was read if there are several, and what was left out of it."""
        return self._sheet.notes

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        return f"{self.name}, sheet {self._sheet.name!r}, row {self._sheet.numbers[row]}"

    @property
    def _table(self) -> Any:
        return self._sheet.table

    def every_sheet(self) -> list[ExcelSource]:
        """Return the sheets of the workbook that are not hidden."""
        visible, _ = self._in_workbook(_sheet_names)
        return [ExcelSource(self.file, name) for name in visible]

    @cached_property
    def _sheet(self) -> _Sheet:
        return self._in_workbook(self._read_sheet)

    def _in_workbook(self, read: Callable[[Any], _Read]) -> _Read:
        """Return what a function reads from the open workbook."""
        calamine = need("python_calamine", self.name)
        with self.file.open() as stream:
            content = stream.read()
        protected = (
            f"{self.file.path} is protected by a password; remove it in Excel and save the "
            "workbook again"
        )
        if _ENCRYPTED in content:
            raise ValueError(protected)
        if self.n_bytes > _SLOW:
            report_reading(self.title, 0, len(content), silent=0)
        try:
            with calamine.CalamineWorkbook.from_filelike(BytesIO(content)) as book:
                return read(book)
        except calamine.PasswordError as error:
            raise ValueError(protected) from error
        except calamine.CalamineError as error:
            raise ValueError(
                f"{self.file.path} cannot be read as a workbook ({shorten_error(error)}); the file "
                "looks damaged, get it again"
            ) from error
        finally:
            reading_ended()

    def _read_sheet(self, book: Any) -> _Sheet:
        """Read the wanted sheet, or the first with a table."""
        visible, hidden = _sheet_names(book)
        names = visible + hidden
        wanted = self._wanted_sheet
        if wanted is not None and wanted not in names:
            raise ValueError(
                f"{self.file.path} has no sheet {wanted!r}; its sheets are "
                f"{list_some([repr(name) for name in names])}"
            )
        for name in names if wanted is None else [wanted]:
            sheet = book.get_sheet_by_name(name)
            rows = sheet.to_python(skip_empty_area=True)
            # A sheet with one column among others has remarks.
            if sum(map(_is_filled, rows)) < 2 or (
                len(rows[0]) < 2 and len(names) > 1 and not wanted
            ):
                continue
            first_number = (sheet.start or (0, 0))[0] + 1
            found = _find_table(rows, first_number, name, str(self.file.path))
            others = [repr(other) for other in names if other != name]
            if wanted is None and others:
                note = f"{self.name}: the sheet {name!r} was read, not {list_some(others)}"
                found = _Sheet(name, found.table, found.numbers, (note, *found.notes))
            return found
        raise EmptyTableError(
            f"{self.name} has no sheet with a header and rows; give a workbook with a table"
        )


def _sheet_names(book: Any) -> tuple[list[str], list[str]]:
    """Return the names of visible and of hidden sheets."""
    hidden = [
        sheet.name for sheet in book.sheets_metadata if not str(sheet.visible).endswith("Visible")
    ]
    return [name for name in book.sheet_names if name not in hidden], hidden


def _find_table(rows: list[Row], first_number: int, sheet: str, path: str) -> _Sheet:
    """Return the table among the rows of a sheet, without what is around it."""
    filled = [(number, row) for number, row in enumerate(rows, first_number) if _is_filled(row)]
    numbers = [number for number, _ in filled]
    body = [row for _, row in filled]
    texts = [[text_of(cell) or "" for cell in row] for row in body[:_SAMPLE]]
    header, first = find_header(texts)
    notes = []
    if header:
        what = "1 row" if header == 1 else f"{header} rows"
        notes.append(f"{path}: {what} above the header of sheet {sheet!r} left out")
    if header is None:
        names = [f"x{at + 1}" for at in range(len(texts[0]))]
        notes.append(f"{path}: sheet {sheet!r} has no header; the columns are called x1, x2, …")
    else:
        names, more = unique_names(texts[header], path)
        notes += more
    last = _end_of_table(body, first)
    if last < len(body):
        words = next(text for text in map(text_of, body[last]) if text)
        what = "1 row" if last == len(body) - 1 else f"{len(body) - last} rows"
        notes.append(f"{path}: {what} below the table left out ({words[:40]!r})")
    sums = _sums_between(body[first:last])
    if sums:
        notes.append(sums_note(list(sums.values()), path))
    kept = [at for at in range(first, last) if at - first not in sums]
    columns = {}
    for at, name in enumerate(names):
        values = _whole_numbers([body[row][at] for row in kept])
        kinds = value_kinds(values)
        if not name and (not kinds or (at == 0 and values == list(range(len(values))))):
            continue  # an empty column, or the row numbers of pandas
        if not name:
            name = f"column {at + 1}"
            notes.append(f"{path}: a column without a name is called {name!r}")
        columns[name] = arrow_column(values, arrow_type(kinds))
    numbers = [numbers[at] for at in kept]
    return _Sheet(sheet, need("pyarrow", path).table(columns), numbers, tuple(notes))


def _sums_between(rows: list[Row]) -> dict[int, str]:
    """Return the rows with sums of others, and their labels."""
    if not rows:
        return {}
    filled = np.array([sum(cell != "" for cell in row) for row in rows])
    found = {}
    for at in few_cells(filled) if len(rows[0]) > 2 else []:
        texts = [text_of(cell) or "" for cell in rows[at]]
        if is_sum(texts):
            found[int(at)] = next(text for text in texts if text)
    others = {cell for at, row in enumerate(rows) if found and at not in found for cell in row}
    return {at: label for at, label in found.items() if label not in others}


def _end_of_table(rows: list[Row], first: int) -> int:
    """Return where sums and remarks begin at the end of a sheet."""
    start = max(first + 1, len(rows) - _MOST_FOOTER_ROWS)
    texts = [[text_of(cell) or "" for cell in row] for row in rows[start:]]
    last = len(rows)
    while last > start and is_footer(
        _without_empty_end(texts[last - 1 - start]), texts[: last - 1 - start], len(rows[0])
    ):
        last -= 1
    return last


def _without_empty_end(row: list[str]) -> list[str]:
    while row and not row[-1]:
        row = row[:-1]
    return row


def _is_filled(row: Row) -> bool:
    """Return whether a row has a cell that is not empty."""
    return any(type(cell) is not str or cell.strip() for cell in row)


def _whole_numbers(values: Sequence[Any]) -> list[Any]:
    """Return whole numbers as such if no number is a fraction; Excel has only floats."""
    floats = [value for value in values if type(value) is float]
    if all(value.is_integer() and abs(value) <= _EXACT for value in floats):
        return [int(value) if type(value) is float else value for value in values]
    return list(values)
