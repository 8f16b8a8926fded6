from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from table_files import N, everything

from qms22.tables import TabularEncoder
from qms22.tables.columns.arrow_columns import column_of_values
from qms22.tables.columns.kinds import infer_kind

WORDS = [f"w{at}" for at in range(200)]


def kind(values: list[Any], name: str = "x") -> str:
    return infer_kind(column_of_values(name, values)).kind


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3.5, None], "number"),
        ([Decimal("1.5"), 2, 3], "number"),
        (["1", " 2.5", "1e3", None], "number"),
        (["1", "2", "1_0"], "category"),
        (["1", "2", "inf"], "category"),
        (["1", "2", "5more"] * 9, "category"),
        ([1, "a", 1.0, "b"] * 4, "category"),
        ([True, False, None], "boolean"),
        ([timedelta(hours=2), timedelta(minutes=5)], "number"),
        (["True", "false", ""], "boolean"),
        (["yes", "no"] * 9, "category"),
        ([0, 1, 1, 0], "number"),
        ([3, 3, 3, None], "constant"),
        (["a"] * 9, "constant"),
        ([None, None, np.nan], "constant"),
        ([" ", ""], "constant"),
        ([date(2024, 1, 1), date(2024, 1, 2)], "date"),
        ([datetime(2024, 1, 1, 5), None, datetime(2024, 1, 2)], "date"),
        (["2024-01-31", "2024-02-01T10:00:00Z", "2024-02-01 10:00:01.5"], "date"),
        (["31.01.2024", "1.2.2024"], "date"),
        (["01/31/2024 7:30", "02/01/2024 23:59:59"], "date"),
        (["31-01-2024", "01-02-2024"], "date"),
        (["2024/1/31", "2024/02/01"], "date"),
        (["31.02.2024", "01.02.2024"] * 5, "category"),
        (["01.02.2024 25:00", "01.02.2024 03:00"] * 5, "category"),
        (["7:30", "8:30"] * 5, "date"),
        (["7:30", "8:30", "7:60", "9.99h"] * 5, "category"),
        (["$1,234.50", "$12.00", "($7.25)", "unknown"] * 4 + ["$5.00"] * 30, "number"),
        (["12 %", "7 %", "-"] * 2 + ["9 %"] * 30, "number"),
        (["007", "018", "123"] * 5, "category"),
        ([f"{at:05}" for at in range(200)], "identifier"),
        (["2024-W05", "2024-W06"] * 9, "date"),
        (["2024-05", "2024-06"] * 9, "date"),
        ([20240131, 20240229, 20240301, 20241224] * 5, "date"),
        ([20240131, 20240299, 20240301, 20241277] * 5, "number"),
        (WORDS[:50] * 2, "category"),
        (WORDS[:51] * 2, "identifier"),
        (WORDS[:51] * 3, "category"),
        ([*WORDS[:51], "once"] * 2 + WORDS[:51] + ["twice"], "identifier"),
        (WORDS[:51] * 6, "category"),
        (WORDS[:51] * 6 + WORDS[60:70], "category"),
        (WORDS[:2] * 50 + WORDS[10:110], "category"),
        (WORDS[:2] * 40 + WORDS[10:110], "identifier"),
        (WORDS[:51] * 21, "category"),
        (WORDS, "identifier"),
        (WORDS[:9], "category"),
        ([f"{word} and more" for word in WORDS], "text"),
        ([f"{word} and more" for word in WORDS] * 2, "text"),
        ([word * 40 for word in WORDS], "text"),
        ([[1], {"a": 2}, None], "text"),
    ],
)
def test_kinds(values: list[Any], expected: str) -> None:
    assert kind(values) == expected


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("plz", [80331 + 97 * (at % 150) for at in range(300)], "identifier"),
        ("customer_number", [70000 + 311 * (at % 20) for at in range(300)], "category"),
        ("Phone2", [491701234567 + 7919 * (at % 290) for at in range(300)], "identifier"),
        ("Kundennummer", [f"{7000 + 311 * (at % 20)}" for at in range(300)], "category"),
        ("visit_no", [1 + at % 9 for at in range(300)], "number"),
        ("imsi", [232150000000007 + 7919 * (at % 40) for at in range(300)], "category"),
        ("imsi", [232150000000007 + at % 40 for at in range(300)], "number"),
        ("energy", [10_000_000 + 33_000 * (at % 40) for at in range(300)], "number"),
        ("list price", [10_007 + 7919 * (at % 10) for at in range(300)], "number"),
        ("account_balance", [5000 + 311 * (at % 20) for at in range(300)], "number"),
        ("account", [f"{5000 + 311 * (at % 20):,}" for at in range(300)], "number"),
        ("account", [5000.5 + 311 * (at % 20) for at in range(300)], "number"),
        ("id", [5, 3, 9], "identifier"),
        ("customer_id", [5, 3, 9], "identifier"),
        ("PassengerId", [1, 2, 3], "identifier"),
        ("ID_ORDER", ["007", "008", "009"], "identifier"),
        ("Nr", [1, 1, 2, 3], "identifier"),
        ("Unnamed: 0", [0, 1, 2], "identifier"),
        ("index", [0, 1, 2], "identifier"),
        ("id", [5, 5, 3], "number"),
        ("NO", [1.5, 2.5, 3.0], "number"),
        ("humid", [5, 3, 9], "number"),
        ("number_of_rooms", [5, 3, 9], "number"),
        ("refractive index", [5, 3, 9], "number"),
        ("age", [1, 2, 3], "number"),
        ("ticket", [*range(7, 107, 2)], "identifier"),
        ("ticket", ["7", *map(str, range(8, 100, 3))], "identifier"),
        ("ticket", [*range(7, 107, 2), 7], "number"),
        ("ticket", [*range(7, 107, 2), *range(1, 20)], "identifier"),
        ("ticket", [*range(7, 107, 2), *range(1, 20), *range(9)], "number"),
        ("ticket", [*range(7, 30)], "number"),
        ("amount", [at**3 for at in range(50)], "number"),
        ("row", [at * 37 % 1009 for at in range(500)], "identifier"),
        ("row", [at * 37 % 1009 for at in [*range(500), 7]], "identifier"),
        ("row", [at * 37 % 1009 for at in [*range(500), *range(40)]], "number"),
        ("count", [at**3 % 1009 for at in range(500)], "number"),
        ("size", [at * 1_000_003 % 10**8 for at in range(500)], "number"),
        ("county", [1 + 2 * (at % 60) for at in range(300)], "category"),
        ("home team", [1 + at % 30 for at in range(300)], "category"),
        ("county", list(range(0, 5000, 50)) * 2, "number"),
        ("http_status", [200, 200, 404, 301] * 50, "category"),
        ("status", [at % 97 + at / 4 for at in range(200)], "number"),
        ("bus", [1000 + 7 * (at % 30) for at in range(300)], "category"),
        # Where numbers are stored as such, texts of digits are codes.
        ("wagon", [str(1000 + 7 * (at % 30)) for at in range(300)], "category"),
        ("wagon", [*(str(1000 + 7 * (at % 30)) for at in range(300)), "?"], "category"),
        ("wagon", [str(900 + 7 * (at % 30)) for at in range(300)], "number"),
        ("wagon", [str(1990 + at % 30) for at in range(300)], "number"),
        ("wagon", [str(1000 + 7 * (at % 200)) for at in range(500)], "number"),
        ("wagon", [1000 + 7 * (at % 30) for at in range(300)], "number"),
        ("team_size", [1 + at % 30 for at in range(300)], "number"),
    ],
)
def test_identifiers_need_the_values_and_often_the_name(
    name: str, values: list[Any], expected: str
) -> None:
    assert kind(values, name) == expected


