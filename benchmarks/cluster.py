"""Fit and score on local Dask workers: equal bits, round trips, a lost worker, memory.

python benchmarks/cluster.py --output benchmarks/results
"""

from __future__ import annotations

import csv
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from reporting import console, machine
from sklearn.utils import check_random_state

from qms22 import QMS22
from qms22.cluster.dask_solver import DaskSolver
from qms22.dask import DaskQMS22, score_samples

N_FEATURES = 10


@contextmanager
def local_workers(n_workers: int) -> Iterator[Client]:
    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client


def make_tables(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Make Gaussian rows: four fifths are normal, one in a hundred of the rest is not."""
    rng = check_random_state(0)
    normal = rng.normal(size=(n_rows * 4 // 5, N_FEATURES))
    batch = rng.normal(size=(n_rows // 5, N_FEATURES))
    batch[: len(batch) // 100] += 3
    return normal, batch


@contextmanager
def watched_sweeps(victim: int | None) -> Iterator[list[float]]:
    """Record the seconds of every sweep; kill a worker in the middle of the sixth."""
    seconds: list[float] = []
    sweep = DaskSolver.sweep

    def watched(solver: DaskSolver) -> tuple[float, int]:
        if len(seconds) == 5 and victim is not None:
            threading.Timer(0.05, os.kill, [victim, signal.SIGKILL]).start()
        begin = time.perf_counter()
        result = sweep(solver)
        seconds.append(time.perf_counter() - begin)
        return result

    with mock.patch.object(DaskSolver, "sweep", watched):
        yield seconds


def time_in_memory(detector: QMS22, normal: np.ndarray, batch: np.ndarray) -> float:
    """Fit on one core; return the seconds of the whole fit per sweep."""
    begin = time.perf_counter()
    detector.fit(normal, unlabeled=batch)
    return (time.perf_counter() - begin) / detector.n_iter_


def time_fit(
    expected: QMS22, tables: tuple[np.ndarray, np.ndarray], victim: int | None
) -> dict[str, Any]:
    normal, batch = (da.from_array(table, (len(table) // 7, N_FEATURES)) for table in tables)
    begin = time.perf_counter()
    with watched_sweeps(victim) as seconds:
        found = DaskQMS22(**expected.get_params()).fit(normal, unlabeled=batch)
    seconds_of_fit = time.perf_counter() - begin
    same = all(
        getattr(found, name).tobytes() == getattr(expected, name).tobytes()
        for name in ("A_", "b_", "unlabeled_scores_")
    )
    trips, typical = found.n_round_trips_ / found.n_iter_, float(np.median(seconds))
    return {
        "same_bits": same,
        "seconds_of_fit": f"{seconds_of_fit:.1f}",
        "seconds_per_sweep": f"{typical:.3f}",
        "longest_sweep": f"{max(seconds):.3f}",
        "trials_per_sweep": found.A_[..., 0].size * (N_FEATURES + 1),
        "round_trips_per_sweep": f"{trips:.0f}",
        "ms_per_round_trip": f"{1e3 * typical / trips:.2f}",
    }


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def time_scoring(n_workers: int, n_rows: int, chunk: int) -> dict[str, Any]:
    """Score rows that are made chunk by chunk; workers keep only the sum of the scores."""
    detector = QMS22(max_iter=20, random_state=0)
    normal, batch = make_tables(20_000)
    detector.fit(normal, unlabeled=batch)
    with local_workers(n_workers) as client:
        rows = da.random.default_rng(0).normal(size=(n_rows, N_FEATURES), chunks=(chunk, -1))
        begin = time.perf_counter()
        score_samples(detector, rows).sum().compute()
        seconds = time.perf_counter() - begin
        peaks = client.run(peak_megabytes).values()
    return {
        "seconds_of_scoring": f"{seconds:.1f}",
        "peak_megabytes_per_worker": f"{max(peaks):.0f}",
    }


@click.command()
@click.option("--workers", default=4, show_default=True, help="Worker processes, of one thread.")
@click.option("--rows", multiple=True, type=int, default=(20_000, 200_000, 1_000_000))
@click.option("--score-rows", default=10_000_000, show_default=True)
@click.option("--sweeps", default=20, show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("benchmarks/results"),
    show_default=True,
    help="Directory for cluster.csv.",
)
def main(workers: int, rows: tuple[int, ...], score_rows: int, sweeps: int, output: Path) -> None:
    """Time fits and scoring on local workers; takes a few minutes."""
    found: list[dict[str, Any]] = []
    for n_rows in rows:
        tables = make_tables(n_rows)
        for dtype in ("float64", "float32"):
            expected = QMS22(max_iter=sweeps, dtype=dtype, random_state=0)
            alone = time_in_memory(expected, *tables)
            about = {"rows": n_rows, "dtype": dtype, "workers": workers, "sweeps": expected.n_iter_}
            with local_workers(workers) as client:
                client.run(__import__, "qms22.dask")  # before the first fit is timed
                pids = client.run(os.getpid)
                for what, victim in (
                    ("fit", None),
                    ("fit, a worker killed", next(iter(pids.values()))),
                ):
                    timing = time_fit(expected, tables, victim)
                    in_memory = {"in_memory_seconds_per_sweep": f"{alone:.3f}"}
                    found.append({"what": what, **about, **timing, **in_memory})
                    console.print(found[-1])
    scoring = time_scoring(workers, score_rows, 250_000)
    found.append({"what": "score", "rows": score_rows, "workers": workers, **scoring})
    console.print(found[-1])
    output.mkdir(parents=True, exist_ok=True)
    with (output / "cluster.csv").open("w", newline="") as file:
        csv.writer(file).writerows(["machine", key, text] for key, text in machine().items())
        columns = list(dict.fromkeys(key for line in found for key in line))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main()
