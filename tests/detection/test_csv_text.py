"""CSV that no spreadsheet runs or splits in another way, in files and pipes."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from qms22.detection.results.csv_text import csv_cell, csv_lines
from qms22.detection.results.result_files import write_tables

HARMFUL = ["=1+1", "+1+2", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠A"]


@pytest.mark.parametrize("text", [*HARMFUL, "-inf", "-1_000", "-٣", "+49 30 123"])
def test_formulas_get_an_apostrophe(text: str) -> None:
    assert next(csv.reader([csv_cell(text)])) == [f"'{text}"]


@pytest.mark.parametrize("text", ["-5", "+.5e-3", "-1.", "plain", "a=b", "'=1", ""])
def test_other_texts_stay(text: str) -> None:
    assert csv_cell(text) == text


@pytest.mark.parametrize("text", ["x\r=1+1", "x\n=1+1", "x;=1+1", "x\t=1+1", "x,=1+1", 'say "x"'])
def test_a_text_stays_in_its_cell(text: str) -> None:
    cell = csv_cell(text)
    assert cell.startswith('"')
    assert list(csv.reader(io.StringIO(cell, newline=""))) == [[text]]


def test_a_table_is_read_back_as_it_was(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "number": [1e-7, np.nan, 0.1 + 0.2],
            "count": [1, 2, 3],
            "day": pd.to_datetime(["2024-01-31", None, "2024-02-01"]),
            "text\r;": ["x\r=1+1", None, "a;b"],
            "truth": [True, False, True],
        }
    )
    write_tables([table, table], tmp_path / "o.csv")
    back = pd.read_csv(tmp_path / "o.csv", parse_dates=["day"], lineterminator="\n")
    expected = pd.concat([table, table], ignore_index=True)
    pd.testing.assert_frame_equal(back, expected, check_dtype=False)
    assert "2024-01-31," in (tmp_path / "o.csv").read_text()


def test_an_empty_cell_of_a_single_column_is_a_row() -> None:
    lines = list(csv_lines(pd.DataFrame({"a": ["x", None]})))
    assert lines == ["a\n", "x\n", '""\n']


def test_texts_of_a_workbook_stay_texts(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    write_tables([pd.DataFrame({"=1": HARMFUL})], tmp_path / "o.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "o.xlsx").active
    cells = [cell for (cell,) in sheet.iter_rows()]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.value for cell in cells][:2] == ["=1", "=1+1"]
