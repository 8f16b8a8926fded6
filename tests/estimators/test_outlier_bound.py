"""The lower bound for the number of outliers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import betabinom

from qms22.estimators.conformal import estimate_contamination, random_p_values
from qms22.estimators.outlier_bound import OutlierBound, bound_outliers, counts_by_split, cut_ranks


def bound(p_values: np.ndarray, n_calibration: int, confidence: float) -> OutlierBound:
    ranks = cut_ranks(n_calibration)
    n_above = counts_by_split(np.atleast_2d(p_values), n_calibration, ranks)
    return bound_outliers(n_above, p_values.shape[-1], n_calibration, confidence, ranks)


def naive_bound(p_values: np.ndarray, n_calibration: int, confidence: float) -> int:
    """Try all numbers of outliers, the lowest first."""
    ranks = cut_ranks(n_calibration)
    for n_outliers in range(len(p_values)):
        n_normal = len(p_values) - n_outliers
        chances = []
        for rank in ranks:
            n_below = np.count_nonzero(p_values <= rank / (n_calibration + 1))
            # So many of those below are normal at least.
            chance = betabinom(n_normal, rank, n_calibration + 1 - rank).sf(
                n_below - n_outliers - 1
            )
            chances.append(chance)
        if min(chances) > (1 - confidence) / len(ranks):
            return n_outliers
    return len(p_values)


def draw(rng: np.random.Generator, n_batch: int, n_outliers: int, n_calibration: int) -> np.ndarray:
    """Return p-values of a batch whose first rows are outliers, some of them hardly unusual."""
    scores = rng.normal(size=n_batch + n_calibration)
    scores[:n_outliers] += rng.choice([1.0, 3.0, 9.0])
    return random_p_values(scores, n_batch, rng.permutation(len(scores)))


def test_ranks_from_the_middle_to_the_first() -> None:
    assert cut_ranks(1) == [1]
    assert cut_ranks(99) == [50, 8, 1]
    for n_calibration in range(1, 500):
        ranks = cut_ranks(n_calibration)
        assert ranks[0] == max(1, (n_calibration + 1) // 2)
        assert ranks[-1] == 1
        assert ranks == sorted(set(ranks), reverse=True)


@pytest.mark.parametrize("seed", range(8))
def test_bound_is_the_naive_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_batch, n_calibration = int(rng.integers(2, 60)), int(rng.integers(1, 120))
    p_values = draw(rng, n_batch, n_batch // 3, n_calibration)
    for confidence in (0.5, 0.9, 0.99):
        found = bound(p_values, n_calibration, confidence)
        assert found.fewest == naive_bound(p_values, n_calibration, confidence)


def test_p_value_is_valid_in_all_orders_of_the_scores() -> None:
    n_batch, n_calibration = 5, 8
    p_values = []
    for places in combinations(range(n_batch + n_calibration), n_batch):
        scores = np.empty(n_batch + n_calibration)
        others = sorted(set(range(len(scores))) - set(places))
        scores[:n_batch], scores[n_batch:] = places, others
        ranks = random_p_values(scores, n_batch, np.arange(len(scores)))
        p_values.append(bound(ranks, n_calibration, 0.9).p_value)
    found = np.array(p_values)
    for level in np.unique(found):
        assert np.mean(found <= level) <= level + 1e-12


@pytest.mark.parametrize(("n_batch", "n_outliers", "n_calibration"), [(60, 0, 80), (60, 9, 80)])
def test_bound_holds_as_often_as_promised(
    n_batch: int, n_outliers: int, n_calibration: int
) -> None:
    rng = np.random.default_rng(0)
    n_runs = 300
    bounds = [
        bound(draw(rng, n_batch, n_outliers, n_calibration), n_calibration, 0.8).fewest
        for _ in range(n_runs)
    ]
    share = np.mean(np.array(bounds) <= n_outliers)
    assert share >= 0.8 - 3 * np.sqrt(0.16 / n_runs)
    assert max(bounds) > 0


def test_a_few_far_rows_are_enough() -> None:
    p_values = np.concatenate([np.full(6, 1 / 3001), np.linspace(0.01, 1, 994)])
    found = bound(p_values, 3000, 0.95)
    assert found.fewest >= 1
    assert found.p_value < 0.01


def test_rows_without_outliers_have_no_bound_and_a_p_value_of_one() -> None:
    assert bound(np.ones(20), 100, 0.95) == (0, 1.0)


def test_decision_and_p_value_agree() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        found = bound(draw(rng, 50, 4, 90), 90, 0.9)
        assert (found.fewest > 0) == (found.p_value <= 0.1)


def test_several_splits_are_merged() -> None:
    rng = np.random.default_rng(0)
    p_values = np.array([draw(rng, 80, 20, 100) for _ in range(3)])
    many = bound(p_values, 100, 0.9)
    each = [bound(split, 100, 0.9).fewest for split in p_values]
    assert 0 < many.fewest <= max(each)


def test_low_end_of_the_interval_is_the_same_bound() -> None:
    rng = np.random.default_rng(0)
    p_values = draw(rng, 100, 30, 200)
    low = estimate_contamination(p_values[np.newaxis], 200, 0.9).low
    assert low == pytest.approx(bound(p_values, 200, 0.95).fewest / 100)
