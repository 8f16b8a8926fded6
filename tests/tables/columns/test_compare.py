"""Rows of two tables are the same, also after a spreadsheet had one of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from qms22.tables.columns.compare import compare_cells


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ([1, 2], [1.0, 3.0], [True, False]),
        ([0.30000000000000004, 1 / 3], [0.3, 0.33333333], [True, True]),
        ([1.0, 1.0], [1.001, -1.0], [False, False]),
        ([1.5, 2.0], ["1.5", "2"], [True, True]),
        ([True, False], ["TRUE", "TRUE"], [True, False]),
        (["a", "b"], ["a ", "c"], [True, False]),
        (["-a", "=b", "'c"], ["'-a", "'=b", "'c"], [True, True, True]),
        (["2026-01-05", "2026-01-31"], ["5.1.2026", "31.1.2026"], [True, True]),
        (["2026-01-05", "2026-01-31"], ["1/5/2026", "1/31/2026"], [True, True]),
        (["2026-01-05", "2026-01-31"], ["1/6/2026", "1/31/2026"], [False, True]),
        (["2026-01-05 09:30:12"], ["1/5/2026 9:30"], [True]),
        ([None, None, "a"], [None, "a", None], [True, False, False]),
        (["NA", "NA", "NA", "DE"], ["NA", None, "DE", None], [True, True, False, False]),
        ([float("nan"), 1.0], [None, 1.0], [True, True]),
        ([[1], [2]], ["1", "2"], [True, True]),
    ],
)
def test_one_column(first: list[Any], second: list[Any], agree: list[bool]) -> None:
    found = compare_cells(pd.DataFrame({"x": first}), pd.DataFrame({"y": second}))
    assert found.tolist() == [[each] for each in agree]
    assert (compare_cells(pd.DataFrame({"y": second}), pd.DataFrame({"x": first})) == found).all()


def test_dates_as_dates() -> None:
    days = pd.DataFrame({"day": pd.to_datetime(["2026-01-05", "2026-02-01"])})
    assert compare_cells(days, pd.DataFrame({"day": ["1/5/2026", "2/2/2026"]})).tolist() == [
        [True],
        [False],
    ]


def test_each_column_by_itself() -> None:
    first = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    second = pd.DataFrame({"x": [1, 3], "y": ["b", "b"]})
    assert compare_cells(first, second).tolist() == [[True, False], [False, True]]