def test_declared_categories_stay_so() -> None:
    column = pd.DataFrame({"code": pd.Categorical([1, 2, 3, 1]), "x": [1.0, 2.0, 3.0, 4.0]})
    assert TabularEncoder().fit(column).columns_[0].kind == "category"


def test_every_kind_is_shown() -> None:
    encoder = TabularEncoder().fit(everything())
    notes = {column.name: column.note for column in encoder.columns_}
    assert {column.name: column.kind for column in encoder.columns_} == {
        "age": "number",
        "height": "number",
        "city": "category",
        "member": "boolean",
        "customer_id": "identifier",
        "code": "identifier",
        "remark": "text",
        "unit": "constant",
        "visited": "date",
        "written": "date",
    }
    assert encoder.typical_["city"] == "Rome"
    assert encoder.typical_["member"] == "false"
    assert notes["code"] == f"{N} different texts in {N} rows; ignored"
    assert notes["unit"] == "always 'mm'; ignored"
    assert notes["visited"] == "days since 2024-01-01, hour and weekday as sine and cosine"
    assert encoder.typical_["visited"] == "2024-01-25 19:00"
    assert encoder.typical_["written"] == "25.01.2024 19:00"


def test_doubtful_dates_are_noted() -> None:
    table = pd.DataFrame({"when": ["01/02/2024", "03/04/2024"]})
    assert "the other way fits too" in TabularEncoder().fit(table).columns_[0].note
