"""Spark: lazy scores of a data frame."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from mixed_tables import check_found, make_tables

from qms22 import QMS22

pytest.importorskip("pyspark", reason="Spark is not installed; pip install pyspark")

from pyspark.sql import SparkSession

from qms22.spark import detect, score_samples

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Spark's own are none of ours
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ,
        reason="Spark needs Java 17 or newer, and there is none",
    ),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(0)
    return rng.normal(size=(500, 3)), rng.normal(size=(300, 3))


@pytest.mark.slow
def test_scores(spark: SparkSession, tables: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = (pd.DataFrame(rows, columns=[*"abc"]) for rows in tables)
    detector = QMS22(max_iter=3, random_state=0).fit(normal, unlabeled=batch)
    frame = spark.createDataFrame(batch.assign(id=np.arange(len(batch)))[["id", "c", "b", "a"]])
    for method in ("score_samples", "predict"):
        scored = score_samples(detector, frame, method=method, output="found").toPandas()
        assert list(scored.columns) == ["id", "c", "b", "a", "found"]
        expected = getattr(detector, method)(batch)
        np.testing.assert_array_equal(scored.sort_values("id")["found"], expected)


def test_columns_without_names(spark: SparkSession, tables: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = tables
    detector = QMS22(max_iter=3, random_state=0).fit(normal, unlabeled=batch)
    frame = spark.createDataFrame(pd.DataFrame(batch, columns=[*"abc"])).coalesce(1)
    scored = score_samples(detector, frame).toPandas()
    np.testing.assert_array_equal(scored["score"], detector.score_samples(batch))
    with pytest.raises(ValueError, match="the table has 2 columns, but the detector was fitted on"):
        score_samples(detector, frame.select("a", "b"))


@pytest.mark.slow
@pytest.mark.parametrize("max_samples", [400, 20_000])
def test_detect(spark: SparkSession, max_samples: int) -> None:
    normal, batch = make_tables()
    frames = [spark.createDataFrame(table).repartition(3) for table in (normal, batch)]
    found = detect(*frames, ignore=["id"], max_samples=max_samples)
    check_found(found.toPandas(), batch)
