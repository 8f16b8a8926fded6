"""How columns of a workbook look, which its reader leaves out: number formats and widths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from qms22.tables.sources.compressed import ZIP_START, TableFile
from qms22.tables.sources.stored_rows import ColumnLook
from qms22.tables.sources.workbook_size import column_number

# Rows below the header whose cells are looked at: the first one with a format decides.
_MOST_ROWS = 20
# Bytes that are read of each part of a workbook: widths and the first rows come first.
_MOST_BYTES = 1 << 22
_ATTRIBUTE = re.compile(r"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CELL = re.compile("([A-Z]{1,3})([0-9]{1,7})")


def column_looks(
    file: TableFile, sheet: str, first_row: int, places: Mapping[str, int]
) -> dict[str, ColumnLook]:
    """Return how columns look, by name; nothing of files that do not say it in XML.

    The first row below the header and the `places` of columns count from 1.
    """
    with file.open() as stream:
        content = stream.read()
    if not content.startswith(ZIP_START):
        return {}
    formats, widths = dict[int, str | int](), dict[int, float]()
    try:
        with ZipFile(BytesIO(content)) as book:
            ids = {each["name"]: each["r:id"] for each in _tags(book, "workbook.xml", "sheet")}
            relations = _tags(book, "_rels/workbook.xml.rels", "Relationship")
            parts = {each["Id"]: each["Target"] for each in relations}
            part = parts[ids[sheet]].removeprefix("/xl/")
            for column in _tags(book, part, "col"):
                if column.get("customWidth") in ("1", "true"):
                    ends = int(column["min"]), min(int(column["max"]), max(places.values()))
                    widths |= dict.fromkeys(range(ends[0], ends[1] + 1), float(column["width"]))
            of_styles = _styles(book)
            for cell in _tags(book, part, "c"):
                letters, row = _CELL.fullmatch(cell["r"]).groups()  # type: ignore[union-attr]
                if int(row) >= first_row + _MOST_ROWS:
                    break
                style = of_styles[int(cell.get("s", 0))]
                if int(row) >= first_row and style:
                    formats.setdefault(column_number(letters.encode()), style)
    # Looks are no reason to refuse a table: what is damaged, or unlike that of Excel, has none.
    except (BadZipFile, LookupError, ValueError, AttributeError, NotImplementedError):
        return {}
    return {
        name: ColumnLook(formats.get(at, "General"), widths.get(at)) for name, at in places.items()
    }


def _styles(book: ZipFile) -> list[str | int]:
    """Return the number formats of the styles that cells have by their number."""
    named = {each["numFmtId"]: each["formatCode"] for each in _tags(book, "styles.xml", "numFmt")}
    numbers = [each["numFmtId"] for each in _tags(book, "styles.xml", "xf", within="cellXfs")]
    return [named[number] if number in named else int(number) for number in numbers]


def _tags(book: ZipFile, part: str, name: str, within: str = "") -> Iterator[dict[str, str]]:
    """Yield the attributes of tags of a part, or of what is within another tag."""
    with book.open(f"xl/{part}") as stream:
        text = stream.read(_MOST_BYTES).decode(errors="replace")
    if within:
        text = re.split(rf"</?(?:\w+:)?{within}\b", text)[1]
    for tag in re.finditer(rf"<(?:\w+:)?{name}\b([^>]*)>", text):
        pairs = _ATTRIBUTE.findall(tag[1])
        yield {key: unescape(one or other) for key, one, other in pairs}
