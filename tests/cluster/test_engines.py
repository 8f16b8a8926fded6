"""Dask, Ray and Spark on two local workers: the results of one process, also if a worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines
import joblib
import numpy as np
import pandas as pd
import pytest
from engines import N_PARTS, Engine, RayEngine, killer
from mixed_tables import check_same, make_numbers, make_tables
from sklearn.base import clone

import qms22
from qms22 import QMS22, QMS22Ensemble
from qms22.cluster.search import detect, fit, open_cluster_table, score_samples

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # those of the engines are none of ours
]


@pytest.fixture(scope="module", params=["dask", "ray", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with engines.start(request.param) as started:
        yield started


def test_detection(engine: Engine, tmp_path: Path) -> None:
    """Of all rows; those of a draw are below."""
    normal, batch = make_tables()
    expected = qms22.detect(normal, batch, ignore=["id"])
    found = detect(engine.scatter(normal), engine.scatter(batch), ignore=["id"])
    check_same(found, engine.collect(found.scored_batch()), expected)
    flagged = expected.table(only_flagged=True)
    pd.testing.assert_frame_equal(found.table(only_flagged=True), flagged, check_dtype=False)
    pages = [each.report(tmp_path / "page.html").read_text() for each in (found, expected)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("preset", [QMS22, QMS22Ensemble])
def test_detectors(engine: Engine, preset: type[QMS22 | QMS22Ensemble]) -> None:
    normal, batch = make_numbers()
    unfitted = preset(n_members=3, n_components=2, max_iter=2, max_samples=700, random_state=0)
    expected = clone(unfitted).fit(normal, unlabeled=batch)
    found = fit(clone(unfitted), engine.scatter(normal), engine.scatter(batch))
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)
    np.testing.assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    assert found.offset_ == expected.offset_
    assert found.verdict() == expected.verdict()
    if preset is QMS22Ensemble:
        np.testing.assert_array_equal(found.flag(), expected.flag())
        np.testing.assert_array_equal(found.score_normals(), expected.score_normals())
    rows = batch.assign(id=np.arange(len(batch)))[["id", "c", "b", "a"]]
    for method in ("score_samples", "predict"):
        scored = score_samples(found, engine.scatter(rows), method=method, output="found")
        collected = engine.collect(scored)
        assert list(collected.columns) == ["id", "c", "b", "a", "found"]
        np.testing.assert_array_equal(collected["found"], getattr(expected, method)(batch))


@pytest.mark.parametrize("engine", ["dask", "ray"], indirect=True)
def test_restarts_run_on_the_workers_through_joblib(engine: Engine) -> None:
    normal, batch = make_numbers()
    expected = QMS22(max_iter=3, n_restarts=3, random_state=0).fit(normal, unlabeled=batch)
    backend = "dask"
    if isinstance(engine, RayEngine):
        from ray.util.joblib import register_ray

        register_ray()
        backend = "ray"
    with joblib.parallel_config(backend=backend):
        found = QMS22(max_iter=3, n_restarts=3, random_state=0, n_jobs=2, verbose=1).fit(
            normal, unlabeled=batch
        )
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)


def test_a_killed_worker_loses_nothing(engine: Engine, tmp_path: Path) -> None:
    """One dies while it reads a part, another one while it works on the rows."""
    normal, batch = make_tables()
    parts = [batch.iloc[rows] for rows in np.array_split(np.arange(len(batch)), N_PARTS)]

    kill_reader, kill_counter = killer(tmp_path / "reading"), killer(tmp_path / "counting")

    def load(number: int) -> pd.DataFrame:
        if number == 2:
            kill_reader()
        return parts[number]

    def total(rows: pd.DataFrame) -> float:
        if rows.index[0] >= 200:
            kill_counter()
        return float(rows["amount"].sum())

    options: dict[str, Any] = {"id": "id", "max_samples": 200, "preset": "paper"}
    expected = qms22.detect(normal, batch, **options)
    found = detect(engine.scatter(normal), engine.table(load), **options)
    assert (tmp_path / "reading").exists()
    check_same(found, engine.collect(found.scored_batch()), expected)
    totals = list(open_cluster_table(engine.table(load), "the batch").map_frames(total))
    assert (tmp_path / "counting").exists()
    assert totals == [part["amount"].sum() for part in parts]


def test_faults_are_told_as_in_memory(engine: Engine) -> None:
    normal, batch = make_tables()
    options: dict[str, Any] = {"ignore": ["id"], "max_samples": 100, "missing": "error"}
    batch.loc[250, "amount"] = np.nan
    with pytest.raises(ValueError, match="missing") as caught:
        detect(engine.scatter(normal), engine.scatter(batch), **options)
    assert "the batch" in str(caught.value)
    assert "'amount'" in str(caught.value)
