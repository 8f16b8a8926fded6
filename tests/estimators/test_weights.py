"""How far views are trusted: rank correlation, excess, and the weights made of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_views import naive_excess
from scipy.stats import spearmanr

from qms22.estimators.held_out import HeldOutScores
from qms22.estimators.weights import _CHANCE, excess, rank_correlation, view_weights

SCORES = st.lists(st.floats(1e-9, 30), min_size=1, max_size=60)


def scores_of(batch: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    scores: np.ndarray = -HeldOutScores.of(held_out).log_p_values(batch)
    return scores


@given(SCORES, st.integers(1, 500))
def test_excess_equals_the_naive_one(scores: list[float], n_compared: int) -> None:
    found = excess(np.array(scores), n_compared)
    assert found == pytest.approx(naive_excess(np.array(scores), n_compared), rel=1e-9, abs=1e-12)


@given(SCORES, st.randoms())
def test_excess_does_not_depend_on_the_order(scores: list[float], random: object) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert excess(np.array(shuffled), 100) == excess(np.array(scores), 100)


@pytest.mark.parametrize(("n_batch", "n_held_out"), [(100, 300), (1000, 1000), (2000, 400)])
def test_excess_of_normal_batches_is_seldom_beyond_chance(n_batch: int, n_held_out: int) -> None:
    rng = np.random.RandomState(0)
    found = [
        excess(scores_of(rng.normal(size=n_batch), rng.normal(size=n_held_out)), n_held_out)
        for _ in range(400)
    ]
    assert np.mean(np.array(found) > _CHANCE) < 0.17


def test_excess_grows_with_outliers() -> None:
    rng = np.random.RandomState(0)
    batch, held_out = rng.normal(size=1000), rng.normal(size=1000)
    found = []
    for n_outliers in (0, 3, 10, 30, 100):
        batch[:n_outliers] = 5.0
        found.append(excess(scores_of(batch, held_out), 1000))
    assert (np.diff(found) > 0).all()
    assert found[0] < _CHANCE < found[2]


def test_a_single_row_never_counts() -> None:
    rng = np.random.RandomState(0)
    batch = np.zeros(1000)
    batch[0] = 1e6
    assert excess(scores_of(batch, rng.normal(size=1000)), 1000) <= 1.0


@given(st.integers(2, 5), st.integers(3, 20), st.integers(0, 99))
def test_rank_correlation_is_spearmans(n: int, n_rows: int, seed: int) -> None:
    scores = np.random.RandomState(seed).randint(5, size=(n, n_rows)).astype(float)
    pairs = []
    for one, other in combinations(scores, 2):
        is_constant = np.ptp(one) == 0 or np.ptp(other) == 0
        pairs.append(0.0 if is_constant else spearmanr(one, other).statistic)
    assert rank_correlation(scores) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_excess_within_chance_changes_no_weight() -> None:
    trust = {"members": 0.3, "distances": 0.7, "forest": 0.0}
    assert view_weights(trust, dict.fromkeys(trust, _CHANCE)) == trust


@given(st.floats(0, 50), st.floats(0, 50))
def test_more_excess_more_weight(one: float, other: float) -> None:
    trust = {"members": 0.5, "distances": 0.5}
    weights = view_weights(trust, {"members": one, "distances": other})
    assert (weights["members"] >= weights["distances"]) or one < other
    assert all(weights[name] >= trust[name] for name in trust)
