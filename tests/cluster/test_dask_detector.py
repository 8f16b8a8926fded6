"""Fits on a Dask cluster: the bits of a fit in one memory, lost workers, bad input."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from qms22 import QMS22
from qms22._cpm import restarts
from qms22._runtime.chunks import draw_rows
from qms22.models import load_model, save_model

pytest.importorskip("distributed", reason="Dask is not installed; pip install 'qms22[dask]'")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

import qms22.dask
from qms22.cluster import dask_detector
from qms22.cluster.dask_solver import DaskSolver
from qms22.dask import DaskQMS22

PARAMETERS: dict[str, Any] = {
    "n_components": 3,
    "max_iter": 4,
    "contamination": 0.02,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(0)
    T, S = rng.normal(size=(17_003, 3)), rng.normal(size=(5_001, 3))
    S[:40] += 4
    return T, S


def assert_same_fit(found: QMS22, expected: QMS22) -> None:
    for name in ("A_", "b_", "unlabeled_scores_", "typical_"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
    assert (found.offset_, found.n_iter_) == (expected.offset_, expected.n_iter_)
    for one, other in zip(found.restarts_, expected.restarts_, strict=True):
        assert one.A.tobytes() == other.A.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("chunks", [(17_003, 3), (5_000, 2), (777, 3)])
def test_bits_of_one_machine(
    client: Client, tables: tuple[np.ndarray, np.ndarray], dtype: str, chunks: tuple[int, int]
) -> None:
    T, S = tables
    expected = QMS22(**PARAMETERS, dtype=dtype).fit(T, unlabeled=S)
    found = DaskQMS22(**PARAMETERS, dtype=dtype).fit(
        da.from_array(T, chunks), unlabeled=da.from_array(S, (chunks[0] // 2, 3))
    )
    assert_same_fit(found, expected)
    n_trials = expected.n_iter_ * expected.A_[..., 0].size * (T.shape[1] + 1)
    assert 0 < found.n_round_trips_ < n_trials


@pytest.mark.parametrize(("n_workers", "n_threads"), [(1, 2), (2, 1)])
def test_number_of_workers(
    tables: tuple[np.ndarray, np.ndarray], n_workers: int, n_threads: int
) -> None:
    T, S = tables
    parameters = {**PARAMETERS, "scaling": "standard", "n_restarts": 2}
    expected = QMS22(**parameters).fit(T, unlabeled=S)
    cluster = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=n_threads,
        processes=False,
        dashboard_address=":0",
    )
    with cluster, Client(cluster):
        found = DaskQMS22(**parameters).fit(
            da.from_array(T, 4_001), unlabeled=da.from_array(S, 999)
        )
    assert_same_fit(found, expected)


def test_data_frames(client: Client, tables: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = (pd.DataFrame(rows, columns=[*"abc"]) for rows in tables)
    expected = QMS22(**PARAMETERS).fit(normal, unlabeled=batch)
    # Partitions of their own lengths, one of them without rows.
    kept = batch[(batch.index < 1_500) | (batch.index > 3_400)]
    lazy = dd.from_pandas(batch, npartitions=3).map_partitions(
        lambda part: part[(part.index < 1_500) | (part.index > 3_400)]
    )
    assert 0 in lazy.map_partitions(len).compute().tolist()
    found = DaskQMS22(**PARAMETERS).fit(dd.from_pandas(normal, npartitions=5), unlabeled=lazy)
    assert_same_fit(found, QMS22(**PARAMETERS).fit(normal, unlabeled=kept))
    assert list(found.feature_names_in_) == [*"abc"]

    scores = found.score_samples(lazy)
    assert isinstance(scores, dd.Series)
    assert scores.name == "score_samples"
    pd.testing.assert_index_equal(scores.compute().index, kept.index)
    np.testing.assert_array_equal(scores, found.score_samples(kept))
    np.testing.assert_array_equal(
        qms22.dask.predict(expected, lazy).compute(), expected.predict(kept)
    )
    assert found.explain(kept[:3]).names == ("a", "b", "c")
    found.fit(da.from_array(normal.to_numpy()), unlabeled=da.from_array(kept.to_numpy()))
    assert not hasattr(found, "feature_names_in_")


def test_rows_of_unknown_number(client: Client, tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    lazy = da.from_array(S, 900)
    found = DaskQMS22(**PARAMETERS).fit(da.from_array(T, 5_000), unlabeled=lazy[lazy[:, 0] > 0])
    assert_same_fit(found, QMS22(**PARAMETERS).fit(T, unlabeled=S[S[:, 0] > 0]))


def test_methods_take_collections_and_rows(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    detector = DaskQMS22(**PARAMETERS, max_samples=500)
    with dask.config.set(scheduler="synchronous"):
        detector.fit(da.from_array(T, 5_000), unlabeled=da.from_array(S, 999))
        for name in ("score_samples", "decision_function", "predict"):
            method = getattr(detector, name)
            lazy = method(da.from_array(S, 700))
            assert isinstance(lazy, da.Array)
            np.testing.assert_array_equal(lazy, method(S))
    np.testing.assert_array_equal(detector.unlabeled_scores_, -detector.score_samples(S))
    assert detector.top_k(3).shape == (3,)


def test_max_samples_learns_from_the_draw(tables: tuple[np.ndarray, np.ndarray]) -> None:
    T, S = tables
    rng = np.random.RandomState(0)
    drawn = [rows[draw_rows(len(rows), 6_000, rng)] for rows in (T, S)]
    expected = QMS22(**{**PARAMETERS, "random_state": rng}).fit(drawn[0], unlabeled=drawn[1])
    with dask.config.set(scheduler="synchronous"):
        found = DaskQMS22(**PARAMETERS, max_samples=6_000).fit(
            da.from_array(T, 5_000), unlabeled=da.from_array(S, 999)
        )
    assert found.A_.tobytes() == expected.A_.tobytes()
    assert_same_fit(found, QMS22(**PARAMETERS, max_samples=6_000).fit(T, unlabeled=S))
    assert len(drawn[1]) == len(S) == len(found.unlabeled_scores_)
    assert (found.predict(S) == -1).sum() == 100
    assert found.n_round_trips_ == 0


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(
    client: Client, tables: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    T, S = tables
    parameters = {**PARAMETERS, "n_components": 8, "max_iter": 6}
    expected = QMS22(**parameters).fit(T, unlabeled=S)
    sweep, build, gather = DaskSolver.sweep, DaskSolver._build, Client.gather
    pids = client.run(os.getpid)
    n_sweeps, built, doomed, timers = 0, [], [], []

    def sweep_and_kill(solver: DaskSolver) -> tuple[float, int]:
        nonlocal n_sweeps
        n_sweeps += 1
        if n_sweeps == 2:  # once the sweep has the addresses of its shards
            doomed.append(pids[solver._homes[0]])
        if n_sweeps == 4:  # in the middle of the sweep
            pid = pids[solver._homes[1]]
            timers.append(threading.Timer(0.03, os.kill, [pid, signal.SIGKILL]))
            timers[0].start()
        return sweep(solver)

    def gather_and_kill(client: Client, *args: Any, **kwargs: Any) -> Any:
        gathered = gather(client, *args, **kwargs)
        while doomed:
            os.kill(doomed.pop(), signal.SIGKILL)
        return gathered

    def note_and_build(solver: DaskSolver, numbers: list[int]) -> None:
        built.append(numbers)
        build(solver, numbers)

    monkeypatch.setattr(DaskSolver, "sweep", sweep_and_kill)
    monkeypatch.setattr(DaskSolver, "_build", note_and_build)
    monkeypatch.setattr(Client, "gather", gather_and_kill)
    found = DaskQMS22(**parameters).fit(da.from_array(T, 4_000), unlabeled=da.from_array(S, 999))
    assert_same_fit(found, expected)
    assert built[:2] == [[0, 1, 2], [0]]
    timers[0].join()
    client.wait_for_workers(len(pids))


def test_goes_on_from_a_checkpoint(
    client: Client,
    tables: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    T, S = tables
    normal, batch = da.from_array(T, 5_000), da.from_array(S, 999)
    parameters = {**PARAMETERS, "n_restarts": 2, "log": tmp_path / "fit.jsonl"}
    detector = DaskQMS22(**parameters, checkpoint=tmp_path / "fit.npz")
    sweep, n_sweeps = DaskSolver.sweep, 0

    def sweep_and_fail(solver: DaskSolver) -> tuple[float, int]:
        nonlocal n_sweeps
        n_sweeps += 1
        if n_sweeps == 6:
            raise KeyboardInterrupt
        return sweep(solver)

    with monkeypatch.context() as patch:
        patch.setattr(DaskSolver, "sweep", sweep_and_fail)
        with pytest.raises(KeyboardInterrupt):
            detector.fit(normal, unlabeled=batch)
    with pytest.raises(ValueError, match=r"of another fit \(not the same: chunks and rows"):
        detector.fit(normal + 1e-9, unlabeled=batch)
    detector.fit(normal, unlabeled=batch)
    assert_same_fit(detector, QMS22(**{**parameters, "log": None}).fit(T, unlabeled=S))
    assert [path.name for path in tmp_path.iterdir()] == ["fit.jsonl"]
    starts = [line for line in (tmp_path / "fit.jsonl").read_text().splitlines() if "start" in line]
    assert [json.loads(line)["sweeps"] for line in starts] == [[0, 0], [4, 1]]


def test_workers_that_keep_dying(
    client: Client, tables: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DaskSolver, "_try_sweep", lambda solver: [0])
    with pytest.raises(RuntimeError, match="shards were lost 10 times in one sweep"):
        DaskQMS22(**PARAMETERS).fit(*map(da.from_array, tables[:1]), unlabeled=da.ones((9, 3)))


def test_restarts_through_joblib(
    client: Client, tables: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    T, S = (rows[:1_000] for rows in tables)
    parameters = {**PARAMETERS, "n_restarts": 3}
    expected = QMS22(**parameters).fit(T, unlabeled=S)
    # However many rows there are, jobs of another backend are no threads of this machine.
    monkeypatch.setattr(restarts, "ROWS_PER_THREAD", 100)
    with joblib.parallel_config(backend="dask"):
        found = QMS22(**parameters, n_jobs=3, verbose=1).fit(T, unlabeled=S)
    assert_same_fit(found, expected)


def test_parameters() -> None:
    detector = DaskQMS22(max_iter=7, max_samples=5)
    assert repr(detector) == "DaskQMS22(max_iter=7, max_samples=5)"
    assert clone(detector).get_params() == detector.get_params()
    assert {*detector.get_params()} == {*QMS22().get_params()}
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        DaskQMS22(speed=3)


rows = da.ones((20, 2), chunks=(7, 2))
frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), npartitions=1)


@pytest.mark.parametrize(
    ("X", "batch", "error", "message"),
    [
        (rows, None, ValueError, r"pass the batch to search as fit\(X, unlabeled=batch\)"),
        (np.ones((9, 2)), rows, TypeError, "X must be a Dask array or data frame; got ndarray"),
        (rows, da.ones(9), ValueError, "unlabeled must have two dimensions, .*; it has 1"),
        (rows, da.ones((9, 3)), ValueError, "X has 3 features, but QMS22 is expecting 2"),
        (frame, frame[["b", "a"]], ValueError, "feature names should match"),
        (frame, frame.assign(b="x"), ValueError, "column 'b' of unlabeled is not numeric but"),
        (rows, rows[rows[:, 0] > 1], ValueError, "unlabeled has no rows; give at least one"),
        (rows[:3], rows, ValueError, "X has n_samples=3 known-normal rows, fewer than the"),
        (
            rows,
            rows.map_blocks(lambda block: block * np.nan),
            ValueError,
            r"column 0 of part \d of unlabeled has \d NaN .* values .first at row 0.*; drop or ",
        ),
        (
            rows,
            da.ones((9, 2), chunks=(3, 1))[da.ones(9, chunks=3) > 0],
            ValueError,
            r"unlabeled has chunks of unknown size; call unlabeled.compute_chunk_sizes\(\) first",
        ),
    ],
)
@pytest.mark.parametrize("max_samples", [None, 100])
def test_bad_input(
    client: Client, X: Any, batch: Any, error: type[Exception], message: str, max_samples: int
) -> None:
    with pytest.raises(error, match=message):
        DaskQMS22(max_iter=1, max_samples=max_samples).fit(X, unlabeled=batch)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_samples": 0}, "max_samples must be a whole number of at least 1; got 0"),
        ({"solver": "reference"}, "solver must be one of 'native'; got 'reference'"),
        ({"contamination": 21}, "contamination must be 'auto', a share .* from 1 to 20"),
        ({"step_a": 1e60}, "may overflow float64"),
    ],
)
def test_bad_parameters(client: Client, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DaskQMS22(max_iter=1, **parameters).fit(rows, unlabeled=rows)


def test_it_ranks_and_has_no_p_values(client: Client) -> None:
    batch = np.random.RandomState(0).normal(size=(90, 2))
    batch[:3] += 9
    detector = DaskQMS22(max_iter=3, random_state=0)
    with pytest.raises(NotFittedError):
        detector.predict(batch)
    detector.fit(da.from_array(batch[10:]), unlabeled=da.from_array(batch))
    for name in ("flag", "p_values", "false_at_most", "fit_predict"):
        assert not hasattr(detector, name)
    scores = detector.unlabeled_scores_
    low, high = np.percentile(scores, [25, 75])
    assert detector.offset_ == -(high + 1.5 * (high - low))
    in_memory = QMS22(max_iter=3, random_state=0).fit(batch[10:], unlabeled=batch)
    assert detector.offset_ == in_memory.offset_
    np.testing.assert_array_equal(detector.predict(batch) == -1, scores > -detector.offset_)
    assert (detector.predict(batch)[:3] == -1).all()


def test_the_fitted_detector_can_be_saved(
    tables: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    T, S = tables
    with dask.config.set(scheduler="synchronous"):
        detector = DaskQMS22(**PARAMETERS, max_samples=500).fit(
            da.from_array(T, 5_000), unlabeled=da.from_array(S, 999)
        )
    assert type(detector.detector_) is QMS22
    assert detector.detector_.get_params() == detector.get_params()
    save_model(tmp_path / "model.skops", detector.detector_)
    loaded = load_model(tmp_path / "model.skops").detector
    np.testing.assert_array_equal(loaded.decision_function(S), detector.decision_function(S))


def test_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_client() -> None:
        raise ValueError("No clients found")

    monkeypatch.setattr(dask_detector, "get_client", no_client)
    with pytest.raises(RuntimeError, match="there is no Dask cluster to fit on; make a"):
        DaskQMS22().fit(rows, unlabeled=rows)
