"""A batch as a whole: what all of it does is not odd, and clean rows are as odd as normal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames
from looking import look
from numpy.random import Generator

from qms22 import detect
from qms22.checks import learn_checks
from qms22.checks.single import LevelCheck
from qms22.checks.surprise import NumberReference

ODD = 7


def sales(n_rows: int, rng: Generator, *, first_customer: int = 0) -> pd.DataFrame:
    """Draw sales of mixed columns, with some cells missing."""
    price, quantity = rng.lognormal(3, 0.6, n_rows).round(2), rng.integers(1, 9, n_rows)
    minutes = rng.integers(0, 90 * 24 * 60, n_rows)
    customer = first_customer + rng.zipf(1.5, n_rows) % 150
    table = pd.DataFrame(
        {
            "sale": [f"S-{number:06}" for number in rng.permutation(10**6)[:n_rows]],
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, "min"),
            "customer": [f"C{number:04}" for number in customer],
            "shop": rng.choice(
                ["north", "south", "west", "kiosk"], n_rows, p=[0.5, 0.3, 0.17, 0.03]
            ),
            "price": price,
            "quantity": quantity,
            "total": (price * quantity).round(2),
            "weight": rng.normal(5, 1, n_rows).round(2),
            "is_gift": rng.random(n_rows) < 0.1,
            "remark": rng.choice(["", "call first", "leave at door", "no rush"], n_rows),
        }
    )
    table.loc[rng.random(n_rows) < 0.05, "weight"] = np.nan
    return table


def oddness(normal: pd.DataFrame, batch: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return how odd known-normal rows are, each compared with the others, and the batch."""
    encoded = encode_frames(normal, batch, missing="impute")
    own = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0)
    checks = own.checks
    return own.oddness, checks.surprises(checks.read(encoded.batch_cells)).max(axis=1)


def narrow(n_rows: int, rng: Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": rng.standard_t(3, n_rows),
            "b": rng.choice(list("uvwxyz"), n_rows, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01]),
            "c": rng.poisson(1.5, n_rows),
        }
    )


def codes(n_rows: int, rng: Generator) -> pd.DataFrame:
    shapes = rng.choice(["{:04}", "{:05}", "A{:03}", "B-{:02}"], n_rows, p=[0.6, 0.3, 0.08, 0.02])
    return pd.DataFrame(
        {
            "code": [shape.format(rng.integers(100)) for shape in shapes],
            "group": [f"g{number}" for number in rng.geometric(0.05, n_rows)],
            "x": rng.normal(size=n_rows),
            "y": np.where(rng.random(n_rows) < 0.3, np.nan, rng.gamma(2, 1, n_rows)),
        }
    )


@pytest.mark.parametrize("draw", [sales, narrow, codes])
def test_clean_rows_are_as_odd_as_normal_ones(draw: Any) -> None:
    """About 5 % of clean batches are beyond the 95 % quantile of the normal rows."""
    shares, medians = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        own, other = oddness(draw(800, rng), draw(800, rng))
        shares.append(np.mean(other > np.quantile(own, 0.95)))
        medians.append(np.mean(other > np.median(own)))
    # The deviation of a mean of six such shares is about 0.005.
    assert np.mean(shares) == pytest.approx(0.05, abs=0.02)
    assert max(shares) < 0.1
    # Of many rows equally odd, few are beyond the median.
    assert np.mean(medians) < 0.57


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 30.0), (3.0, 0.0), (0.5, 0.0)])
def test_what_all_rows_do_is_not_odd(factor: float, offset: float) -> None:
    rng = np.random.default_rng(0)
    normal, batch = sales(800, rng), sales(300, rng)
    batch["weight"] = factor * batch["weight"] + offset
    own, other = oddness(normal, batch)
    assert np.mean(other > np.quantile(own, 0.95)) < 0.12
    # One that is far from the others of the batch leads, where the move is a shift.
    batch.loc[ODD, "weight"] = factor * 25.0 + offset
    own, other = oddness(normal, batch)
    assert np.argmax(other) == ODD


def test_an_outlier_leads_a_batch_that_moved() -> None:
    rng = np.random.default_rng(0)
    normal, batch = sales(800, rng), sales(300, rng)
    for table, shift in ((normal, 0.0), (batch, 30.0)):
        table["weight"] += shift
    batch.loc[ODD, "weight"] = 70.0
    found = detect(normal, batch, fdr=0.1, missing="impute", n_jobs=1)
    assert found.ranking[0] == ODD
    assert found.flagged.sum() <= 3
    assert found.verdict is not None
    assert "weight" in [column.name for column in found.verdict.moved]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.4])
def test_anomalies_do_not_hide_in_a_move(share: float) -> None:
    """A large share of absurd values shifts the median a little, and widens nothing."""
    rng = np.random.default_rng(0)
    reference = NumberReference.learn(rng.normal(50, 5, 500))
    assert reference is not None
    values = rng.normal(50, 5, 300)
    is_odd = np.arange(300) < share * 300
    values[is_odd] = 7e7
    surprises = reference.aligned(values).surprise(values)
    assert surprises[is_odd].min() > 30
    assert surprises[~is_odd].max() < 12


def test_new_customers_are_not_odd() -> None:
    """Several rows of each new customer are no slips; a slip is."""
    rng = np.random.default_rng(0)
    names = [f"C{number:04}" for number in range(300)]
    tables = []
    for n_rows, known in ((900, names[:200]), (300, names[100:])):
        customer = rng.choice(known, n_rows)
        tables.append(pd.DataFrame({"customer": customer, "x": rng.normal(size=n_rows)}))
    normal, batch = tables
    is_new = batch["customer"].isin(names[200:]).to_numpy()
    assert is_new.mean() > 0.4
    found = look(normal, batch)
    assert found.by(LevelCheck, "customer")[is_new].max() < 2
    # A single new one among known customers is odd.
    customer = rng.choice(names[:200], 300)
    customer[ODD] = "C0999"
    few = look(normal, pd.DataFrame({"customer": customer, "x": batch["x"]}))
    assert few.by(LevelCheck, "customer")[ODD] > found.by(LevelCheck, "customer")[is_new].max() + 3


def test_parts_of_a_table_and_the_order_of_its_rows_do_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    normal, batch = sales(700, rng), sales(300, rng)
    encoded = encode_frames(normal, batch, missing="impute")
    own = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0)
    checks = own.checks
    rows = checks.read(encoded.batch_cells)
    expected = checks.look(rows)
    monkeypatch.setattr("qms22.checks.table_checks.ROWS_AT_ONCE", 64)
    scores, odd = checks.look(rows)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(odd.surprises, expected[1].surprises)
    monkeypatch.undo()
    order = np.random.default_rng(1).permutation(300)
    turned = encode_frames(normal, batch.iloc[order].reset_index(drop=True), missing="impute")
    again = learn_checks(turned.encoder, turned.normal_cells, turned.batch_cells, 0)
    scores, _ = again.checks.look(again.checks.read(turned.batch_cells))
    np.testing.assert_array_equal(scores, expected[0][order])
    np.testing.assert_array_equal(again.oddness, own.oddness)
    # The normal rows in another order teach the same.
    order = np.random.default_rng(2).permutation(700)
    turned = encode_frames(normal.iloc[order].reset_index(drop=True), batch, missing="impute")
    again = learn_checks(turned.encoder, turned.normal_cells, turned.batch_cells, 0)
    np.testing.assert_allclose(again.oddness, own.oddness[order], atol=0.5)
