"""`DaskQMS22Ensemble`: the scores of one process, flags from counts, lost workers, bad input."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from qms22 import QMS22Ensemble
from qms22.estimators import ensemble
from qms22.estimators.thresholds import threshold
from qms22.models import load_model, save_model

pytest.importorskip("distributed", reason="Dask is not installed; pip install 'qms22[dask]'")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

from qms22.cluster import dask_ensemble
from qms22.cluster.dask_table import DaskTable
from qms22.dask import DaskQMS22Ensemble

PARAMETERS: dict[str, Any] = {
    "n_splits": 2,
    "n_members": 3,
    "n_components": 2,
    "max_iter": 2,
    "max_samples": 700,
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(0)
    T, S = rng.normal(size=(3_003, 3)), rng.normal(size=(1_501, 3))
    S[:40] += 5
    return T, S


def lazily(tables: tuple[np.ndarray, np.ndarray]) -> tuple[da.Array, da.Array]:
    return da.from_array(tables[0], (800, 2)), da.from_array(tables[1], (400, 3))


def fitted(tables: tuple[np.ndarray, np.ndarray], **parameters: Any) -> DaskQMS22Ensemble:
    normal, batch = lazily(tables)
    detector: DaskQMS22Ensemble = DaskQMS22Ensemble(**{**PARAMETERS, **parameters})
    detector.fit(normal, unlabeled=batch)
    return detector


@pytest.mark.parametrize("max_samples", [700, 2_000, None])
def test_scores_of_one_process(
    tables: tuple[np.ndarray, np.ndarray], max_samples: int | None
) -> None:
    T, S = tables
    parameters = {**PARAMETERS, "max_samples": max_samples, "contamination": 0.03}
    expected = QMS22Ensemble(**parameters).fit(T, unlabeled=S)
    found = fitted(tables, **parameters)
    assert isinstance(found.unlabeled_scores_, da.Array)
    np.testing.assert_array_equal(found.unlabeled_scores_.compute(), expected.unlabeled_scores_)
    assert (found.weights_, found.offset_) == (expected.weights_, expected.offset_)
    np.testing.assert_array_equal(found.typical_, expected.typical_)
    np.testing.assert_array_equal(found.top_k(25), expected.top_k(25))
    for name in ("score_samples", "decision_function", "predict"):
        lazy = getattr(found, name)(da.from_array(T, 999))
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy, getattr(expected, name)(T))
        np.testing.assert_array_equal(getattr(found, name)(T), getattr(expected, name)(T))


def test_data_frames(tables: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = (pd.DataFrame(rows, columns=[*"abc"]) for rows in tables)
    lazy = dd.from_pandas(batch, npartitions=3).map_partitions(
        lambda part: part[(part.index < 400) | (part.index > 1_100)]
    )
    kept = batch[(batch.index < 400) | (batch.index > 1_100)]
    assert 0 in lazy.map_partitions(len).compute().tolist()
    found = DaskQMS22Ensemble(**PARAMETERS).fit(
        dd.from_pandas(normal, npartitions=4), unlabeled=lazy
    )
    expected = QMS22Ensemble(**PARAMETERS).fit(normal, unlabeled=kept)
    np.testing.assert_array_equal(found.unlabeled_scores_.compute(), expected.unlabeled_scores_)
    assert found.unlabeled_scores_.shape == found.flag().shape == (len(kept),)
    assert isinstance(found.score_samples(lazy), dd.Series)
    assert found.explain(kept[:3]).names == ("a", "b", "c")


def test_chunks_of_unknown_size(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    lazy = da.from_array(np.concatenate([S, np.full((800, 3), -9.0), S[:50]]), (400, 3))
    kept = np.concatenate([S, S[:50]])
    kept = kept[kept[:, 0] > -8]
    found = DaskQMS22Ensemble(**PARAMETERS).fit(
        da.from_array(T, 1000), unlabeled=lazy[lazy[:, 0] > -8]
    )
    assert 0 in found.unlabeled_scores_.chunks[0]
    expected = QMS22Ensemble(**PARAMETERS).fit(T, unlabeled=kept)
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)
    np.testing.assert_array_equal(found.top_k(9), expected.top_k(9))
    flagged = found.flag(0.2).compute()
    assert flagged.shape == (len(kept),)
    assert flagged[:40].sum() > 35


def test_reading_and_scoring_are_one_task(tables: tuple[np.ndarray, np.ndarray]) -> None:
    """Or else workers may pass rows to each other, and keep them until they are scored."""
    found = fitted(tables)
    rows = da.map_blocks(np.ones, (10, 3), chunks=((10,) * 5, (3,)), meta=np.empty((0, 0)))
    batch = DaskTable.of(rows, "batch")
    for scores in (batch.scores(found._detector), found.score_samples(rows)):
        (optimized,) = dask.optimize(scores)
        # One task and one name per block, and the detector.
        assert len(optimized.dask) == 2 * 5 + 1


@pytest.mark.parametrize("max_samples", [700, None])
def test_decisions_of_one_process(
    tables: tuple[np.ndarray, np.ndarray], max_samples: int | None
) -> None:
    T, S = tables
    found = fitted(tables, max_samples=max_samples)
    expected = QMS22Ensemble(**{**PARAMETERS, "max_samples": max_samples}).fit(T, unlabeled=S)
    np.testing.assert_array_equal(found.p_values(), expected.p_values())
    for fdr in (0.1, 0.3):
        flagged = found.flag(fdr)
        assert isinstance(flagged, da.Array)
        np.testing.assert_array_equal(flagged, expected.flag(fdr))
    assert flagged[:40].sum().compute() > 35
    assert found.offset_ == expected.offset_
    for k in (0, 10, 60):
        assert found.false_at_most(k) == expected.false_at_most(k)
    np.testing.assert_array_equal(found._counts, expected._counts)


@pytest.mark.parametrize("max_samples", [300, None])
def test_rows_that_both_tables_have(max_samples: int | None) -> None:
    rng = np.random.RandomState(0)
    T, S = rng.poisson(1, size=(900, 3)) * 1.0, rng.poisson(1, size=(700, 3)) * 1.0
    S[:9] += 4
    parameters = {**PARAMETERS, "max_samples": max_samples}
    found = fitted((T, S), **parameters)
    expected = QMS22Ensemble(**parameters).fit(T, unlabeled=S)
    np.testing.assert_array_equal(found.p_values(), expected.p_values())


def test_decisions_follow_the_scores(tables: tuple[np.ndarray, np.ndarray]) -> None:
    found = fitted(tables)
    flagged, p_values, scores = dask.compute(
        found.flag(0.1), found.p_values(), found.unlabeled_scores_
    )
    assert 0 < flagged.sum() < len(flagged)
    assert scores[flagged].min() > scores[~flagged].max()
    assert p_values[flagged].max() < p_values[~flagged].min()
    assert (np.diff(p_values[np.argsort(scores)]) <= 0).all()


def test_known_normal_rows_are_drawn_to_compare_with(
    tables: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows as in one process, of which some were learned from."""
    T, S = tables
    monkeypatch.setattr(ensemble, "_LEAST_COMPARED", 900)
    monkeypatch.setattr(ensemble, "_COMPARED_PER_ROW", 0)
    found, expected = fitted(tables), QMS22Ensemble(**PARAMETERS).fit(T, unlabeled=S)
    assert found._ruler.n_known == 900
    np.testing.assert_array_equal(found.p_values(), expected.p_values())


