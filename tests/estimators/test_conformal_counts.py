"""Decisions from counts over parts are those of `conformal` from all p-values."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qms22.estimators.conformal import (
    adaptive_benjamini_hochberg,
    conformal_p_values,
    e_benjamini_hochberg,
    e_values,
    estimate_contamination,
    estimate_from_counts,
)
from qms22.estimators.conformal_counts import HeldOutRanks, e_value_line
from qms22.estimators.outlier_bound import cut_ranks

# Few different scores, so that many are equal, within the held-out ones and between both.
SCORES = st.lists(st.integers(-3, 12).map(float), min_size=1, max_size=60).map(np.array)
LEVELS = st.sampled_from([0.02, 0.1, 0.25, 0.5, 0.9])


def in_parts(scores: np.ndarray) -> list[np.ndarray]:
    return np.array_split(scores, 3)


@given(SCORES, SCORES, LEVELS)
def test_one_split(scores: np.ndarray, held_out: np.ndarray, level: float) -> None:
    ranks = HeldOutRanks.of(held_out, np.random.RandomState(0))
    p_values = conformal_p_values(scores, held_out)
    np.testing.assert_array_equal(ranks.p_values(scores), p_values)
    counts = np.sum([ranks.count_p_values(part) for part in in_parts(scores)], axis=0)
    line = ranks.line(counts, len(scores), level)
    expected = adaptive_benjamini_hochberg(p_values, len(held_out), level)
    np.testing.assert_array_equal(scores > line.above, expected)
    assert line.n_flagged == expected.sum()
    np.testing.assert_array_equal(
        np.where(expected, line.e_value, 0.0), e_values(p_values, len(held_out), level)
    )


@given(st.lists(st.sampled_from([0.0, 1.5, 4.0, 20.0, 60.0]), min_size=1, max_size=60), LEVELS)
def test_several_splits(values: list[float], level: float) -> None:
    line = e_value_line(Counter(values), len(values), level)
    expected = e_benjamini_hochberg(np.array(values), level)
    np.testing.assert_array_equal(np.array(values) >= line, expected)


def test_contamination_without_ties() -> None:
    rng = np.random.RandomState(0)
    scores, held_out = rng.normal(size=700), rng.normal(size=400)
    scores[:70] += 4
    ranks = HeldOutRanks.of(held_out, rng)
    counts = np.sum([ranks.count_above(part, rng) for part in in_parts(scores)], axis=0)
    found = estimate_from_counts(counts[:, np.newaxis], len(scores), len(held_out), 0.95)
    p_values = conformal_p_values(scores, held_out)[np.newaxis]
    assert found == estimate_contamination(p_values, len(held_out), 0.95)


@pytest.mark.parametrize("n_held_out", [1, 2, 50])
def test_contamination_with_ties(n_held_out: int) -> None:
    """If all scores are equal, every rank of a row has the same probability."""
    means = np.zeros(len(cut_ranks(n_held_out)))
    for seed in range(2000):
        rng = np.random.RandomState(seed)
        ranks = HeldOutRanks.of(np.zeros(n_held_out), rng)
        means += ranks.count_above(np.zeros(4), rng) / 4 / 2000
    expected = 1 - np.array(cut_ranks(n_held_out)) / (n_held_out + 1)
    np.testing.assert_allclose(means, expected, atol=0.03)
