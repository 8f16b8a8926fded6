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


def order_lines(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw order lines with a discount in percent, a rate of tax, fees and a volume."""
    rng = np.random.default_rng(seed)
    pieces, price = rng.integers(1, 9, n_rows), rng.lognormal(3, 0.6, n_rows).round(2)
    discount = rng.choice([0, 5, 10, 15], n_rows, p=[0.6, 0.2, 0.15, 0.05])
    line = (pieces * price * (1 - discount / 100)).round(2)
    tax = rng.choice([7, 19], n_rows)
    fee = rng.choice([4.9, 9.9, 14.9], n_rows)
    sides = rng.integers(10, 99, (3, n_rows))
    return pd.DataFrame(
        {
            "pieces": pieces,
            "price": price,
            "discount %": discount,
            "line": line,
            "tax rate": tax,
            "gross": (line * (1 + tax / 100)).round(2),
            "fee": fee,
            "billed": (1.07 * (line + fee)).round(2),
            **dict(zip(("length", "width", "height"), sides, strict=True)),
            "litres": (sides.prod(axis=0) / 1000).round(1),
        }
    )


def test_percentages_rates_and_three_factors_make_numbers() -> None:
    normal = order_lines(N_NORMAL, 0)
    found = rules(normal)
    assert found["line"] == {("pieces", "price", "discount %")}
    assert ("line", "tax rate") in found["gross"]
    assert found["billed"] == {("line", "fee")}
    assert found["litres"] == {("length", "width", "height")}
    # Numbers beyond those of the normal rows keep the rules all the same.
    batch = order_lines(N_BATCH, 1)
    batch.loc[ODD + 1, ["pieces", "line"]] = 400, 400 * batch["price"][ODD + 1]
    batch.loc[ODD + 1, "discount %"] = 0
    batch.loc[ODD, ["line", "billed"]] += 0.5
    looked = look(normal, batch)
    assert looked.by(ArithmeticCheck, "line")[ODD] == looked.by(ArithmeticCheck, "line").max() > 8
    assert not looked.by(ArithmeticCheck, "line")[ODD + 1]
    says = looked.says(ODD, ArithmeticCheck, "line")
    assert "where 0.01 × pieces × price × (100 − discount %) is" in says
    assert "where 1.07 × (line + fee) is" in looked.says(ODD, ArithmeticCheck, "billed")


def test_small_whole_numbers_and_noise_have_no_rules() -> None:
    rng = np.random.default_rng(0)
    small = {f"n{at}": rng.integers(1, 4, 400) for at in range(6)}
    assert rules(pd.DataFrame(small)) == {}
    sparse = {f"s{at}": (rng.random(400) < 0.02) * rng.integers(1, 9, 400) for at in range(6)}
    assert rules(pd.DataFrame(sparse)) == {}
    shares = {f"p{at}": rng.choice([0, 5, 10, 20], 400) for at in range(4)} | small
    assert rules(pd.DataFrame(shares)) == {}
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
