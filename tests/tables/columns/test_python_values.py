from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22.tables.columns.arrow_columns import column_of_values

MOMENT = pd.Timestamp("2024-03-01 05:00", tz="Europe/Berlin")


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        ([1, 2.5, None, pd.NA, ""], "number", [1, 2.5, np.nan, np.nan, np.nan]),
        ([Decimal("1.5"), Decimal("NaN"), Fraction(1, 4)], "number", [1.5, np.nan, 0.25]),
        ([np.int64(3), np.uint64(2**64 - 1), 2**70], "number", [3.0, 2.0**64, 2.0**70]),
        ([True, np.bool_(False), None], "boolean", [1, 0, np.nan]),
        ([[1, 2], None], "other", [0, np.nan]),
        ([b"a", {"a": 1}], "other", [0, 0]),
        ([None, np.nan, pd.NaT], "number", [np.nan] * 3),
    ],
)
def test_values_of_one_type(values: list[Any], form: str, expected: list[float]) -> None:
    cells = column_of_values("x", values)
    assert cells.form == form
    np.testing.assert_array_equal(cells.values, expected)


def test_moments_days_and_periods_are_dates_in_local_time() -> None:
    cells = column_of_values("x", [MOMENT, date(2024, 3, 1), pd.Period("2024-03", "M"), pd.NaT])
    days = (cells.values / 86_400e6)[:3]
    first = (datetime(2024, 3, 1) - datetime(1970, 1, 1)).days
    np.testing.assert_allclose(days, [first + 5 / 24, first, first])
    assert cells.form == "date"
    assert np.isnan(cells.values[3])


def test_values_of_several_types_are_texts() -> None:
    values = [1, 1.0, "1", True, "NA", " ", None, 2**63, 0.5, time(5), datetime(2024, 3, 1)]
    cells = column_of_values("x", values)
    assert cells.form == "text"
    texts = ["1", "1", "1", "true", "NA", None, None, str(2**63), "0.5", "05:00:00", "2024-03-01"]
    assert cells.to_array().tolist() == texts
