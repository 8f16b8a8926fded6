"""The format of a table file, and the source that reads it."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from qms22._runtime.warn import warn_user
from qms22.tables.databases.database_place import DatabasePlace, find_database
from qms22.tables.databases.database_source import read_query
from qms22.tables.sources.compressed import ZIP_START, TableFile, archived_tables, is_workbook
from qms22.tables.sources.csv_file import read_csv
from qms22.tables.sources.file_rows import ArrowRows, ParquetRows
from qms22.tables.sources.found_files import FORMATS, JSON_LINES, find_files, split_suffix
from qms22.tables.sources.frame_table import FrameTable
from qms22.tables.sources.json_file import read_json, read_json_lines
from qms22.tables.sources.keel_file import read_keel
from qms22.tables.sources.parts import join_tables
from qms22.tables.sources.stored_rows import Content, EmptyTableError
from qms22.tables.sources.table import Table
from qms22.tables.sources.text_encoding import SAMPLE, looks_binary
from qms22.tables.sources.workbook import no_sheet, read_sheet, visible_sheets
from qms22.tables.texts.words import list_some

# book.xlsx#* is all sheets of a workbook.
EVERY_SHEET = "*"
_KEEL_START = re.compile(rb"(\xef\xbb\xbf)?(\s|%[^\n\r]*[\n\r])*@\w")
_JSON_START = re.compile(rb'(\xef\xbb\xbf)?\s*(\{\s*"|\[\s*\{)')
_OLD_EXCEL_START = b"\xd0\xcf\x11\xe0"
# A stream of Arrow batches starts with a marker and the length of its schema.
_ARROW_STARTS = (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")


def open_table(table: str | Path | Table | Any, *, name: str = "the frame") -> Table:
    r"""Open a table to read it whole or in parts.

    Parameters
    ----------
    table : str, Path, list of these, data frame or Table
        A file of any format that `read_table` reads; a directory, whose files in all directories
        below are parts of one table, and directories called ``month=3`` give a column; a pattern
        such as ``"data/2024-*.csv"``; ``"-"`` for standard input; a list of all these, whose rows
        follow each other; a table or query of a database, ``"shop.db#orders"`` for a file of SQLite
        or DuckDB, ``"postgresql://user@host/shop#SELECT ..."`` for a server; a pandas or polars
        frame or another one that narwhals supports; or a `Table`, which is returned unchanged.

        Parts may have their columns in another order. A column that a part lacks is missing there.
        Workbooks, JSON documents, ARFF and KEEL files, compressed Parquet and Arrow files, and
        pipes are read into memory as a whole; a pipe at once.
    name : str
        What messages call a data frame.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        As in `read_table`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from qms22.tables import open_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "squares.csv")
    ...     _ = path.write_text("x,y\n1,1\n2,4\n3,9\n")
    ...     table = open_table(path)
    ...     table.n_rows, table.take([0, 2])["y"].tolist()
    (3, [1, 9])
    """
    if isinstance(table, Table):
        return table
    if (place := find_database(table)) is not None:
        # The rows go part by part into a temporary file: every pass reads the same ones, whatever
        # others write meanwhile, and they may be more than fit into memory.
        rows = read_query(place)
        return Table(place.name, lambda: Content(rows), place.short_name or place.database)
    places = (str, os.PathLike, Table, DatabasePlace)
    if isinstance(table, list | tuple) and all(isinstance(each, places) for each in table):
        return _join([open_table(each) for each in table])
    if not isinstance(table, str | os.PathLike):
        return FrameTable(table, name)
    if str(table) == "-":
        return _open_file(TableFile.standard_input())
    found = find_files(table)
    parts = [_open_file(TableFile(path), found.inner) for path in found.paths]
    whole = parts[0]
    if len(parts) > 1 or found.keys[0]:
        whole = join_tables(parts, str(table), found.keys, _left_out(table, found.left_out))
    whole.files = found.paths
    return whole


def read_table(path: str | Path | list[str | Path]) -> pd.DataFrame:
    r"""Read a table from a file.

    The format is given by the file's suffix or, if that is unknown, by its content. Any file may be
    compressed by gzip, bzip2, xz or zstandard, or be in a zip archive; the tables of an archive are
    parts of one table.

    The cells of a text file may be separated by commas, semicolons, tabs, bars or blanks, and be
    quoted; numbers may have decimal commas if commas do not separate. It may be UTF-8, UTF-16 or
    Windows-1252 (Latin-1). Columns of numbers become numbers, unless one starts with a needless
    zero as codes do; columns of true and false become booleans; all others, dates too, stay texts.
    Empty cells, ``?`` and words such as ``NA`` and ``null`` are missing.

    What is not a table in a text file is left out: titles above the names, the names where they
    occur again, sums and remarks below. Rows with too few cells get missing ones at the end; if a
    row has too many, a separator belongs to a cell. Columns with the name of another one get a
    number, those without a name are called "column 3", and "x1", "x2", … where no column has one; a
    first one without a name that holds whole numbers is left out. A warning says so each time; it
    is also in ``open_table(path).notes``.

    Of a workbook the first sheet with a table is read, or the one that is named as in
    ``book.xlsx#Sheet2``, or all that are not hidden as in ``book.xlsx#*``; in the same way,
    ``archive.zip#name.csv`` is one file of an archive. Titles above the header and empty rows are
    skipped. A JSON file has one object per row, either in a list, which may be inside of an object,
    or on a line of its own; objects inside of them become columns such as ``a.b``.

    Parameters
    ----------
    path : str, Path or list of these
        A .csv, .tsv, .xlsx, .xls, .xlsb, .ods, .parquet, .arrow, .feather, .json, .jsonl, .arff or
        KEEL .dat file, or any other table that `open_table` opens.

    Returns
    -------
    pandas.DataFrame
        At least one row, its index counting from 0.

    Raises
    ------
    ValueError
        If there is no such file, or it holds no table; the message is one sentence that names it.
    ImportError
        If pandas or pyarrow is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from qms22.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("name;height\nAnn;1,7\nBob;1,8\n")
    ...     frame = read_table(path)
    >>> frame["height"].tolist()
    [1.7, 1.8]
    """
    table = open_table(path)
    frame = table.read()
    for note in table.notes:
        warn_user(note)
    return frame


def _join(tables: list[Table]) -> Table:
    if not tables:
        raise ValueError("a list of tables is empty; give at least one table")
    if len(tables) == 1:
        return tables[0]
    if any(isinstance(table, FrameTable) for table in tables):
        raise ValueError("a list of tables cannot hold data frames; join them with pandas.concat")
    joined = join_tables(tables)
    if all(table.files for table in tables):
        joined.files = tuple(path for table in tables for path in table.files)
    return joined


def _open_file(file: TableFile, inner: str | None = None) -> Table:
    """Open a file; `inner` is the sheet of a workbook, or the file in an archive, to read."""
    with file.open() as stream:
        head = stream.read(SAMPLE)
    if len(head) < SAMPLE and not head.strip(b" \t\r\n\xef\xbb\xbf"):
        raise EmptyTableError(f"{file.path} is empty; give a file with a header and rows")
    if file.is_compressed and head.startswith((ZIP_START, _OLD_EXCEL_START)):
        file.load()
    if head.startswith(_OLD_EXCEL_START) or (head.startswith(ZIP_START) and is_workbook(file)):
        return _open_every_sheet(file) if inner == EVERY_SHEET else _open_sheet(file, inner)
    if head.startswith(ZIP_START):
        members, left_out = archived_tables(file, inner)
        parts, notes = [_open_file(member) for member in members], _left_out(file.path, left_out)
        is_one = len(parts) == 1 and not notes
        return parts[0] if is_one else join_tables(parts, str(file.path), notes=notes)
    if inner is not None:
        raise ValueError(f"{file.path} is neither a workbook nor an archive; leave out '#{inner}'")
    read = _format_of(head, split_suffix(file.path)[1])
    return Table(str(file.path), partial(read, file), file.path.name)


def _open_sheet(file: TableFile, sheet: str | None) -> Table:
    end = "" if sheet is None else f"#{sheet}"
    return Table(f"{file.path}{end}", partial(read_sheet, file, sheet), file.path.name + end)


def _open_every_sheet(file: TableFile) -> Table:
    """Return the sheets of a workbook as one table, without those that have other columns."""
    columns: dict[Table, frozenset[str]] = {}
    for sheet in (_open_sheet(file, name) for name in visible_sheets(file)):
        with suppress(EmptyTableError):
            columns[sheet] = frozenset(sheet.names)
    if not columns:
        raise no_sheet(str(file.path))
    usual = Counter(columns.values()).most_common(1)[0][0]
    others = {sheet for sheet, names in columns.items() if 2 * len(names & usual) < len(usual)}
    parts = [sheet for sheet in columns if sheet not in others]
    titles = [repr(sheet.name.rpartition("#")[2]) for sheet in columns if sheet in others]
    note = f"{file.path}: sheets with other columns left out: {list_some(titles)}"
    name = f"{file.path}#{EVERY_SHEET}"
    return join_tables(parts, name, notes=[note] * bool(others), noun="sheets")


def _left_out(where: object, names: Sequence[str]) -> list[str]:
    return [f"{where}: not tables, and left out: {list_some(list(names))}"] if names else []


def _format_of(head: bytes, suffix: str) -> Callable[[TableFile], Content]:
    """Return what reads a format, chosen by the suffix or the start of the content."""
    called = FORMATS.get(suffix)
    if called == "JSON" or _JSON_START.match(head):
        return read_json_lines if suffix in JSON_LINES or _has_lines(head) else read_json
    has_own_start = called != "text"
    is_binary = has_own_start and looks_binary(head)
    if called == "Parquet" or (is_binary and head.startswith(b"PAR1")):
        return lambda file: Content(ParquetRows(file))
    if called == "Arrow" or (is_binary and head.startswith(_ARROW_STARTS)):
        return lambda file: Content(ArrowRows(file))
    # Tables of other formats are called .dat too.
    if suffix == ".arff" or (has_own_start and _KEEL_START.match(head)):
        return read_keel
    return read_csv


def _has_lines(head: bytes) -> bool:
    """Return whether the start of a JSON file has an object on each of its first lines."""
    first, _, rest = head.strip().partition(b"\n")
    try:
        is_object = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False
    return is_object and rest.lstrip().startswith(b"{")
