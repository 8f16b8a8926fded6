"""Workbooks of Excel and OpenDocument."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import python_calamine as calamine

from qms22._runtime.memory import memory_allowed
from qms22._runtime.stages import reading_ended, report_reading
from qms22.tables.columns.python_values import arrow_column, column_type, text_of, value_types
from qms22.tables.sources.column_types import is_text
from qms22.tables.sources.compressed import DAMAGED, ZIP_START, TableFile, fault
from qms22.tables.sources.csv_repair import LEAST_COLUMNS, MOST_FOOTER, SUMS, end_of_rows, find_sums
from qms22.tables.sources.header import find_header, joined_names, left_out, unique_names
from qms22.tables.sources.storage_types import StorageType
from qms22.tables.sources.stored_rows import Content, EmptyTableError, MemoryRows
from qms22.tables.sources.workbook_looks import column_looks
from qms22.tables.sources.workbook_size import check_book
from qms22.tables.texts.words import NA, list_quoted, list_some

# Excel keeps an encrypted workbook in a stream of this name.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
# Rows in which the names of columns are looked for.
_SAMPLE = 80
# The estimated ratio of the sizes of the values and the file.
_RATIO = 8
# Workbooks with more values, in bytes, take seconds to read.
_SLOW = 1 << 24
# Whole numbers up to this size are exact in a workbook.
_EXACT = 2.0**53

# Opens an old workbook: its sheets take the room that a few bytes claim, and without it Rust ends
# the process.
_TRIAL = """
import contextlib, io, sys
with contextlib.suppress(ImportError, ValueError):
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
with contextlib.suppress(BaseException):
    import python_calamine
    python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read()))
