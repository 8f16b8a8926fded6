"""The bound on false discoveries for tables: all that is learned is learned inside the split."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from promise import CASES, Case
from sklearn.base import clone

from qms22 import QMS22, QMS22Ensemble
from qms22.detection.calibration import _TableSplits, calibrate_tables
from qms22.detection.encoding import encode_tables
from qms22.detection.marks import MarkedRows
from qms22.estimators.calibration import CalibrationSplit

QUICK = QMS22Ensemble(n_splits=2, n_members=3, n_components=2, max_iter=2, random_state=0)
N_NORMAL, N_BATCH = 1000, 150
LEVEL = 0.1
N_RUNS = 60


def encoded_first(normal: pd.DataFrame, batch: pd.DataFrame, seed: int) -> np.ndarray:
    """Flag rows after an encoder has learned from all normal rows: the wrong order."""
    encoded = encode_tables(normal, batch)
    detector = clone(QUICK).set_params(random_state=seed)
    flagged: np.ndarray = detector.fit(encoded.known, unlabeled=encoded.rows).flag(LEVEL)
    return flagged


def calibrated(normal: pd.DataFrame, batch: pd.DataFrame, seed: int) -> np.ndarray:
    return calibrate_tables(normal, batch, QUICK, seed=seed).flag(LEVEL)


def false_share(
    case: Case, flag: Callable[[pd.DataFrame, pd.DataFrame, int], np.ndarray], seed: int
) -> float:
    rng = np.random.default_rng(seed)
    normal, batch = case.draw(N_NORMAL, rng), case.draw(N_BATCH, rng)
    is_outlier = np.arange(N_BATCH) < case.n_outliers
    batch.loc[is_outlier, ["x", "y"]] += case.shift
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flagged = flag(normal, batch, seed)
    return float((flagged & ~is_outlier).sum() / max(1, flagged.sum()))


@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case.name)
def test_the_bound_holds_on_categories(case: Case) -> None:
    case = replace(case, n_outliers=case.n_outliers // 2)
    shares = [false_share(case, calibrated, seed) for seed in range(N_RUNS)]
    assert np.mean(shares) <= LEVEL + 2 * np.std(shares) / np.sqrt(N_RUNS)


def test_encoding_first_breaks_the_bound() -> None:
    """The tables above are hard: what was wrong before is seen on them."""
    assert np.mean([false_share(CASES[0], encoded_first, seed) for seed in range(20)]) > 0.3


def awkward_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables whose encoding depends on which normal rows it is learned from."""
    rng = np.random.default_rng(0)
    n = 240
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.uniform(0, 60, n)), "D")
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "level": [f"level {level}" for level in rng.zipf(1.7, size=n)],
            "day": days,
            "mixed": [f"{value:.2f}" for value in rng.normal(size=n)],
            "holes": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    table.loc[3, "mixed"] = "none"  # the only text in a column of numbers
    return table[:180].reset_index(drop=True), table[180:].reset_index(drop=True)


@pytest.mark.parametrize("is_checked", [False, True])
@pytest.mark.parametrize("n_marked", [0, 12])
@pytest.mark.parametrize("detector", [QMS22(max_iter=2), QUICK], ids=["QMS22", "ensemble"])
def test_held_out_rows_cannot_be_told_from_the_batch(
    detector: QMS22 | QMS22Ensemble, n_marked: int, is_checked: bool
) -> None:
    """Rows of the mixture change places, and take their scores along to the bit."""
    normal, batch = awkward_tables()
    looked_at = batch[:n_marked].assign(level="marked", holes=None)
    marked = (MarkedRows("marks", looked_at, np.arange(n_marked) % 3 == 0),) if n_marked else ()
    rng = np.random.RandomState(1)
    positions = rng.permutation(len(normal))
    positions = np.concatenate([[3], positions[positions != 3]])  # held out: the text
    held_out, known = positions[:60], positions[60:]
    order = rng.permutation(len(batch) + len(held_out))

    def scores(normal: pd.DataFrame, batch: pd.DataFrame, order: np.ndarray) -> np.ndarray:
        split = CalibrationSplit(known, held_out, lambda: order, np.random.RandomState(2))
        return _TableSplits(normal, batch, detector, (), marked, is_checked).score(split)

    expected = scores(normal, batch, order)
    swaps = [(0, 0), (7, 31), (59, 5)]  # a row of the batch and a held-out one
    swapped_normal, swapped_batch = normal.copy(), batch.copy()
    place = np.arange(len(order))
    for of_batch, of_held_out in swaps:
        row = batch.iloc[of_batch]
        swapped_batch.iloc[of_batch] = normal.iloc[held_out[of_held_out]]
        swapped_normal.iloc[held_out[of_held_out]] = row
        place[[of_batch, len(batch) + of_held_out]] = place[[len(batch) + of_held_out, of_batch]]
    found = scores(swapped_normal, swapped_batch, place[order])
    np.testing.assert_array_equal(found[place], expected)


def test_later_dates_are_no_reason_to_flag() -> None:
    """The rule for dates works in the split as well, where most of the mixture is not later."""
    rng = np.random.default_rng(0)

    def month(n_rows: int, first: str) -> pd.DataFrame:
        days = pd.Timestamp(first) + pd.to_timedelta(rng.uniform(0, 28, n_rows), "D")
        return pd.DataFrame({"x": rng.normal(size=n_rows), "day": days})

    june, july = month(900, "2024-06-01"), month(60, "2024-07-01")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flagged = calibrate_tables(june, july, QUICK, seed=0).flag(LEVEL)
    assert flagged.sum() < 10
