"""Lazy scores of Dask collections, on any scheduler of Dask."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from qms22 import QMS22

pytest.importorskip("distributed", reason="Dask is not installed; pip install 'qms22[dask]'")

import dask
import dask.array as da

import qms22.dask
from qms22.cluster.scoring import without_batch
from qms22.dask import DaskQMS22


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(0)
    return rng.normal(size=(1_500, 3)), rng.normal(size=(5_001, 3))


def test_scoring_is_lazy(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    detector = QMS22(max_iter=2, n_components=2, contamination=0.02, random_state=0).fit(
        T, unlabeled=S
    )
    seen = []

    def load(block: np.ndarray) -> np.ndarray:
        seen.append(len(block))
        return block

    lazy = da.from_array(S, (2_000, 2)).rechunk((2_000, 3)).map_blocks(load, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="synchronous"):
        for name in ("score_samples", "decision_function", "predict"):
            scores = getattr(qms22.dask, name)(detector, lazy)
            assert isinstance(scores, da.Array)
            assert scores.chunks == ((2_000, 2_000, 1_001),)
            assert seen == []
            expected = getattr(detector, name)(S)
            np.testing.assert_array_equal(scores.compute(), expected)
            assert scores.dtype == expected.dtype
            assert sorted(seen) == [1_001, 2_000, 2_000]
            seen.clear()
        lazy = da.from_array(S, (2_000, 2))
        np.testing.assert_array_equal(
            qms22.dask.score_samples(detector, lazy), detector.score_samples(S)
        )


def test_workers_get_no_rows_of_the_fit(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    detector = QMS22(max_iter=1, n_components=1, random_state=0).fit(T, unlabeled=S)
    with dask.config.set(scheduler="synchronous"):
        of_dask = DaskQMS22(max_iter=1, n_components=1, max_samples=99).fit(
            da.from_array(T), unlabeled=da.from_array(S)
        )
    for fitted in (detector, of_dask):
        for method in ("score_samples", "predict"):
            assert len(pickle.dumps(without_batch(fitted, method))) < 10_000
    np.testing.assert_array_equal(
        qms22.dask.predict(detector, da.from_array(S, 900)), detector.predict(S)
    )


def test_scoring_checks_columns_at_once(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    detector = QMS22(max_iter=1).fit(T, unlabeled=S)
    with pytest.raises(ValueError, match="X has 2 features, but QMS22 is expecting 3"):
        qms22.dask.score_samples(detector, da.ones((20, 2)))
