"""Dask, Ray and Spark on two local workers each."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

N_PARTS = 4


class Engine(ABC):
    """What tests do with an engine."""

    @abstractmethod
    def table(self, load: Callable[[int], pd.DataFrame]) -> Any:
        """Return a table of which workers load `N_PARTS` parts by their number."""

    @abstractmethod
    def collect(self, table: Any) -> pd.DataFrame:
        """Compute a table."""

    def scatter(self, frame: pd.DataFrame) -> Any:
        """Return a data frame as a table of the engine."""
        parts = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), N_PARTS)]
        return self.table(lambda number: parts[number])


class DaskEngine(Engine):
    def table(self, load: Callable[[int], pd.DataFrame]) -> Any:
        import dask.dataframe as dd

        return dd.from_map(load, range(N_PARTS), meta=load(0).iloc[:0])

    def collect(self, table: Any) -> pd.DataFrame:
        computed: pd.DataFrame = table.compute()
        assert list(computed.dtypes) == list(table.dtypes)
        return computed


class RayEngine(Engine):
    def table(self, load: Callable[[int], pd.DataFrame]) -> Any:
        import ray

        numbers = ray.data.range(N_PARTS, override_num_blocks=N_PARTS)
        return numbers.map_batches(
            lambda batch: load(int(batch["id"].iloc[0])), batch_size=1, batch_format="pandas"
        )

    def collect(self, table: Any) -> pd.DataFrame:
        collected: pd.DataFrame = table.to_pandas()
        return collected


class SparkEngine(Engine):
    def __init__(self, session: Any) -> None:
        self._session = session

    def table(self, load: Callable[[int], pd.DataFrame]) -> Any:
        schema = self._session.createDataFrame(load(0)).schema

        def parts(chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for chunk in chunks:
                yield from (load(number) for number in chunk["id"].tolist())

        return self._session.range(0, N_PARTS, 1, N_PARTS).mapInPandas(parts, schema)

    def collect(self, table: Any) -> pd.DataFrame:
        collected: pd.DataFrame = table.toPandas()
        return collected


@contextmanager
def start(name: str) -> Iterator[Engine]:
    """Start two workers of an engine."""
    with {"dask": _dask, "ray": _ray, "spark": _spark}[name]() as engine:
        yield engine


@contextmanager
def _dask() -> Iterator[Engine]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster):
        yield DaskEngine()


@contextmanager
def _ray() -> Iterator[Engine]:
    pytest.importorskip("ray.data", reason="Ray Data is not installed")
    if sys.platform == "win32":
        pytest.skip("Ray is tested where it is at home")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    try:
        yield RayEngine()
    finally:
        ray.shutdown()


@contextmanager
def _spark() -> Iterator[Engine]:
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        sql.SparkSession.builder.master("local[2,4]")  # two workers; a task may fail three times
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield SparkEngine(session)
    finally:
        session.stop()


def killer(marker: Path) -> Callable[[], None]:
    """Return a function that kills the worker that calls it, but only the first one."""

    def kill() -> None:
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return kill  # workers cannot import this module, and get the function itself
