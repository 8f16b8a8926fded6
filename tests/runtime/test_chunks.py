"""Rows drawn from a table."""

from __future__ import annotations

import pickle

import numpy as np

from qms22._runtime.chunks import choose_rows, draw_rows


def test_draws() -> None:
    rng = np.random.RandomState(0)
    drawn = draw_rows(1_000, 100, rng)
    assert len(set(drawn.tolist())) == 100
    assert (np.diff(drawn) > 0).all()
    assert drawn.max() < 1_000
    np.testing.assert_array_equal(drawn, draw_rows(1_000, 100, np.random.RandomState(0)))
    state = pickle.dumps(rng)
    for limit in (None, 1_000, 2_000):
        np.testing.assert_array_equal(draw_rows(1_000, limit, rng), np.arange(1_000))
    assert pickle.dumps(rng) == state


def test_rows_are_chosen_with_the_same_probability_and_in_the_right_number() -> None:
    rng = np.random.RandomState(0)
    counts = np.zeros((6, 6))
    for _ in range(3000):
        is_chosen = choose_rows(6, 2, rng)
        assert is_chosen.sum() == 2
        counts[tuple(np.flatnonzero(is_chosen))] += 1
    pairs = counts[np.triu_indices(6, k=1)]  # 15 pairs, each about 200 times
    assert abs(pairs - 200).max() < 5 * np.sqrt(200)
    for n_chosen in (0, 1, 4, 5):
        assert choose_rows(5, n_chosen, rng).sum() == n_chosen