def test_rows_to_compare_with_are_bounded(
    tables: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_ensemble, "MOST_COMPARED", 60)
    found = fitted(tables)
    assert found.p_values().min().compute() == 1 / 61
    with pytest.warns(UserWarning, match=r"with 60 known-normal rows .* of 0.001 can flag no row"):
        assert not found.flag(0.001).any().compute()


def test_a_second_fit_forgets_the_first(tables: tuple[np.ndarray, np.ndarray]) -> None:
    found = fitted(tables)
    before = found.p_values().compute(), found.offset_
    normal, batch = lazily((tables[0][:2_000], tables[1][:1_000]))
    found.fit(normal, unlabeled=batch)
    expected = QMS22Ensemble(**PARAMETERS).fit(tables[0][:2_000], unlabeled=tables[1][:1_000])
    np.testing.assert_array_equal(found.p_values(), expected.p_values())
    assert found.offset_ == expected.offset_ != before[1]


def test_few_normal_rows_use_quartiles(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    found = fitted((T[:30], S))
    expected = -threshold(found.unlabeled_scores_.compute(), None)
    assert found.offset_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_flagged", [1, 2, 1_500, 1_501])
def test_thresholds_by_counting(tables: tuple[np.ndarray, np.ndarray], n_flagged: int) -> None:
    found = fitted(tables, contamination=n_flagged)
    assert found.offset_ == -threshold(found.unlabeled_scores_.compute(), n_flagged)
    assert (found.predict(tables[1]) == -1).sum() == n_flagged


def test_the_level_is_kept() -> None:
    """The mean share of false alarms over small batches is at most the level."""
    shares = []
    for seed in range(60):
        rng = np.random.RandomState(seed)
        T, S = rng.normal(size=(400, 2)), rng.normal(size=(100, 2))
        n_outliers = 10 * (seed % 2)
        S[:n_outliers] += 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flagged = fitted((T, S), max_samples=150, random_state=seed).flag(0.2).compute()
        shares.append(flagged[n_outliers:].sum() / max(1, flagged.sum()))
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares) / np.sqrt(len(shares))


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tables: tuple[np.ndarray, np.ndarray]) -> None:
    expected = fitted(tables)
    flags, scores = expected.flag(0.2).compute(), expected.unlabeled_scores_.compute()
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with dask.config.set(scheduler=None), cluster, Client(cluster) as client:
        found = fitted(tables)
        flagged = found.flag(0.2)  # its scores are with the workers
        pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        np.testing.assert_array_equal(flagged.compute(), flags)
        client.wait_for_workers(2)
        survivor = next(pid for pid in client.run(os.getpid).values() if pid in pids.values())
        timer = threading.Timer(0.05, os.kill, [survivor, signal.SIGKILL])
        timer.start()
        np.testing.assert_array_equal(found.unlabeled_scores_.compute(), scores)
        np.testing.assert_array_equal(found.p_values(), expected.p_values())
        timer.join()
        client.wait_for_workers(2)