"""

# Address space of Python with its reader, and more.
_OF_PROGRAM = 1 << 28

Row = Sequence[object]


def visible_sheets(file: TableFile) -> list[str]:
    """Return the names of the sheets of a workbook that are not hidden."""
    with _opened(file) as book:
        return _sheet_names(book)[0]


def read_sheet(file: TableFile, wanted: str | None = None) -> Content:
    """Read a sheet of an .xlsx, .xlsm, .xlsb, .xls or .ods file.

    By default it is the first that has at least two rows and columns; hidden ones come last.
    """
    path = str(file.path)
    called = path if wanted is None else f"{path}#{wanted}"
    with _opened(file) as book:
        names = [*chain(*_sheet_names(book))]
        if wanted is not None and wanted not in names:
            raise ValueError(f"{path} has no sheet {wanted!r}; its sheets are {list_quoted(names)}")
        for name in names if wanted is None else [wanted]:
            sheet = book.get_sheet_by_name(name)
            rows = sheet.to_python(skip_empty_area=True)
            # A sheet with one column among others has remarks.
            if sum(map(_is_filled, rows)) < 2 or (
                len(rows[0]) < 2 and len(names) > 1 and not wanted
            ):
                continue
            found = _find_table(rows, sheet.start or (0, 0), file, name, called)
            others = [repr(other) for other in names if other != name]
            note = f"{path}: the sheet {name!r} was read, not {list_some(others)}"
            is_chosen = wanted is None and bool(others)
            return replace(found, notes=(note, *found.notes)) if is_chosen else found
    raise no_sheet(called)


def no_sheet(name: str) -> EmptyTableError:
    """Return the error for a workbook without tables."""
    what = f"{name} has no sheet with a header and rows"
    return EmptyTableError(f"{what}; give a workbook with a table")


@contextmanager
def _opened(file: TableFile) -> Iterator[calamine.CalamineWorkbook]:
    """Open a workbook; raise ValueError if it is protected or damaged."""
    with file.open() as stream:
        content = stream.read()
    protected = (
        f"{file.path} is protected by a password; remove it in Excel and save the workbook again"
    )
    if _ENCRYPTED in content:
        raise ValueError(protected)
    if _RATIO * file.n_bytes > _SLOW:
        report_reading(file.path.name, 0, len(content), silent=0)
    check_book(content, file.path)
    if not content.startswith(ZIP_START):
        _try_to_open(content, file.path)
    try:
        with calamine.CalamineWorkbook.from_filelike(BytesIO(content)) as book:
            yield book
    except calamine.PasswordError as error:
        raise ValueError(protected) from error
    except calamine.CalamineError as error:
        raise fault(f"{file.path} cannot be read as a workbook", error, DAMAGED) from error
    finally:
        reading_ended()


def _try_to_open(content: bytes, path: Path) -> None:
    """Raise ValueError if a process that opens a workbook ends, or takes too much memory."""
    limit = (memory_allowed() or 1 << 60) + _OF_PROGRAM
    trial = [sys.executable, "-c", _TRIAL, str(limit)]
    if subprocess.run(trial, input=content, capture_output=True).returncode:
        raise ValueError(
            f"{path} cannot be read as a workbook without taking more memory than it may; the file "
            "looks damaged, get it again, or raise the limit (memory_limit)"
        )


def _sheet_names(book: calamine.CalamineWorkbook) -> tuple[list[str], list[str]]:
    """Return the names of visible and of hidden sheets."""
    sheets = book.sheets_metadata
    hidden = [sheet.name for sheet in sheets if not str(sheet.visible).endswith("Visible")]
    return [name for name in book.sheet_names if name not in hidden], hidden


def _find_table(
    rows: Sequence[Row], start: tuple[int, int], file: TableFile, sheet: str, called: str
) -> Content:
    """Return the table among the rows of a sheet, without what is around it.

    The first of the rows and of their columns have the numbers `start`, from 0 on.
    """
    path = str(file.path)
    filled = [at for at, row in enumerate(rows) if _is_filled(row)]
    body = [rows[at] for at in filled]
    texts = [_texts(row) for row in body[:_SAMPLE]]
    header, first = find_header(texts)
    notes = []
    joined = joined_names(texts[header], texts[header - 1]) if header else None
    if n_above := (header or 0) - (joined is not None):
        notes.append(left_out(path, n_above, "row", f"above the header of sheet {sheet!r}"))
    if header is None:
        names = [f"x{at + 1}" for at in range(len(texts[0]))]
        notes.append(f"{path}: sheet {sheet!r} has no header; the columns are called x1, x2, …")
    else:
        names, more = unique_names(joined or texts[header], path)
        notes += more
    last = _end_of_table(body, first)
    if last < len(body):
        words = next(text for text in map(text_of, body[last]) if text)
        notes.append(left_out(path, len(body) - last, "row", "below the table", words))
    sums = _sums_between(body[first:last])
    if sums:
        notes.append(left_out(path, len(sums), "row", SUMS, next(iter(sums.values()))))
    kept = [at for at in range(first, last) if at - first not in sums]
    columns, places, with_na = {}, dict[str, int](), dict[str, StorageType]()
    for at, name in enumerate(names):
        values = _whole_numbers([body[row][at] for row in kept])
        types = value_types(values)
        if not name and (not types or (at == 0 and values == list(range(len(values))))):
            continue  # an empty column, or the row numbers of pandas
        if not name:
            name = f"column {at + 1}"
            notes.append(f"{path}: a column without a name is called {name!r}")
        columns[name], places[name] = arrow_column(values, column_type(types)), start[1] + 1 + at
        if NA in values and is_text(columns[name].type):
            # The text of the sheet; it is left out unless texts are asked for.
            columns[name] = pc.if_else([value == NA for value in values], NA, columns[name])
            with_na[name] = "code"
    numbers = [start[0] + 1 + filled[at] for at in kept]

    def place(row: int) -> str:
        return f"{called}, sheet {sheet!r}, row {numbers[row]}"

    table = MemoryRows(pa.table(columns), with_na)
    looks = partial(column_looks, file, sheet, min(numbers, default=start[0] + 1), places)
    codes = frozenset(with_na)
    return Content(table, tuple(notes), place=place, with_na=codes, looks=looks)


def _sums_between(rows: Sequence[Row]) -> dict[int, str]:
    """Return the rows with sums of others, and their labels."""
    if not rows or len(rows[0]) < LEAST_COLUMNS:
        return {}
    filled = np.array([sum(cell != "" for cell in row) for row in rows])
    found = find_sums(filled, lambda at: _texts(rows[at]))
    others = {cell for at, row in enumerate(rows) if found and at not in found for cell in row}
    return {at: label for at, (_, label) in found.items() if label not in others}


def _end_of_table(rows: Sequence[Row], first: int) -> int:
    """Return where sums and remarks begin at the end of a sheet."""
    start = max(first + 1, len(rows) - MOST_FOOTER)
    texts = [_texts(row) for row in rows[start:]]
    for row in texts:
        while row and not row[-1]:
            row.pop()
    return start + end_of_rows(texts, len(rows[0]))


def _texts(row: Row) -> list[str]:
    return [text_of(cell) or "" for cell in row]


def _is_filled(row: Row) -> bool:
    return any(type(cell) is not str or cell.strip() for cell in row)


def _whole_numbers(values: Sequence[object]) -> list[object]:
    """Return whole numbers as such if no number is a fraction; Excel has only floats."""
    floats = [value for value in values if type(value) is float]
    if all(value.is_integer() and abs(value) <= _EXACT for value in floats):
        return [int(value) if type(value) is float else value for value in values]
    return list(values)
