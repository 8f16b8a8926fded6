"""Small workbooks that take more memory than there is."""

from __future__ import annotations

import struct
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import xlsxwriter

from qms22.tables import memory_limit, read_table

TOO_LARGE = r"far\.\w+ takes [\d,.]+ .B of memory or more to read, and may take [\d,.]+ .B \({}\); "
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


@pytest.mark.parametrize("far", [(1048575, 16383), (1048575, 700), (99_999, 16383)])
@pytest.mark.parametrize("place", ["first", "last"])
def test_far_cells(tmp_path: Path, far: tuple[int, int], place: str) -> None:
    """A workbook of a few kilobytes with one cell in a far corner"""
    path = tmp_path / "far.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheets = [book.add_worksheet() for _ in range(2)]
        for row in range(20):
            sheets[0].write_row(row, 0, [f"x{row}", row, row * row])
        sheets[0 if place == "first" else 1].write(*far, "far")
        sheets[1].write_row(0, 0, ["a", "b"])
        sheets[1].write_row(1, 0, [1, 2])
    with pytest.raises(ValueError, match=TOO_LARGE.format("it has a cell in row .*")):
        read_table(path)


@pytest.mark.parametrize(("n_rows", "n_columns", "start"), [(30, 2, 99_990), (30, 800, 0)])
def test_long_and_wide_sheets(tmp_path: Path, n_rows: int, n_columns: int, start: int) -> None:
    """Long sheets and wide sheets still read"""
    path = tmp_path / "table.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(start, 0, [f"c{at}" for at in range(n_columns)])
        for row in range(1, n_rows):
            sheet.write_row(start + row, 0, [row * (at + 1) % 17 for at in range(n_columns)])
    assert read_table(path).shape == (n_rows - 1, n_columns)


def record(kind: int, content: bytes) -> bytes:
    """Return a record of an .xlsb file."""
    number = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return number + bytes([len(content)]) + content


def write_xlsb(path: Path, places: list[tuple[int, int]]) -> None:
    """Write a sheet with numbers in some places, which are in the order of rows."""
    wide = [struct.pack("<I", len(text)) + text.encode("utf-16-le") for text in ("rId1", "Sheet1")]
    sheet = record(129, b"") + record(148, struct.pack("<4I", 0, 9, 0, 9)) + record(145, b"")
    last = -1
    for row, column in places:
        if row != last:
            sheet += record(0, struct.pack("<I", row) + bytes(13))
        last = row
        sheet += record(5, struct.pack("<IId", column, 0, row + column / 10))
    relation = f"""<Relationship Id="rId1" Target="worksheets/sheet1.bin"
        Type="{RELATIONS}/worksheet"/>"""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr(
            "xl/_rels/workbook.bin.rels",
            f'<Relationships xmlns="{PACKAGE}">{relation}</Relationships>',
        )
        bundle = record(156, struct.pack("<II", 0, 1) + b"".join(wide))
        archive.writestr(
            "xl/workbook.bin", record(143, b"") + bundle + record(144, b"") + record(132, b"")
        )
        archive.writestr("xl/worksheets/sheet1.bin", sheet + record(146, b"") + record(130, b""))


@pytest.mark.parametrize("far", [(1048575, 16383), (1048575, 700)])
def test_far_cells_of_binary_workbooks(tmp_path: Path, far: tuple[int, int]) -> None:
    """An .xlsb file with one cell in a far corner"""
    places = [(row, column) for row in range(20) for column in range(3)]
    write_xlsb(tmp_path / "near.xlsb", places)
    with pytest.warns(UserWarning, match="no header"):
        assert read_table(tmp_path / "near.xlsb").shape == (20, 3)
    write_xlsb(tmp_path / "far.xlsb", [*places, far])
    with pytest.raises(ValueError, match=TOO_LARGE.format("it has a cell in row .*")):
        read_table(tmp_path / "far.xlsb")