def test_parameters(tables: tuple[np.ndarray, np.ndarray]) -> None:
    found = fitted(tables)
    assert clone(found).get_params() == QMS22Ensemble(**PARAMETERS).get_params()
    groups = [[0, 1]]
    normal, batch = lazily(tables)
    found.fit(normal, unlabeled=batch, groups=groups)
    expected = QMS22Ensemble(**PARAMETERS).fit(tables[0], unlabeled=tables[1], groups=groups)
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)


def test_the_fitted_detector_can_be_saved(
    tables: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    found = fitted(tables)
    save_model(tmp_path / "model.skops", found.detector_)
    loaded = load_model(tmp_path / "model.skops").detector
    np.testing.assert_array_equal(
        loaded.decision_function(tables[1]), found.decision_function(tables[1])
    )


rows = da.ones((20, 2), chunks=(7, 2))
frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), npartitions=1)


@pytest.mark.parametrize(
    ("X", "batch", "error", "message"),
    [
        (rows, None, ValueError, r"pass the batch to search as fit\(X, unlabeled=batch\)"),
        (np.ones((9, 2)), rows, TypeError, "X must be a Dask array or data frame; got ndarray"),
        (rows, da.ones((9, 3)), ValueError, "X has 3 features, but QMS22Ensemble is expecting 2"),
        (frame, frame.assign(b="x"), ValueError, "column 'b' of unlabeled is not numeric but"),
        (rows, rows[rows[:, 0] > 1], ValueError, "unlabeled has no rows; give at least one"),
        (rows[:3], rows, ValueError, "X has n_samples=3 known-normal rows"),
        (
            rows,
            rows.map_blocks(lambda block: block * np.nan),
            ValueError,
            r"column 0 of part \d of unlabeled has \d NaN .* values .first at row 0.*; drop or ",
        ),
    ],
)
def test_bad_input(X: Any, batch: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DaskQMS22Ensemble(max_iter=1).fit(X, unlabeled=batch)


def test_bad_use(tables: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(NotFittedError):
        DaskQMS22Ensemble().flag()
    found = fitted(tables)
    with pytest.raises(ValueError, match="k=1502 is more than the 1501 unlabeled rows there are"):
        found.top_k(1502)
    with pytest.raises(ValueError, match="fdr must be a share"):
        found.flag(2)
    with pytest.raises(ValueError, match="k must be a whole number"):
        found.false_at_most(-1)
