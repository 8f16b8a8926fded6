"""Numbers in texts: blood pressures, places, sizes; and codes, which have none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from looking import look

from qms22.checks.codings import TextParts
from qms22.checks.dependence import OrderCheck
from qms22.checks.single import ValueCheck
from qms22.tables.columns.arrow_columns import column_of_values

N_NORMAL, N_BATCH, ODD = 500, 150, 7


def patients(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw blood pressures, and places as numbers and as a text."""
    rng = np.random.default_rng(seed)
    high = rng.normal(128, 30, n_rows).round()
    low = (high - rng.normal(45, 4, n_rows)).round()
    latitude, longitude = (
        rng.uniform(40, 45, n_rows).round(2),
        rng.uniform(-79, -73, n_rows).round(2),
    )
    return pd.DataFrame(
        {
            "pressure": [f"{a:.0f}/{b:.0f}" for a, b in zip(high, low, strict=True)],
            "latitude": latitude,
            "place": [f"({a}, {b})" for a, b in zip(latitude, longitude, strict=True)],
        }
    )


@pytest.mark.parametrize(
    ("cells", "column", "sentence"),
    [
        (
            {"pressure": "428/79"},
            "pressure",
            "pressure 428/79 (1st number 428); 99 % of 500 normal rows",
        ),
        ({"pressure": "80/128"}, "pressure", "pressure 80/128 (2nd number 128) is above"),
        (
            {"latitude": 44.1, "place": "(41.2, -75.5)"},
            "place",
            "place (41.2, -75.5) (1st number 41.2)",
        ),
    ],
)
def test_numbers_in_texts(cells: dict[str, object], column: str, sentence: str) -> None:
    normal, batch = patients(N_NORMAL, 0), patients(N_BATCH, 1)
    for name, value in cells.items():
        batch.loc[ODD, name] = value
    found = look(normal, batch)
    assert ODD in found.ranking[:2]
    checks = [at for at in np.argsort(-found.surprises[ODD]) if found.surprises[ODD, at] > 5]
    said = [found.checks.describe(found.rows, np.array([ODD]), at, show)[0].text for at in checks]
    assert any(sentence in each for each in said)
    assert column in {name for at in checks for name in found.checks.columns_of(at)}


def show(name: str, value: float) -> str:
    return f"{value:g}"


def test_the_order_of_parts() -> None:
    found = look(patients(N_NORMAL, 0), patients(N_BATCH, 1))
    assert found.by(OrderCheck, "pressure (2nd number)", "pressure (1st number)").max() == 0
    assert found.by(ValueCheck, "pressure (1st number)").max() > 0


@pytest.mark.parametrize(
    "form", ["AB{0}/{1}", "10.{0}.{1}", "2024-{0}-{1}", "0{0}/{1}", "{0}:{1}", "no {0}"]
)
def test_codes_have_no_numbers(form: str) -> None:
    texts = [form.format(at, 2 * at) for at in range(100, 160)]
    assert TextParts.learn(column_of_values("code", texts)) is None


def test_texts_that_are_not_written_alike() -> None:
    texts = [f"{at}/{at + 1}" if at % 5 else f"{at} and {at + 1}" for at in range(100)]
    assert TextParts.learn(column_of_values("code", texts)) is None


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("10.9.12.44", "(2nd number 9); of 500 normal rows none is above 4"),
        ("10.2.12.44", "(2nd number 2); never seen in 500 normal rows (0, 1, 4)"),
        ("10.1.233.44", "(3rd number 233); of 500 normal rows none is above 29"),
        ("10.1.12.999", "(4th number 999); "),
    ],
)
def test_addresses_of_computers(address: str, sentence: str) -> None:
    tables = []
    for n_rows, seed in ((N_NORMAL, 0), (N_BATCH, 1)):
        rng = np.random.default_rng(seed)
        parts = rng.choice([0, 1, 4], n_rows), rng.integers(30, size=n_rows)
        hosts = rng.integers(1, 255, n_rows)
        texts = [f"10.{a}.{b}.{c}" for a, b, c in zip(*parts, hosts, strict=True)]
        tables.append(pd.DataFrame({"ip": texts, "bytes": rng.lognormal(8, 1, n_rows).round()}))
    tables[1].loc[ODD, "ip"] = address
    found = look(*tables)
    assert found.ranking[0] == ODD
    assert f"ip {address} {sentence}" in found.reason(ODD)
