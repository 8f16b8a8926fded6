"""Rows drawn from a table."""

from __future__ import annotations

import pickle

import numpy as np

from qms22._runtime.chunks import draw_rows


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
