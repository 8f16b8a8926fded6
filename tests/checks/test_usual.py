"""What normal rows have instead of an odd cell."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from looking import look
from result_schema import SCHEMA

import qms22
from qms22.checks.arithmetic import ArithmeticCheck
from qms22.checks.check import Check
from qms22.checks.dates import IntervalCheck, WeekdayCheck
from qms22.checks.dependence import DependenceCheck, OrderCheck
from qms22.checks.single import LevelCheck, PresenceCheck, ValueCheck
from qms22.checks.texts import MisspellingCheck, TextCheck

ODD = 7
# The most frequent first.
DAYS = ("Tuesday", "Friday", "Monday", "Thursday", "Wednesday")


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw orders whose total is the price times the pieces, sent one to four days later."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Graz", "Hamburg", "Vienna"], n_rows, p=[0.2, 0.5, 0.3])
    price = rng.integers(100, 2000, n_rows) / 100
    pieces = rng.integers(1, 9, n_rows)
    days = pd.bdate_range("2024-01-01", periods=100)[rng.integers(100, size=n_rows)]
    return pd.DataFrame(
        {
            "code": [f"AB-{number}" for number in rng.integers(1000, 9999, n_rows)],
            "city": city,
            "country": np.where(city == "Hamburg", "Germany", "Austria"),
            "price": price,
            "pieces": pieces,
            "least": pieces - rng.integers(0, 3, n_rows),
            "total": (price * pieces).round(2),
            "ordered": days,
            "sent": days + pd.to_timedelta(rng.integers(1, 5, n_rows), "D"),
        }
    )


@pytest.mark.parametrize(
    ("cells", "check", "columns", "usual"),
    [
        ({"price": 820.0}, ValueCheck, ("price",), ("range", "1.12 to 19.91", (1.12, 19.91))),
        (
            {"city": "Paris"},
            LevelCheck,
            ("city",),
            ("levels", "Hamburg, Vienna, Graz", ("Hamburg", "Vienna", "Graz")),
        ),
        ({"city": "Hamburk"}, MisspellingCheck, ("city",), ("value", "Hamburg", ("Hamburg",))),
        ({"price": None}, PresenceCheck, ("price",), ("form", "a number", ())),
        ({"total": 4.25}, ArithmeticCheck, (), ("value", "17.09", (17.09,))),
        (
            {"least": 99},
            OrderCheck,
            ("least", "pieces"),
            ("range", "at most pieces 1", (None, 1.0)),
        ),
        (
            {"city": "Hamburg", "country": "Austria"},
            DependenceCheck,
            ("country", "city"),
            ("levels", "Germany", ("Germany",)),
        ),
        (
            {"sent": pd.Timestamp("2025-01-01")},
            IntervalCheck,
            ("sent", "ordered"),
            ("rule", "1 to 4 days after", ()),
        ),
        (
            {"ordered": pd.Timestamp("2024-01-06")},
            WeekdayCheck,
            ("ordered",),
            ("levels", ", ".join(DAYS), DAYS),
        ),
        ({"code": "x9"}, TextCheck, ("code",), ("form", "as in “AB-1017”", ("AB-1017",))),
    ],
)
def test_what_is_usual(
    cells: dict[str, object],
    check: type[Check],
    columns: tuple[str, ...],
    usual: tuple[str, str, tuple[object, ...]],
) -> None:
    batch = orders(150, 1)
    for name, value in cells.items():
        batch.loc[ODD, name] = value
    found = look(orders(600, 0), batch)
    assert found.said(ODD, check, *columns).usual == usual


def test_the_json_of_a_result_says_what_is_usual() -> None:
    batch = orders(150, 1)
    batch.loc[ODD, "price"] = 820.0
    data = qms22.detect(orders(600, 0), batch, k=5).to_dict()
    if SCHEMA.exists():  # the source archive has no docs
        Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    row = next(row for row in data["rows"] if row["row"] == ODD)
    (reason,) = row["reasons"]
    assert reason["cell"] == {"column": "price", "value": 820.0}
    assert reason["usual"] == {"kind": "value", "text": "17.09", "values": [17.09]}
