"""Ray: lazy scores of a dataset, and restarts through joblib."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import joblib
import numpy as np
import pandas as pd
import pytest
from mixed_tables import check_found, make_tables

from qms22 import QMS22

pytest.importorskip("ray.data", reason="Ray Data is not installed; pip install 'ray[data]'")

import ray
from ray.util.joblib import register_ray

from qms22.ray import detect, score_samples

# Ray's own threads and files are none of ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(sys.platform == "win32", reason="Ray is tested where it is at home"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(500, 3)), rng.normal(size=(300, 3))
    return pd.DataFrame(normal, columns=[*"abc"]), pd.DataFrame(batch, columns=[*"abc"])


@pytest.mark.slow
def test_scores(cluster: None, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    detector = QMS22(max_iter=3, random_state=0).fit(normal, unlabeled=batch)
    rows = batch.assign(id=np.arange(len(batch)))[["id", "c", "b", "a"]]
    dataset = ray.data.from_pandas([rows[:100], rows[100:]])
    for method in ("score_samples", "predict"):
        scored = score_samples(detector, dataset, method=method, output="found").to_pandas()
        assert list(scored.columns) == ["id", "c", "b", "a", "found"]
        expected = getattr(detector, method)(batch)
        np.testing.assert_array_equal(scored.sort_values("id")["found"], expected)


def test_bad_input(cluster: None, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    detector = QMS22(max_iter=1).fit(normal, unlabeled=batch)
    dataset = ray.data.from_pandas(batch)
    with pytest.raises(ValueError, match="the table has no column 'b', which the detector needs"):
        score_samples(detector, dataset.drop_columns(["b"]))
    with pytest.raises(ValueError, match="has a column 'a' already; name another output"):
        score_samples(detector, dataset, output="a")
    with pytest.raises(ValueError, match="method must be one of 'score_samples'"):
        score_samples(detector, dataset, method="fit")


@pytest.mark.slow
def test_restarts(cluster: None, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    expected = QMS22(max_iter=3, n_restarts=3, random_state=0).fit(normal, unlabeled=batch)
    register_ray()
    with joblib.parallel_config(backend="ray"):
        found = QMS22(max_iter=3, n_restarts=3, random_state=0, n_jobs=2, verbose=1).fit(
            normal, unlabeled=batch
        )
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)


@pytest.mark.slow
@pytest.mark.parametrize("max_samples", [400, 20_000])
def test_detect(cluster: None, max_samples: int) -> None:
    normal, batch = make_tables()
    datasets = [ray.data.from_pandas([table[:200], table[200:]]) for table in (normal, batch)]
    found = detect(*datasets, ignore=["id"], max_samples=max_samples)
    check_found(found.to_pandas(), batch)
