"""The memory that a workbook takes, before it is read.

The reader makes room for every place up to the last cell and copies a shared text into each of its
cells, so that a few kilobytes can take terabytes; it ends the process if memory is short.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from qms22._runtime.memory import MemoryBudget
from qms22.tables.sources.compressed import DAMAGED, ZIP_START, fault

# Bytes that the reader takes for each place up to the last one.
_PLACE_BYTES = 40
_BLOCK = 1 << 22
# Places of cells and rows in the XML of a sheet; far ones are beyond those that always fit.
_PLACE = re.compile(rb"""\sr=["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_FAR_PLACE = re.compile(rb"""\sr=["'](?:[A-Za-z]{2,3}[0-9]|[A-Za-z]*[0-9]{5})""")
_NEAR = (9999, 26)
# The end of a shared text, and the number of the one that a cell has.
_TEXT_END = re.compile(rb"</(?:\w+:)?si>|<(?:\w+:)?si\s*/>")
_TEXT_NUMBER = re.compile(rb"""\st=["']s["'][^>]*>\s*<(?:\w+:)?v[^>]*>\s*([0-9]{1,9})""")
# Longest part of a match that may be cut off at the end of a block.
_CUT = 256
# Records of .xlsb files: a row, cells, a cell with a shared text, a shared text.
_ROW, _CELLS, _SHARED_CELL, _SHARED_TEXT = 0, range(1, 12), 7, 19
# Rows and cells of OpenDocument, and how often they are repeated.
_ODS_TAG = re.compile(rb"<table:(table-row|table-cell|covered-table-cell|table)\b([^>]*)>")
_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["']([0-9]{1,12})["']""")


def check_book(content: bytes, path: Path) -> None:
    """Raise ValueError if the workbook takes more memory than it may, or is damaged."""
    budget = MemoryBudget(path)
    if budget.limit is None or not content.startswith(ZIP_START):
        return
    try:
        with ZipFile(BytesIO(content)) as archive:
            for member in archive.infolist():
                budget.check(member.file_size)
            names = archive.namelist()
            if "content.xml" in names:
                _check_ods(archive.read("content.xml"), budget)
            texts = _shared_texts(archive)
            for name in names:
                if name.startswith("xl/worksheets/") and name.endswith(".bin"):
                    _check_binary(archive.read(name), texts, budget)
                elif name.startswith("xl/worksheets/"):
                    _check_sheet(archive, name, texts, budget)
    except (NotImplementedError, RuntimeError):
        return  # encrypted, as the reader will say
    except (BadZipFile, zlib.error, EOFError) as error:
        raise fault(f"{path} cannot be read as a workbook", error, DAMAGED) from error


def _check_places(rows: int, columns: int, budget: MemoryBudget) -> None:
    where = f"it has a cell in row {rows} or column {columns}"
    budget.check(rows * columns * _PLACE_BYTES, where)


def _check_texts(
    n_cells: int, numbers: Iterator[int], texts: array[int], budget: MemoryBudget
) -> None:
    """Check the texts of a sheet whose cells have some of the shared ones."""
    if not texts or budget.limit is None or n_cells * max(texts) <= budget.limit:
        return  # in most workbooks: the numbers need not be read
    n_bytes = sum(texts[number] for number in numbers if number < len(texts))
    budget.check(n_bytes, "many cells have the same long text")


def _blocks(archive: ZipFile, name: str) -> Iterator[tuple[bytes, int]]:
    """Yield the content of a member in blocks, and how many bytes of it were in the last one."""
    rest = b""
    with archive.open(name) as stream:
        while block := stream.read(_BLOCK):
            yield rest + block, len(rest)
            rest = (rest + block)[-_CUT:]


def _shared_texts(archive: ZipFile) -> array[int]:
    sizes = array("q")
    if "xl/sharedStrings.bin" in archive.namelist():
        content = archive.read("xl/sharedStrings.bin")
        sizes.extend(size for kind, _, size in _records(content) if kind == _SHARED_TEXT)
    elif "xl/sharedStrings.xml" in archive.namelist():
        before = last = 0
        for block, n_seen in _blocks(archive, "xl/sharedStrings.xml"):
            start = before - n_seen
            for found in _TEXT_END.finditer(block):
                if start + found.end() > max(last, before):
                    sizes.append(start + found.end() - last)
                    last = start + found.end()
            before = start + len(block)
    return sizes


def _check_sheet(archive: ZipFile, name: str, texts: array[int], budget: MemoryBudget) -> None:
    last_row, last_column = _NEAR
    is_far, n_cells = False, 0
    for block, _ in _blocks(archive, name):
        n_cells += block.count(b"v>")
        is_far = is_far or _FAR_PLACE.search(block) is not None
        for letters, row in _PLACE.findall(block) if is_far else ():
            last_row = max(last_row, int(row))
            last_column = max(last_column, column_number(letters.upper()))
    if is_far:
        _check_places(last_row, last_column, budget)
    numbers = (
        int(number) for block, _ in _blocks(archive, name) for number in _TEXT_NUMBER.findall(block)
    )
    _check_texts(n_cells, numbers, texts, budget)


@cache
def column_number(letters: bytes) -> int:
    """Return the place of a column, from 1 on."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _records(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the type, start and size of the records of a part of an .xlsb file."""
    at, end = 0, len(content)
    while at < end - 1:
        kind = content[at]
        at += 1
        if kind & 0x80:
            kind = kind & 0x7F | (content[at] & 0x7F) << 7
            at += 1
        size = 0
        for shift in range(0, 28, 7):
            if at >= end:
                return
            byte = content[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
        yield kind, at, size
        at += size


def _check_binary(content: bytes, texts: array[int], budget: MemoryBudget) -> None:
    last_row = last_column = n_cells = 0
    for kind, at, _ in _records(content):
        if kind == _ROW:
            last_row = max(last_row, int.from_bytes(content[at : at + 4], "little"))
        elif kind in _CELLS:
            last_column = max(last_column, int.from_bytes(content[at : at + 4], "little"))
            n_cells += kind == _SHARED_CELL
    _check_places(last_row + 1, last_column + 1, budget)
    numbers = (
        int.from_bytes(content[at + 8 : at + 12], "little")
        for kind, at, _ in _records(content)
        if kind == _SHARED_CELL
    )
    _check_texts(n_cells, numbers, texts, budget)


def _check_ods(content: bytes, budget: MemoryBudget) -> None:
    """Check the sheets of an OpenDocument file: rows and cells may be repeated.

    Repeated empty cells at the end of rows, and empty rows at the end of a sheet, do not count.
    """
    above = repeats = width = columns = n_bytes = 0
    tags = list(_ODS_TAG.finditer(content))
    ends = [tag.start() for tag in tags[1:]] + [len(content)]
    for tag, end in zip(tags, ends, strict=True):
        found = _REPEATED.search(tag[2])
        times = int(found[1]) if found else 1
        if tag[1] == b"table":
            above = repeats = columns = n_bytes = 0
        elif tag[1] == b"table-row":
            above, repeats, width = above + repeats, times, 0
        else:
            width += times
            if not tag[2].rstrip().endswith(b"/") or b"value" in tag[2]:
                columns = max(columns, width)
                n_bytes += repeats * times * (end - tag.start())
                _check_places(above + repeats, columns, budget)
                budget.check(n_bytes, "it repeats long texts")
