"""Scores of learned rows, found by the values of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from qms22.estimators.held_out import LearnedRows, hash_rows

TABLES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=12),
    elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e300, 5e-324]),
)


def naive_replace(
    learned: np.ndarray, scores: np.ndarray, rows: np.ndarray, others: np.ndarray
) -> np.ndarray:
    found = []
    for row, other in zip(rows, others, strict=True):
        same = [score for score, known in zip(scores, learned, strict=True) if (known == row).all()]
        found.append(np.mean(same) if same else other)
    return np.array(found)


@given(TABLES, st.data())
def test_equal_rows_get_the_mean_of_their_scores(table: np.ndarray, data: st.DataObject) -> None:
    n_learned = data.draw(st.integers(1, len(table)))
    rng = np.random.RandomState(0)
    scores, others = rng.uniform(size=n_learned), rng.uniform(size=len(table))
    learned = LearnedRows.of(hash_rows(table[:n_learned]), scores)
    np.testing.assert_allclose(
        learned.replace(others, hash_rows(table)),
        naive_replace(table[:n_learned], scores, table, others),
        rtol=1e-12,
    )


def test_unknown_rows_keep_their_scores() -> None:
    rng = np.random.RandomState(0)
    rows, scores = rng.normal(size=(500, 3)), rng.uniform(size=500)
    learned = LearnedRows.of(hash_rows(rows), np.zeros(500))
    near = np.nextafter(rows, np.inf)
    np.testing.assert_array_equal(learned.replace(scores, hash_rows(near)), scores)
    np.testing.assert_array_equal(learned.replace(scores, hash_rows(rows[:, ::-1])), scores)
    np.testing.assert_array_equal(learned.replace(scores, hash_rows(rows)), 0.0)


def test_hashes_of_different_rows_differ() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(-20.0, 20.0)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(hash_rows(grid))) == len(grid)
    assert len(np.unique(hash_rows(grid[:, :1]))) == 40


def test_narrow_rows_are_known_by_their_values() -> None:
    rows = np.random.RandomState(0).normal(size=(50, 2)).astype(np.float32)
    np.testing.assert_array_equal(hash_rows(rows), hash_rows(rows.astype(np.float64)))
    np.testing.assert_array_equal(hash_rows(np.asfortranarray(rows)), hash_rows(rows))


@pytest.mark.parametrize("n_features", [1, 40])
def test_scores_do_not_depend_on_the_other_rows(n_features: int) -> None:
    rng = np.random.RandomState(0)
    rows, scores = rng.normal(size=(30, n_features)), rng.uniform(size=30)
    learned = LearnedRows.of(hash_rows(rows[:20]), rng.uniform(size=20))
    together = learned.replace(scores, hash_rows(rows))
    alone = [learned.replace(scores[i : i + 1], hash_rows(rows[i : i + 1]))[0] for i in range(30)]
    np.testing.assert_array_equal(together, alone)
