"""Bounds on the number of normal rows: by counting all cases where that can be done."""

from __future__ import annotations

import math
from itertools import combinations
from math import comb

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22.decisions.curve import bound_false, bound_outliers, no_outlier_chance
from qms22.decisions.ruler import Ruler, highest_flagged_rank

# Limits come from 2,000 simulated orders, so that a bound of confidence c holds in a share of the
# orders that differs from c by chance: three standard errors of the quantile.
ERROR = 3 * np.sqrt(0.25 / 2000)

any_counts = st.lists(st.integers(0, 6), min_size=2, max_size=30).map(np.array)


def ranks_of(places: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the ranks of rows by their places in an urn, the highest score first."""
    return np.array(places, dtype=np.intp) - np.arange(len(places))


def holds(
    normal: NDArray[np.intp], outliers: NDArray[np.intp], n_known: int, confidence: float
) -> bool:
    """Return whether the bounds for the first k rows are right for all k.

    Rows with the same rank are sorted in the worst way: normal ones first.
    """
    ranks = np.concatenate([normal, outliers])
    is_normal = np.arange(len(ranks)) < len(normal)
    order = np.argsort(ranks, kind="stable")
    curve = bound_false(np.bincount(ranks, minlength=n_known + 1), confidence)
    bounds = curve.of_first(np.arange(len(ranks) + 1))
    truth = np.concatenate([[0], np.cumsum(is_normal[order])])
    return bool((truth <= bounds).all()) and curve.most_normal >= len(normal)


@pytest.mark.parametrize(
    ("n_known", "n_normal", "n_outliers"), [(6, 4, 0), (6, 4, 3), (9, 3, 2), (4, 6, 2), (1, 5, 1)]
)
@pytest.mark.parametrize("where", ["top", "middle"])
def test_all_orders_of_a_small_urn(
    n_known: int, n_normal: int, n_outliers: int, where: str
) -> None:
    outliers = np.full(n_outliers, 0 if where == "top" else n_known // 3)
    n_orders = comb(n_known + n_normal, n_normal)
    for confidence in (0.5, 0.8):
        n_wrong = sum(
            not holds(ranks_of(places), outliers, n_known, confidence)
            for places in combinations(range(n_known + n_normal), n_normal)
        )
        assert n_wrong / n_orders <= 1 - confidence + ERROR


def test_p_value_of_no_outlier_in_all_orders_of_a_small_urn() -> None:
    n_known, n_normal = 8, 4
    p_values = np.array(
        [
            no_outlier_chance(np.bincount(ranks_of(places), minlength=n_known + 1))
            for places in combinations(range(n_known + n_normal), n_normal)
        ]
    )
    for level in np.unique(p_values):
        assert np.mean(p_values <= level) <= level + ERROR


def draw(
    rng: np.random.Generator, n_known: int, n_normal: int, n_outliers: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ranks of normal rows and of outliers, some of which are hardly unusual."""
    ruler = Ruler.of(rng.normal(size=n_known))
    shift = rng.choice([0.5, 1.5, 4.0], size=n_outliers)
    return ruler.ranks(rng.normal(size=n_normal)), ruler.ranks(rng.normal(size=n_outliers) + shift)


@pytest.mark.parametrize(
    ("n_known", "n_normal", "n_outliers"),
    [(300, 100, 0), (300, 90, 10), (40, 200, 50), (900, 9, 1)],
)
def test_bounds_hold_as_often_as_promised(n_known: int, n_normal: int, n_outliers: int) -> None:
    rng = np.random.default_rng(0)
    n_runs = 150
    n_right = sum(
        holds(*draw(rng, n_known, n_normal, n_outliers), n_known, 0.9) for _ in range(n_runs)
    )
    assert n_right / n_runs >= 0.9 - 3 * np.sqrt(0.09 / n_runs) - ERROR


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.data())
def test_bounds_of_any_rows_hold_where_the_limits_do(seed: int, data: st.DataObject) -> None:
    normal, outliers = draw(np.random.default_rng(seed), 60, 30, 10)
    curve = bound_false(np.bincount(np.append(normal, outliers), minlength=61))
    within = [np.count_nonzero(normal <= rank) for rank in curve.ranks]
    if (within <= curve.limits).all() and curve.most_normal >= len(normal):
        chosen = np.array(data.draw(st.lists(st.booleans(), min_size=40, max_size=40)))
        n_normal = np.count_nonzero(chosen[: len(normal)])
        assert n_normal <= curve.of_rows(np.append(normal, outliers)[chosen])


