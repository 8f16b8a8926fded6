"""Workbooks: types, sheets, and what is around a table."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from table_files import assert_same_in_parts, people

from qms22.tables import open_table, read_table

pytest.importorskip("python_calamine")
xlsxwriter = pytest.importorskip("xlsxwriter")

HEADER: list[Any] = ["id", "day", "amount", "paid"]
ROWS: list[list[Any]] = [[at, datetime(2024, 3, 1 + at), 1.5 * at, at % 2 == 0] for at in range(12)]


def write_book(path: Path, sheets: dict[str, Sequence[Sequence[Any]]], **options: Any) -> Path:
    """Write rows of cells; None leaves a cell empty."""
    options = {"default_date_format": "yyyy-mm-dd hh:mm", **options}
    with xlsxwriter.Workbook(path, options) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for at, row in enumerate(rows):
                for column, value in enumerate(row):
                    if value is not None:
                        sheet.write(at, column, value)
    return path


def test_types(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["n", "x", "ok", "day", "clock", "word", "mixed", "gaps", "007"],
        [1, 0.5, True, datetime(2024, 3, 1), time(2, 30), "a", 1, 5, "007"],
        [2, 2, False, date(2024, 3, 2), time(14), "b", "n/k", "N/A", "010"],
        [3, 4, True, datetime(2024, 3, 3, 1, 10), time(0, 5), " ", 2.5, None, "011"],
    ]
    found = read_table(write_book(tmp_path / "a.xlsx", {"S": rows}))
    assert found["n"].tolist() == [1, 2, 3]
    assert found["n"].dtype == int
    assert found["x"].tolist() == [0.5, 2, 4]
    assert found["ok"].tolist() == [True, False, True]
    assert found["day"].tolist() == [*map(pd.Timestamp, ["2024-03-01", "2024-03-02"]), rows[3][3]]
    assert found["mixed"].tolist() == ["1", "n/k", "2.5"]
    assert found["gaps"].isna().tolist() == [False, True, True]
    assert found["gaps"][0] == 5
    assert found["word"].isna().tolist() == [False, False, True]
    assert found["007"].tolist() == ["007", "010", "011"]


def test_titles_and_empty_edges(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[], [None, "Orders of March"], [], [None, "all amounts in euro"]]
    rows += [
        [None, *HEADER],
        *([None, *row] for row in ROWS[:5]),
        [],
        *([None, *r] for r in ROWS[5:]),
    ]
    source = open_table(write_book(tmp_path / "a.xlsx", {"S": rows}))
    assert source.names == HEADER
    assert source.read().to_numpy().tolist() == ROWS
    assert any("2 rows above the header" in note for note in source.notes)
    assert source.place(0).endswith("sheet 'S', row 6")
    assert source.place(5).endswith("sheet 'S', row 12")


def test_footers(tmp_path: Path) -> None:
    rows = [HEADER, *ROWS, ["Total", None, 99.0, None], [], ["Exported on 1 May"]]
    source = open_table(write_book(tmp_path / "a.xlsx", {"S": rows}))
    assert source.read().to_numpy().tolist() == ROWS
    assert source.notes == (f"{tmp_path / 'a.xlsx'}: 2 rows below the table left out ('Total')",)


def test_sums_between_rows(tmp_path: Path) -> None:
    sums: list[Any] = ["Zwischensumme", None, 49.5, None]
    rows = [HEADER, *ROWS, sums, *ROWS]
    source = open_table(write_book(tmp_path / "a.xlsx", {"S": rows}))
    assert source.read()["id"].tolist() == 2 * list(range(12))
    assert "1 row with sums between the others left out ('Zwischensumme')" in source.notes[0]
    assert source.place(12).endswith("row 15")


def test_sheets(tmp_path: Path) -> None:
    sheets: dict[str, Any] = {
        "About": [["made by"], ["us"]],
        "March": [HEADER, *ROWS],
        "April": [HEADER, *ROWS[:3]],
    }
    path = write_book(tmp_path / "a.xlsx", sheets)
    source = open_table(path)
    assert source.n_rows == len(ROWS)
    assert source.notes == (f"{path}: the sheet 'March' was read, not 'About', 'April'",)
    april = open_table(f"{path}#April")
    assert april.n_rows == 3
    assert april.notes == ()
    with pytest.raises(
        ValueError, match="has no sheet 'May'; its sheets are 'About', 'March', 'Ap"
    ):
        open_table(f"{path}#May").read()
    with pytest.raises(ValueError, match="has no sheet with a header and rows"):
        open_table(write_book(tmp_path / "b.xlsx", {"About": [["made by"]]})).read()


def test_names_that_are_missing_or_not_unique(tmp_path: Path) -> None:
    rows: list[Any] = [["", "a", "a", ""], *([at, at + 0.5, "x", "y"] for at in range(4))]
    source = open_table(write_book(tmp_path / "a.xlsx", {"S": rows}))
    assert source.names == ["a", "a_2", "column 4"]
    assert len(source.notes) == 2


def test_no_header(tmp_path: Path) -> None:
    source = open_table(write_book(tmp_path / "a.xlsx", {"S": [[1.5, 2], [3.5, 4], [5.5, 7]]}))
    assert source.names == ["x1", "x2"]
    assert source.n_rows == 3
    assert "no header" in source.notes[0]


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_parts_and_suffixes(tmp_path: Path, suffix: str) -> None:
    if suffix == ".ods":
        pytest.importorskip("odf")
    table = people()
    table.to_excel(tmp_path / f"a{suffix}")  # with row numbers
    (tmp_path / "named.csv").write_bytes((tmp_path / f"a{suffix}").read_bytes())
    pd.testing.assert_frame_equal(read_table(tmp_path / f"a{suffix}"), table)
    pd.testing.assert_frame_equal(read_table(tmp_path / "named.csv"), table)
    assert_same_in_parts(tmp_path / f"a{suffix}")


def test_old_workbook(tmp_path: Path) -> None:
    xlwt = pytest.importorskip("xlwt")
    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    rows: list[list[Any]] = [["x", "city"], [1.5, "Rome"], [2.5, "Oslo"]]
    for at, row in enumerate(rows):
        for column, value in enumerate(row):
            sheet.write(at, column, value)
    book.save(str(tmp_path / "a.xls"))
    found = read_table(tmp_path / "a.xls")
    assert found.to_dict("list") == {"x": [1.5, 2.5], "city": ["Rome", "Oslo"]}


def test_faults(tmp_path: Path) -> None:
    encrypted = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
    encrypted += "EncryptedPackage".encode("utf-16-le") + bytes(2000)
    (tmp_path / "a.xlsx").write_bytes(encrypted)
    with pytest.raises(ValueError, match=r"a\.xlsx is protected by a password; remove it"):
        read_table(tmp_path / "a.xlsx")
    (tmp_path / "b.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(3000))
    with pytest.raises(ValueError, match=r"b\.xls cannot be read as a workbook .* get it again"):
        read_table(tmp_path / "b.xls")
    whole = write_book(tmp_path / "c.xlsx", {"S": [HEADER, *ROWS]}).read_bytes()
    (tmp_path / "d.xlsx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"d\.xlsx starts as a zip archive or an Excel"):
        read_table(tmp_path / "d.xlsx")
    with zipfile.ZipFile(tmp_path / "e.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<broken")
    with pytest.raises(ValueError, match=r"e\.xlsx cannot be read as a workbook"):
        read_table(tmp_path / "e.xlsx")


def test_all_sheets_as_one_table(tmp_path: Path) -> None:
    path = write_book(
        tmp_path / "book.xlsx",
        {
            "March": [HEADER, *ROWS],
            "Notes": [["who", "what"], ["Ann", "looked at it"]],
            "Empty": [],
            "April": [[*HEADER, "remark"], *([*row, "x"] for row in ROWS[:5])],
        },
    )
    source = open_table(f"{path}#*")
    assert source.title == "book.xlsx#* (2 sheets)"
    assert source.read()["id"].tolist() == [*range(12), *range(5)]
    assert source.notes == (
        f"{path}: sheets with other columns left out: 'Notes'",
        "column 'remark' is not in book.xlsx#March, and missing there",
    )
    assert source.place(13) == f"{path}#April, sheet 'April', row 3"
    empty = write_book(tmp_path / "empty.xlsx", {"One": [], "Two": []})
    with pytest.raises(ValueError, match="has no sheet with a header and rows"):
        open_table(f"{empty}#*")
