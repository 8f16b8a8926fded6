from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from normal_rows import Rows, make_rows
from numpy.typing import NDArray

from qms22_bench.rivals import BRM
from qms22_bench.rivals import brm as brm_module


def naive_scores(bags: NDArray[np.intp], normal: Rows, query: Rows) -> Rows:
    """Score rows bag by bag and pair by pair, with bags as they were drawn."""
    low, high = normal.min(axis=0), normal.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    scaled, asked = (normal - low) / width, (query - low) / width
    scores = np.zeros(len(query))
    for positions in bags:
        bag = scaled[positions]
        delta = np.mean([[np.linalg.norm(a - b) for a in bag] for b in bag])
        nearest = np.array([min(np.linalg.norm(x - a) for a in bag) for x in asked])
        if delta > 0:
            scores += np.exp(-0.5 * (nearest / delta) ** 2)
        else:
            scores += nearest == 0
    return scores / len(bags)


@pytest.mark.parametrize("max_samples", [None, 30, 12, 1])
def test_scores_equal_the_naive_ones(max_samples: int | None) -> None:
    normal, query = make_rows(60), 2 * make_rows(40, seed=1)
    detector = BRM(n_members=7, max_samples=max_samples, random_state=0).fit(normal)
    expected = naive_scores(detector.bags_, normal, query)
    np.testing.assert_allclose(detector.score_samples(query), expected, rtol=1e-10, atol=1e-15)


def test_scores_of_duplicated_and_constant_data_equal_the_naive_ones() -> None:
    normal = np.random.default_rng(0).integers(0, 3, size=(40, 3)).astype(float)
    normal[:, 1] = 5.0
    query = np.vstack([normal[:10], normal[:10] + np.eye(3)[1]])
    detector = BRM(n_members=5, random_state=3).fit(normal)
    expected = naive_scores(detector.bags_, normal, query)
    np.testing.assert_allclose(detector.score_samples(query), expected, rtol=1e-10, atol=1e-15)


def test_rows_without_a_bag_among_their_neighbors_are_found_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(brm_module, "_N_NEIGHBORS", 1)
    normal, query = make_rows(50), make_rows(30, seed=1)
    detector = BRM(n_members=6, random_state=0).fit(normal)
    expected = naive_scores(detector.bags_, normal, query)
    np.testing.assert_allclose(detector.score_samples(query), expected, rtol=1e-10)


def test_batches_do_not_change_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    normal = make_rows(100)
    whole = BRM(n_members=5, random_state=0).fit(normal)
    monkeypatch.setattr(brm_module, "_DISTANCES_PER_BATCH", 700)
    in_parts = BRM(n_members=5, random_state=0).fit(normal)
    np.testing.assert_allclose(in_parts.deltas_, whole.deltas_, rtol=1e-13)


def test_small_distances_survive_the_search() -> None:
    # All but two rows lie within 1e−9 of the middle of the range.
    rng = np.random.default_rng(0)
    normal = np.vstack([0.5 + 1e-9 * rng.random((50, 2)), [[0.0, 0.0], [1.0, 1.0]]])
    query = 0.5 + 1e-9 * rng.random((20, 2))
    detector = BRM(n_members=20, max_samples=20, random_state=1).fit(normal)
    expected = naive_scores(detector.bags_, normal, query)
    np.testing.assert_allclose(detector.score_samples(query), expected, rtol=1e-5)


@pytest.mark.parametrize("max_samples", [None, 100])
def test_n_jobs_does_not_change_anything(max_samples: int | None) -> None:
    normal, query = make_rows(1500), make_rows(2500, seed=1)
    parameters: dict[str, Any] = {"max_samples": max_samples, "random_state": 0}
    alone = BRM(n_jobs=1, **parameters).fit(normal)
    together = BRM(n_jobs=2, **parameters).fit(normal)
    np.testing.assert_array_equal(alone.score_samples(query), together.score_samples(query))


def test_seeds_decide() -> None:
    normal, query = make_rows(), make_rows(seed=1)
    scores = [BRM(random_state=seed).fit(normal).score_samples(query) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"n_members": 0}, "n_members must be a whole number of at least 1; got 0"),
        ({"max_samples": 0}, "max_samples must be a whole number of at least 1; got 0"),
        ({"max_samples": 1.5}, "max_samples must be a whole number of at least 1; got 1.5"),
        ({"max_samples": True}, "max_samples must be a whole number of at least 1; got True"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        BRM(**parameters).fit(make_rows())
