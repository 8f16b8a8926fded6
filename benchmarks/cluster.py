"""Detection on local workers of Dask, Ray and Spark: time, and the memory of a worker.

python benchmarks/cluster.py --engine dask --rows 10000000 --output benchmarks/results

With Dask the tables are folders of Parquet files in a temporary folder; workers of Ray and Spark
make the rows part by part. With Dask and Spark no worker holds a table; Ray keeps the parts in its
object store. Memory is that of the Python processes, of which Spark's have a JVM beside them.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import pandas as pd
from reporting import console, output_option, write_csv

from qms22.cluster.search import detect, open_cluster_table

N_FEATURES = 10
ROWS_PER_PART = 100_000
OUTLIERS_PER_PART = 100

# Returns a table of so many rows, and so many outliers in each part.
MakeTable = Callable[[int, int, int], Any]


def make_part(number: int, n_outliers: int, seed: int) -> pd.DataFrame:
    """Make the rows of a part, outliers first; one column in ten is a category."""
    rng = np.random.default_rng([seed, number])
    rows = rng.normal(size=(ROWS_PER_PART, N_FEATURES - 1))
    rows[:n_outliers] += 4
    table = pd.DataFrame(rows, columns=[f"x{column}" for column in range(N_FEATURES - 1)])
    return table.assign(kind=rng.choice(["a", "b", "c"], ROWS_PER_PART, p=[0.7, 0.2, 0.1]))


@contextmanager
def dask_workers(n_workers: int) -> Iterator[MakeTable]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    def make(n_rows: int, n_outliers: int, seed: int) -> Any:
        parts = Path(folder) / str(seed)
        parts.mkdir()
        for number in range(n_rows // ROWS_PER_PART):
            make_part(number, n_outliers, seed).to_parquet(parts / f"{number:06}.parquet")
        return dd.read_parquet(parts)

    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
    with TemporaryDirectory() as folder, cluster, Client(cluster):
        yield make


@contextmanager
def ray_workers(n_workers: int) -> Iterator[MakeTable]:
    import ray

    def make(n_rows: int, n_outliers: int, seed: int) -> Any:
        n_parts = n_rows // ROWS_PER_PART
        numbers = ray.data.range(n_parts, override_num_blocks=n_parts)
        return numbers.map_batches(
            lambda batch: make_part(int(batch["id"].iloc[0]), n_outliers, seed),
            batch_size=1,
            batch_format="pandas",
        )

    ray.init(num_cpus=n_workers, include_dashboard=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    try:
        yield make
    finally:
        ray.shutdown()


@contextmanager
def spark_workers(n_workers: int) -> Iterator[MakeTable]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master(f"local[{n_workers}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")

    def make(n_rows: int, n_outliers: int, seed: int) -> Any:
        def parts(chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for chunk in chunks:
                for number in chunk["id"].tolist():
                    yield make_part(number, n_outliers, seed)

        schema = session.createDataFrame(make_part(0, 0, 0).iloc[:1]).schema
        n_parts = n_rows // ROWS_PER_PART
        return session.range(0, n_parts, 1, n_parts).mapInPandas(parts, schema)

    try:
        yield make
    finally:
        session.stop()


ENGINES = {"dask": dask_workers, "ray": ray_workers, "spark": spark_workers}


def peak_megabytes(rows: pd.DataFrame | None = None) -> tuple[int, float]:
    """Return this process and the most memory that it has used."""
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measure(make: MakeTable, n_rows: int, n_normal: int, max_samples: int | str) -> dict[str, Any]:
    """Search a batch, and count the flags of its lazy table on the workers."""
    normal, batch = make(n_normal, 0, 0), make(n_rows, OUTLIERS_PER_PART, 1)
    begin = time.perf_counter()
    found = detect(normal, batch, max_samples=max_samples)
    searched = time.perf_counter()
    scored = open_cluster_table(found.scored_batch(), "the result")
    assert scored.n_rows == n_rows  # computes the table once, which is not timed
    counting = time.perf_counter()
    n_flagged = sum(scored.map_frames(lambda rows: int(rows["flagged"].sum())))
    counted = time.perf_counter()
    assert n_flagged == found.n_flagged
    peaks = dict(scored.map_frames(peak_megabytes))
    of_driver = peak_megabytes()[1]
    is_outlier = np.arange(n_rows) % ROWS_PER_PART < OUTLIERS_PER_PART
    return {
        "rows": n_rows,
        "seconds_of_detect": f"{searched - begin:.1f}",
        "seconds_of_lazy_table": f"{counted - counting:.1f}",
        "peak_megabytes_of_a_worker": f"{max(peaks.values()):.0f}",
        "peak_megabytes_of_the_driver": f"{of_driver:.0f}",
        "outliers": int(is_outlier.sum()),
        "flagged": found.n_flagged,
        "flagged_outliers": int((found.flagged & is_outlier).sum()),
        "verdict": found.verdict.decision if found.verdict else "",
    }


@click.command()
@click.option(
    "--engine", "engines", multiple=True, type=click.Choice([*ENGINES]), default=[*ENGINES]
)
@click.option("--workers", default=2, show_default=True, help="Worker processes, of one thread.")
@click.option("--rows", multiple=True, type=int, default=(1_000_000, 10_000_000))
@click.option("--normal", default=1_000_000, show_default=True, help="Known-normal rows.")
@click.option(
    "--draw", type=int, help="Rows of each table to learn from; by default the detector's."
)
@output_option("cluster.csv")
def main(
    engines: tuple[str, ...],
    workers: int,
    rows: tuple[int, ...],
    normal: int,
    draw: int | None,
    output: Path,
) -> None:
    """Search batches on local workers."""
    found: list[dict[str, Any]] = []
    for engine in engines:
        for n_rows in rows:
            with ENGINES[engine](workers) as make:
                line = measure(make, n_rows, normal, draw or "auto")
            found.append({"engine": engine, "workers": workers, **line})
            console.print(found[-1])
    write_csv(output / "cluster.csv", found[0], [line.values() for line in found])


if __name__ == "__main__":
    main()
