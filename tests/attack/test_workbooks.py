"""Small workbooks that take more memory than there is."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from qms22.tables import read_table


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
    with pytest.raises(ValueError, match=r"far\.xlsx has a cell in row .* would take \d+ GB; del"):
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