def write_ods(path: Path, rows: str) -> None:
    names = "".join(f' xmlns:{name}="{OFFICE}:{name}:1.0"' for name in ("office", "table", "text"))
    sheet = f'<table:table table:name="a">{rows}</table:table>'
    body = f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest:manifest/>")
        archive.writestr(
            "content.xml", f"<office:document-content{names}>{body}</office:document-content>"
        )


def ods_row(cells: list[object], n_rows: int = 1, n_columns: int = 1) -> str:
    """Return a row; it and its last cell may be repeated."""
    last = len(cells) - 1
    texts = [
        f'<table:table-cell table:number-columns-repeated="{n_columns if at == last else 1}"'
        + (
            "/>"
            if cell is None
            else f' office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
        )
        for at, cell in enumerate(cells)
    ]
    head = f'<table:table-row table:number-rows-repeated="{n_rows}">'
    return f"{head}{''.join(texts)}</table:table-row>"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (ods_row(["x"], 1048576, 16384), "it has a cell .*"),
        (ods_row([None, "x"], 10**9), "it has a cell .*"),
        (ods_row([None], 10**9) + ods_row(["x"]), "it has a cell .*"),
        (ods_row(["x" * 10**6], 1000, 1000), "it repeats long texts"),
    ],
)
def test_repeated_cells(tmp_path: Path, row: str, why: str) -> None:
    """OpenDocument files whose cells are repeated a billion times"""
    table = "".join(ods_row([f"a{at}", f"b{at}"]) for at in range(20))
    write_ods(tmp_path / "far.ods", table + row)
    with pytest.raises(ValueError, match=TOO_LARGE.format(why)):
        read_table(tmp_path / "far.ods")


def test_empty_cells_are_repeated(tmp_path: Path) -> None:
    """OpenDocument files with repeated empty cells around the table, as LibreOffice writes them"""
    table = "".join(ods_row([f"a{at}", f"b{at}", None], 1, 16382) for at in range(20))
    write_ods(tmp_path / "near.ods", table + ods_row([None], 1048556, 16384))
    assert read_table(tmp_path / "near.ods").shape[1] == 2


def test_shared_texts(tmp_path: Path) -> None:
    """A workbook whose cells all share one long text, or that unpacks to gigabytes of texts"""
    path = tmp_path / "far.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for row in range(2000):
            sheet.write_row(row, 0, ["x" * 32_000, "y" * 32_000, row])
    assert path.stat().st_size < 100_000
    with (
        memory_limit(100_000_000),
        pytest.raises(ValueError, match=TOO_LARGE.format("many cells have the same long text")),
    ):
        read_table(path)
    with memory_limit(200_000_000):
        assert len(read_table(path)) >= 1999


def test_unpacked_texts(tmp_path: Path) -> None:
    """A workbook whose shared texts unpack to a thousand times its size"""
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        sheet = book.add_worksheet()
        for row in range(20):
            sheet.write_row(row, 0, ["x", row])
    for name, is_honest in (("far.xlsx", True), ("lying.xlsx", False)):
        with (
            ZipFile(tmp_path / "book.xlsx") as old,
            ZipFile(tmp_path / name, "w", ZIP_DEFLATED) as new,
        ):
            for member in old.namelist():
                if member != "xl/sharedStrings.xml":
                    new.writestr(member, old.read(member))
            with new.open("xl/sharedStrings.xml", "w", force_zip64=True) as stream:
                for _ in range(30):
                    stream.write(b"<si><t>" + b"x" * 10**7 + b"</t></si>")
            if not is_honest:
                new.getinfo("xl/sharedStrings.xml").file_size = 1000
    with memory_limit(200_000_000):
        with pytest.raises(
            ValueError, match=r"far.xlsx takes 300.\d MB .* may take 200.0 MB; check"
        ):
            read_table(tmp_path / "far.xlsx")
        with pytest.raises(ValueError, match=r"lying.xlsx cannot be read as a workbook \(Bad CRC"):
            read_table(tmp_path / "lying.xlsx")
