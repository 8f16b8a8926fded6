"""Numbers that are sums, products and shares of others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from looking import Looked, look

from qms22.checks.arithmetic import ArithmeticCheck, learn_arithmetic
from qms22.tables.columns.cells import Cells

N_NORMAL, N_BATCH, ODD = 600, 120, 7
MONTHS = ["jan", "feb", "mar", "apr"]


def claims(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw claims whose numbers are computed from each other; a write-off has a net of its own."""
    rng = np.random.default_rng(seed)
    hours, rate = rng.uniform(0.5, 9, n_rows).round(1), rng.choice([88.0, 101.0, 133.0], n_rows)
    labour, parts = (hours * rate).round(2), rng.lognormal(5, 1, n_rows).round(2)
    paint = np.where(rng.random(n_rows) < 0.5, 0.0, rng.lognormal(4, 1, n_rows).round(2))
    is_repaired = rng.random(n_rows) < 0.85
    net = np.where(is_repaired, labour + parts + paint, rng.lognormal(8, 1, n_rows)).round(2)
    vat = (0.19 * net).round(2)
    counts = rng.poisson(40, (n_rows, len(MONTHS)))
    return pd.DataFrame(
        {
            "settled": np.where(is_repaired, "repair", "write-off"),
            "hours": hours,
            "rate": rate,
            "labour": labour,
            "parts": parts,
            "paint": paint,
            "net": net,
            "vat": vat,
            "gross": (net + vat).round(2),
            **{name: counts[:, at] for at, name in enumerate(MONTHS)},
            "year": counts.sum(axis=1),
            "weight": rng.normal(50, 9, n_rows),
        }
    )


@pytest.fixture(scope="module")
def normal() -> pd.DataFrame:
    return claims(N_NORMAL, 0)


def changed(normal: pd.DataFrame, column: str, value: float, *, settled: str = "repair") -> Looked:
    batch = claims(N_BATCH, 1)
    row = batch[batch["settled"] == settled].iloc[ODD].copy()
    row[column] = value
    batch.loc[ODD] = row
    return look(normal, batch)


def rules(table: pd.DataFrame) -> dict[str, set[tuple[str, ...]]]:
    cells = {
        name: Cells(name, "number", table[name].to_numpy(float))
        for name in table.columns.drop("settled", errors="ignore")
    }
    found: dict[str, set[tuple[str, ...]]] = {}
    for check in learn_arithmetic(cells, list(cells)):
        found.setdefault(check.columns[0], set()).add(check.columns[1:])
    return found


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("labour", 1012.13, "where hours × rate is"),
        ("vat", 777.77, "where 0.19 × net is"),
        ("gross", 4321.99, "where net + vat is"),
        ("net", 5555.01, "where labour + parts + paint is"),
        ("year", 203.0, "where the sum of jan to apr is"),
    ],
)
def test_what_is_not_computed_right_leads(
    normal: pd.DataFrame, column: str, value: float, says: str
) -> None:
    found = changed(normal, column, value)
    assert found.by(ArithmeticCheck)[ODD] == found.by(ArithmeticCheck).max() > 10
    assert found.ranking[0] == ODD
    assert says in found.says(ODD, ArithmeticCheck, column)


def test_a_rule_names_the_rows_that_it_is_about(normal: pd.DataFrame) -> None:
    found = changed(normal, "net", 5555.01)
    n_repaired = int((normal["settled"] == "repair").sum())
    ends = f"they are equal in all {n_repaired} normal rows with settled repair"
    assert found.says(ODD, ArithmeticCheck, "net", "labour").endswith(ends)
    other = changed(normal, "parts", 1.0, settled="write-off")
    assert not other.by(ArithmeticCheck, "net", "labour")[ODD]


def test_rows_that_are_right_are_not_odd(normal: pd.DataFrame) -> None:
    found = look(normal, claims(N_BATCH, 2))
    assert not found.by(ArithmeticCheck).any()


def test_rules_are_those_of_the_table(normal: pd.DataFrame) -> None:
    found = rules(normal[normal["settled"] == "repair"].drop(columns="settled"))
    assert found == {
        "labour": {("hours", "rate")},
        "net": {("labour", "parts", "paint")},
        "vat": {("net",)},
        "gross": {("net", "vat"), ("net",)},
        "year": {tuple(MONTHS)},
    }


def test_small_whole_numbers_and_noise_have_no_rules() -> None:
    rng = np.random.default_rng(0)
    small = {f"n{at}": rng.integers(1, 4, 400) for at in range(6)}
    assert rules(pd.DataFrame(small)) == {}
    sparse = {f"s{at}": (rng.random(400) < 0.02) * rng.integers(1, 9, 400) for at in range(6)}
    assert rules(pd.DataFrame(sparse)) == {}
    assert rules(pd.DataFrame(rng.normal(size=(400, 12)), columns=list("abcdefghijkl"))) == {}


def test_the_order_of_rows_does_not_matter(normal: pd.DataFrame) -> None:
    assert rules(normal) == rules(normal.sample(frac=1.0, random_state=1))


def test_a_wrong_row_among_the_normal_ones_hides_nothing(normal: pd.DataFrame) -> None:
    dirty = normal.copy()
    dirty.loc[[5, 50], "gross"] = 1.0
    found = changed(dirty, "gross", 4321.99)
    assert found.ranking[0] == ODD
    assert f"they are equal in {N_NORMAL - 2} of {N_NORMAL} normal rows" in found.says(
        ODD, ArithmeticCheck, "gross", "net", "vat"
    )