@settings(max_examples=examples(40))
@given(any_counts, st.sampled_from([0.5, 0.9, 0.99]))
def test_a_curve_never_falls_and_its_parts_agree(
    counts: NDArray[np.int64], confidence: float
) -> None:
    n_rows = int(counts.sum())
    curve = bound_false(counts, confidence)
    bounds = curve.of_first(np.arange(n_rows + 1))
    assert bounds[0] == 0
    assert set(np.diff(bounds)) <= {0, 1}
    assert bounds[-1] == curve.most_normal == n_rows - curve.fewest_outliers
    ranks = np.repeat(np.arange(len(counts)), counts)
    assert [curve.of_rows(ranks[:k]) for k in range(n_rows + 1)] == bounds.tolist()
    found = bound_outliers(counts, confidence)
    # Only rows count that can be named.
    n_named = int(counts[: highest_flagged_rank(counts, 0.1) + 1].sum())
    n_known, n_beyond = len(counts) - 1, int(counts[0])
    by_chance = math.comb(n_rows, n_beyond) / math.comb(n_rows + n_known, n_beyond)
    if not n_named and n_beyond and by_chance <= (1 - confidence) / 10:
        n_named = n_beyond
    chance = no_outlier_chance(counts) if n_named else 1.0
    assert found == (min(curve.fewest_outliers, n_named), chance)
    assert (found.fewest > 0) == (found.p_value <= 1 - confidence)


def test_a_few_far_rows_are_enough() -> None:
    counts = np.bincount(np.append(np.zeros(6, int), np.arange(3, 2985, 3)), minlength=3001)
    curve = bound_false(counts)
    assert 3 <= curve.fewest_outliers <= 6
    assert curve.of_first(np.array([6]))[0] <= 3
    assert no_outlier_chance(counts) < 0.01


@pytest.mark.parametrize("n_known", [0, 1, 2, 100])
def test_small_batches(n_known: int) -> None:
    nothing = bound_false(np.zeros(n_known + 1, dtype=np.int64))
    assert nothing.most_normal == nothing.fewest_outliers == 0
    assert nothing.of_first(np.arange(1)).tolist() == [0]
    assert no_outlier_chance(np.zeros(n_known + 1, dtype=np.int64)) == 1.0
    for rank in {0, n_known}:
        alone = np.bincount([rank], minlength=n_known + 1)
        # A single row is beyond all known-normal ones with probability 1 / (n + 1).
        is_found = rank == 0 and n_known == 100
        assert bound_false(alone).fewest_outliers == is_found
        expected = 1 / (n_known + 1) if rank == 0 else 1.0
        assert no_outlier_chance(alone) == pytest.approx(expected, abs=ERROR)


def test_more_confidence_than_simulated_orders_can_give() -> None:
    counts = np.bincount(np.append(np.zeros(30, int), np.arange(50)), minlength=1001)
    assert no_outlier_chance(counts) == pytest.approx(1 / 2001)
    assert bound_false(counts, 0.999).fewest_outliers > 0
    certain = bound_false(counts, 0.9999)
    assert certain.fewest_outliers == 0
    np.testing.assert_array_equal(certain.of_first(np.arange(81)), np.arange(81))


@pytest.mark.parametrize("confidence", [0, 1, 95, np.nan, "high"])
def test_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"confidence must be a share in \(0, 1\)"):
        bound_false(np.array([1, 2]), confidence)
