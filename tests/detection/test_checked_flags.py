"""Flags keep their bound if checks of single cells raise scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22 import QMS22Ensemble
from qms22.detection.calibration import calibrate_tables, compare_tables, pool_tables
from qms22.detection.encoding import encode_tables
from qms22.estimators import full_conformal, relations

QUICK = QMS22Ensemble(n_splits=2, n_members=3, n_components=2, max_iter=2, random_state=0)
LEVELS = (0.1, 0.2)


def draw(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw normal rows: a few of them have rare levels, heavy tails, gaps, and are repeated."""
    price = np.exp(rng.normal(3, 1, n_rows)).round(1)
    quantity = rng.integers(1, 6, n_rows)
    table = pd.DataFrame(
        {
            "price": price,
            "quantity": quantity,
            "total": price * quantity,
            "tail": rng.standard_t(2, n_rows).round(2),
            "level": [f"level {level}" for level in rng.zipf(2.0, n_rows)],
            "place": rng.choice(["a", "b", "c"], n_rows, p=[0.6, 0.3, 0.1]),
            "same": "x",
        }
    )
    table.loc[rng.uniform(size=n_rows) < 0.05, "total"] = np.nan
    table.loc[rng.uniform(size=n_rows) < 0.03, "place"] = None
    table.loc[rng.uniform(size=n_rows) < 0.005, "same"] = "y"
    sold = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.uniform(0, 50, n_rows), "D")
    table["sold"] = sold.floor("min")
    repeated = rng.uniform(size=n_rows) < 0.1
    usual = (20.0, 2, 40.0, 0.5, "level 1", "a", "x", pd.Timestamp("2024-01-20 12:00"))
    for name, value in zip(table, usual, strict=True):
        table.loc[repeated, name] = value
    return table


def false_shares(road: str, n_outliers: int, seed: int) -> list[float]:
    """Return the share of false flags at each level."""
    rng = np.random.default_rng(seed)
    normal, batch = draw(200, rng), draw(100, rng)
    is_outlier = np.arange(len(batch)) < n_outliers
    batch.loc[is_outlier, "total"] = 1e5
    batch.loc[is_outlier, "place"] = "z"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if road == "split":
            calibration = calibrate_tables(normal, batch, QUICK, is_checked=True, seed=seed)
            flags = [calibration.flag(level) for level in LEVELS]
        else:
            pooled = pool_tables(encode_tables(normal, batch), seed=seed)
            full = compare_tables(pooled, QUICK, is_checked=True, seed=seed)
            assert full is not None
            flags = [full.flag(level) for level in LEVELS]
    return [float((flag & ~is_outlier).sum() / max(1, flag.sum())) for flag in flags]


@pytest.mark.slow
@pytest.mark.parametrize("n_outliers", [0, 10])
@pytest.mark.parametrize("road", ["full", "split"])
def test_the_bound_holds_with_checks(
    road: str, n_outliers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_conformal, "_MOST_TREES", 600)
    shares = np.array([false_shares(road, n_outliers, seed) for seed in range(40)])
    errors = shares.std(axis=0) / np.sqrt(len(shares))
    assert (shares.mean(axis=0) <= LEVELS + 2 * errors).all()


def test_outliers_are_found_by_checks() -> None:
    """The bound above is not kept by flagging nothing."""
    rng = np.random.default_rng(0)
    normal, batch = draw(400, rng), draw(100, rng)
    batch.loc[:11, "total"] = 1e5
    pooled = pool_tables(encode_tables(normal, batch), seed=0)
    full = compare_tables(pooled, QUICK, is_checked=True, seed=0)
    assert full is not None
    assert full.flag(0.2)[:12].sum() >= 10


def test_pooled_rows_are_treated_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known-normal row and one of the batch change places, and take their oddness along."""
    folds = []
    learn_design = relations._learn_design

    def watched(inputs: Any, is_log: Any, fold: np.ndarray) -> Any:
        folds.append(fold)
        return learn_design(inputs, is_log, fold)

    monkeypatch.setattr(relations, "_learn_design", watched)
    rng = np.random.default_rng(0)
    normal, batch = draw(120, rng), draw(60, rng)
    batch.loc[4, ["total", "place"]] = 1e5, "z"
    expected = pool_tables(encode_tables(normal, batch), seed=0).oddness
    fold = folds[0]
    place = np.arange(len(fold))
    swapped_normal, swapped_batch = normal.copy(), batch.copy()
    for of_batch in (4, 17, 40):
        # Parts of the rows are drawn at random; within one of them places are equal.
        of_normal = np.flatnonzero(fold[: len(normal)] == fold[len(normal) + of_batch])[of_batch]
        swapped_normal.loc[of_normal] = batch.loc[of_batch]
        swapped_batch.loc[of_batch] = normal.loc[of_normal]
        place[[of_normal, len(normal) + of_batch]] = len(normal) + of_batch, of_normal
    found = pool_tables(encode_tables(swapped_normal, swapped_batch), seed=0).oddness
    np.testing.assert_array_equal(found[place], expected)
