"""Guarantees of flagging: by counting all cases where that can be done, else by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22.estimators import conformal
from qms22.estimators.conformal import (
    adaptive_benjamini_hochberg,
    benjamini_hochberg,
    conformal_p_values,
    e_benjamini_hochberg,
    e_values,
    estimate_contamination,
    flag_rows,
    least_to_flag,
    merge_p_values,
    random_p_values,
)

LEVELS = [0.05, 0.1, 0.2, 0.5, 0.9]


def naive_bh(p_values: NDArray[np.float64], level: float) -> list[int]:
    """The largest set of rows whose p-values are all at most level · its size / n."""
    for size in range(len(p_values), 0, -1):
        chosen = np.argsort(p_values, kind="stable")[:size]
        if p_values[chosen].max() <= level * size / len(p_values) + 1e-12:
            return sorted(chosen.tolist())
    return []


def naive_ebh(values: NDArray[np.float64], level: float) -> list[int]:
    """The largest set of rows whose e-values are all at least n / (level · its size)."""
    for size in range(len(values), 0, -1):
        chosen = np.argsort(-values, kind="stable")[:size]
        if values[chosen].min() >= len(values) / (level * size) * (1 - 1e-12):
            return sorted(chosen.tolist())
    return []


def roles(
    pool: list[int], n_normal: int, outliers: list[int]
) -> list[tuple[NDArray[np.float64], int]]:
    """Return the p-values for each choice of the unlabeled rows of a pool, the rest calibration.

    All choices are equally likely if the pool is exchangeable. Normal rows come first.
    """
    found = []
    for chosen in combinations(range(len(pool)), n_normal):
        scores = np.array([pool[at] for at in chosen] + outliers, dtype=np.float64)
        calibration = np.delete(np.array(pool, dtype=np.float64), chosen)
        found.append((conformal_p_values(scores, calibration), len(calibration)))
    return found


pools = st.lists(st.integers(0, 9), min_size=5, max_size=9)
outlier_scores = st.lists(st.integers(3, 12), max_size=4)


def test_p_values_are_ranks() -> None:
    p_values = conformal_p_values(np.array([9.0, 2.5, 2.0, -1.0]), np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(p_values, [1 / 4, 2 / 4, 3 / 4, 4 / 4])


def test_p_values_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, calibration = np.rint(9 * np.random.RandomState(0).normal(size=(2, 500)))
    expected = [(1 + np.count_nonzero(calibration >= score)) / 501 for score in scores]
    for n_at_once in (1, 7, 500, 1_000):
        monkeypatch.setattr(conformal, "_SEARCHED_AT_ONCE", n_at_once)
        np.testing.assert_array_equal(conformal_p_values(scores, calibration), expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_p_values_of_normal_rows_are_valid(pool: list[int]) -> None:
    p_values = np.sort([p_values[0] for p_values, _ in roles(pool, 1, [])])
    # Of n equally likely cases at most j have a p-value of at most j / n; with no ties, exactly j.
    ranks = np.arange(1, len(pool) + 1) / len(pool)
    assert (p_values >= ranks - 1e-12).all()
    if len(set(pool)) == len(pool):
        np.testing.assert_allclose(p_values, ranks)


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=30))
def test_only_the_order_of_scores_matters(values: list[int]) -> None:
    scores = np.array(values, dtype=float)
    unlabeled, calibration = scores[::2], scores[1::2]
    np.testing.assert_array_equal(
        conformal_p_values(unlabeled, calibration),
        conformal_p_values(np.exp(unlabeled), np.exp(calibration)),
    )


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30), st.data())
def test_ties_are_broken_by_the_order(values: list[int], data: st.DataObject) -> None:
    scores, n = np.array(values, dtype=float), len(values)
    n_unlabeled = data.draw(st.integers(1, n - 1))
    order = np.array(data.draw(st.permutations(range(n))))
    place = np.argsort(order)
    # As if scores differed by less than any difference between them, by their place in the order.
    apart = scores + place / (2 * n)
    expected = conformal_p_values(apart[:n_unlabeled], apart[n_unlabeled:])
    np.testing.assert_array_equal(random_p_values(scores, n_unlabeled, order), expected)


@given(st.lists(st.integers(1, 21), min_size=1, max_size=25), st.sampled_from(LEVELS))
def test_benjamini_hochberg_is_its_definition(steps: list[int], level: float) -> None:
    p_values = np.array(steps) / 21
    assert np.flatnonzero(benjamini_hochberg(p_values, level)).tolist() == naive_bh(p_values, level)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=25), st.sampled_from(LEVELS))
def test_e_benjamini_hochberg_is_its_definition(values: list[int], level: float) -> None:
    assert np.flatnonzero(e_benjamini_hochberg(np.array(values, dtype=float), level)).tolist() == (
        naive_ebh(np.array(values, dtype=float), level)
    )


@given(st.lists(st.integers(1, 21), min_size=1, max_size=25), st.sampled_from(LEVELS))
@example([1] * 8 + [10], 0.9)  # level / share is more than 2
def test_adaptive_benjamini_hochberg_is_its_definition(steps: list[int], level: float) -> None:
    p_values = np.array(steps) / 21
    # 20 calibration rows: K = 10, and p-values from 10/21 on count.
    share = (1 + sum(step >= 10 for step in steps)) / (len(steps) * 11 / 21)
    # Others are never flagged, however few rows are taken for normal ones.
    low = np.where(np.array(steps) < 10, p_values, np.inf)
    flagged = adaptive_benjamini_hochberg(p_values, 20, level)
    assert np.flatnonzero(flagged).tolist() == naive_bh(low, level / share)


def test_the_estimated_share_of_normal_rows_is_what_lets_more_rows_be_flagged() -> None:
    p_values = np.concatenate([np.full(60, 0.02), np.arange(1, 41) / 40]).round(2)
    assert np.count_nonzero(benjamini_hochberg(p_values, 0.1)) == 62
    # 21 rows are at least 0.5, so that 44 of 100 rows are taken for normal ones.
    assert np.count_nonzero(adaptive_benjamini_hochberg(p_values, 99, 0.1)) == 66


def test_rounding_does_not_keep_a_row_from_its_line() -> None:
    # 0.1 · 3 > 0.3 in floating point, and so on: at the line means flagged.
    for n_steps in range(1, 200):
        for at in range(1, n_steps + 1):
            assert benjamini_hochberg(np.array([at / n_steps]), at / n_steps)[0]
            assert e_benjamini_hochberg(np.array([n_steps / at]), at / n_steps)[0]


@settings(max_examples=examples(60), deadline=None)
@given(pools, st.integers(1, 4), outlier_scores, st.sampled_from(LEVELS))
def test_e_values_of_normal_rows_add_up_to_the_number_of_rows(
    pool: list[int], n_normal: int, outliers: list[int], level: float
) -> None:
    cases = roles(pool, n_normal, outliers)
    sums = [e_values(p, n_calibration, level)[:n_normal].sum() for p, n_calibration in cases]
    assert np.mean(sums) <= (n_normal + len(outliers)) * (1 + 1e-9)


def test_e_values_need_the_line_not_the_highest_flagged_p_value() -> None:
    # One normal row and 19 calibration rows. Where its p-value is low, the share of normal rows is
    # estimated as 2, so that it is flagged up to a p-value of 1/4.
    cases = roles(list(range(20)), 1, [])
    assert np.mean([e_values(p, n, 0.5)[0] for p, n in cases]) == pytest.approx(0.5)
    flagged = [adaptive_benjamini_hochberg(p, n, 0.5)[0] / (2 * p[0]) for p, n in cases]
    assert np.mean(flagged) > 1.1


@settings(max_examples=examples(60), deadline=None)
@given(pools, st.integers(1, 4), outlier_scores, st.sampled_from(LEVELS))
def test_false_discovery_rate_of_one_split(
    pool: list[int], n_normal: int, outliers: list[int], level: float
) -> None:
    shares = []
    for p_values, n_calibration in roles(pool, n_normal, outliers):
        flagged = flag_rows(p_values[np.newaxis], n_calibration, level)
        shares.append(flagged[:n_normal].sum() / max(1, flagged.sum()))
    assert np.mean(shares) <= level + 1e-9


def one_batch(
    rng: np.random.Generator, n_splits: int, n_normal: int, n_outliers: int, n_calibration: int
) -> NDArray[np.float64]:
    """Make p-values of splits that share their batch and half of the noise of their scores."""
    base = rng.normal(size=n_normal + n_outliers)
    base[n_normal:] += 4
    known = rng.normal(size=3 * n_calibration)
    splits = []
    for _ in range(n_splits):
        held_out = rng.permutation(known)[:n_calibration]
        scores = [part + 0.5 * rng.normal(size=len(part)) for part in (base, held_out)]
        splits.append(conformal_p_values(*scores))
    return np.array(splits)


@pytest.mark.parametrize("n_splits", [2, 5])
def test_several_splits_keep_the_level(n_splits: int) -> None:
    rng = np.random.default_rng(0)
    shares, found = [], []
    for _ in range(400):
        flagged = flag_rows(one_batch(rng, n_splits, 40, 10, 60), 60, 0.2)
        shares.append(flagged[:40].sum() / max(1, flagged.sum()))
        found.append(flagged[40:].mean())
    assert np.mean(shares) <= 0.2
    assert np.mean(found) > 0.5


def test_under_the_null_splits_seldom_flag_anything() -> None:
    rng = np.random.default_rng(0)
    for n_splits in (1, 4):
        runs = [flag_rows(one_batch(rng, n_splits, 20, 0, 40), 40, 0.3).any() for _ in range(500)]
        assert np.mean(runs) <= 0.3 + 3 * np.sqrt(0.3 * 0.7 / len(runs))


def test_merged_p_values_are_p_values() -> None:
    rng = np.random.default_rng(0)
    merged = [merge_p_values(one_batch(rng, 3, 20, 0, 30)) for _ in range(300)]
    for level in (0.05, 0.1, 0.3, 0.6):
        assert np.mean(np.array(merged) <= level) <= level
    assert np.max(merged) <= 1.0
    single = one_batch(rng, 1, 20, 0, 30)
    np.testing.assert_array_equal(merge_p_values(single), single[0])


def flagged_by(p_values: list[float], level: float) -> int:
    return int(benjamini_hochberg(np.array(p_values), level).sum())


@pytest.mark.parametrize("level", LEVELS)
def test_least_to_flag_is_the_least(level: float) -> None:
    for n_unlabeled in (1, 2, 5, 10, 37):
        for n_calibration in (1, 4, 9, 19, 20, 99, 199):
            lowest = 1 / (n_calibration + 1)
            # The best case: some rows with the lowest p-value there is, the others with 1.
            counts = [
                flagged_by([lowest] * k + [1.0] * (n_unlabeled - k), level)
                for k in range(1, n_unlabeled + 1)
            ]
            possible = [count for count in counts if count]
            least = least_to_flag(n_unlabeled, n_calibration, level)
            assert min(possible, default=n_unlabeled + 1) == min(least, n_unlabeled + 1)


def test_with_several_splits_each_must_flag_more() -> None:
    for n_splits in (2, 5):
        least = least_to_flag(50, 99, 0.1, n_splits)
        assert least == 10 > least_to_flag(50, 99, 0.1)
        for n_agreed, flags in ((least, True), (least - 1, False)):
            # Of the other rows so many are above a half that all of them are taken for normal ones.
            p_values = np.where(np.arange(50) < n_agreed, 0.01, 0.49)
            p_values[26:] = 1.0
            flagged = flag_rows(np.tile(p_values, (n_splits, 1)), 99, 0.1)
            assert flagged.any() == flags


@pytest.mark.parametrize("n_splits", [1, 3])
@pytest.mark.parametrize(("n_normal", "n_outliers"), [(40, 0), (40, 10), (15, 5)])
def test_interval_of_the_outlier_share_covers_it(
    n_splits: int, n_normal: int, n_outliers: int
) -> None:
    rng = np.random.default_rng(0)
    share = n_outliers / (n_normal + n_outliers)
    n_runs, n_covered = 120, 0
    for _ in range(n_runs):
        batch = one_batch(rng, n_splits, n_normal, n_outliers, 50)
        estimate = estimate_contamination(batch, 50, 0.8)
        assert 0.0 <= estimate.low <= estimate.share <= estimate.high <= 1.0
        n_covered += estimate.low <= share + 1e-9 and share - 1e-9 <= estimate.high
    assert n_covered / n_runs >= 0.8 - 3 * np.sqrt(0.8 * 0.2 / n_runs)


def test_lower_end_holds_for_outliers_like_normal_rows_and_the_upper_cannot() -> None:
    rng = np.random.default_rng(0)
    estimates = [estimate_contamination(one_batch(rng, 1, 60, 0, 60), 60, 0.8) for _ in range(120)]
    # Call half of these rows outliers: nothing can tell.
    assert np.mean([estimate.low <= 0.5 for estimate in estimates]) == 1.0
    assert np.mean([estimate.high < 0.5 for estimate in estimates]) > 0.9


def test_outlier_share_of_clear_cases() -> None:
    rng = np.random.default_rng(0)
    p_values = np.concatenate([np.full(30, 1 / 1001), rng.integers(1, 1002, 70) / 1001])
    share, low, high = estimate_contamination(p_values[np.newaxis], 1000, 0.95)
    assert 0.2 < low < 0.3 < high < 0.5
    assert low <= share < high
    assert estimate_contamination(np.full((1, 20), 1 / 1001), 1000, 0.95).low > 0.8
    assert estimate_contamination(np.ones((1, 20)), 1000, 0.95) == (0.0, 0.0, 0.0)
    assert estimate_contamination(np.ones((2, 1)), 1, 0.95).low == 0.0
