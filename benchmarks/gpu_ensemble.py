"""Measure QMS22Ensemble on a GPU: fit, scores and flags of rows on the host, and its views alone.

Times are by the clock on the wall, the best of a few. Prints a table and writes gpu_ensemble.csv:

    python benchmarks/gpu_ensemble.py --output benchmarks/results
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from reporting import console, output_option, write_csv

from qms22 import QMS22Ensemble
from qms22._runtime.devices import need_cupy
from qms22.estimators.forest import BinnedRows, find_bins, fit_forest
from qms22.estimators.held_out import HeldOutScores
from qms22.estimators.nearest import mean_log_distances

N_FEATURES = 10
N_REFERENCES = 512
N_DRAWN = 10_000  # rows of either kind that the measured forest learns from


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Time of a function, with what it starts on the GPU."""
    device, best = need_cupy().cuda.Device(), np.inf
    for _ in range(repeats):
        device.synchronize()
        begin = time.perf_counter()
        work()
        device.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def make_rows(n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return n known-normal rows and a batch of n rows, 1 % of them shifted."""
    rng = np.random.default_rng(0)
    normal, batch = (rng.standard_normal((n, N_FEATURES), dtype=np.float32) for _ in range(2))
    batch[: n // 100] += 2
    return normal, batch


def measure_detector(n: int, repeats: int) -> dict[str, float]:
    normal, batch = make_rows(n)
    detector = QMS22Ensemble(
        device="cuda", dtype="float32", n_jobs=-1, contamination=1, random_state=0
    )
    measured = {"fit": seconds(lambda: detector.fit(normal, unlabeled=batch), repeats)}
    measured["score_samples"] = seconds(lambda: detector.score_samples(batch), repeats)

    def first(name: str) -> float:
        """Time a decision right after a fit, which includes the scores of known-normal rows."""
        times = []
        for _ in range(repeats):
            detector.fit(normal, unlabeled=batch)
            times.append(seconds(getattr(detector, name), 1))
        return min(times)

    return {**measured, **{name: first(name) for name in ("flag", "verdict")}}


def measure_views(n: int, repeats: int) -> dict[str, float]:
    """Measure single views of rows in the memory of the GPU."""
    rng, cupy = np.random.default_rng(0), need_cupy()
    double = cupy.random.RandomState(0).normal(size=(n, N_FEATURES))
    single = double.astype(np.float32)
    references = rng.normal(size=(N_REFERENCES, N_FEATURES))
    draw = rng.normal(size=(2 * N_DRAWN, N_FEATURES))
    labels = (np.arange(2 * N_DRAWN) < N_DRAWN).astype(float)
    forest = fit_forest(BinnedRows.of(draw), labels, n_threads=8)
    held_out = HeldOutScores.of(rng.normal(size=4_096))
    works: dict[str, Callable[[], object]] = {
        "distances float64": lambda: mean_log_distances(double, references),
        "distances float32": lambda: mean_log_distances(single, references.astype(np.float32)),
        "forest of 200 trees": lambda: forest.score_bins(find_bins(double, forest.edges)),
        "p-values": lambda: held_out.log_p_values(double[:, 0]),
    }
    return {name: seconds(work, repeats + 1) for name, work in works.items()}


@click.command()
@output_option("gpu_ensemble.csv")
@click.option("--repeats", default=2, show_default=True, help="The shortest of so many times.")
@click.option("--largest", default=10_000_000, show_default=True, help="Rows, at most.")
def main(output: Path, repeats: int, largest: int) -> None:
    """Measure, print and write; takes about a minute."""
    warnings.simplefilter("ignore")  # flagging no row is a valid result here
    measure_detector(10_000, 1)  # compiles the kernels
    results = []
    for n in [n for n in (10**6, 10**7) if n <= largest]:
        for what, measured in (
            ("detector", measure_detector(n, repeats)),
            ("view", measure_views(n, repeats)),
        ):
            for name, time_taken in measured.items():
                console.print(f"{n:>11,} rows  {what:<9} {name:<24} {time_taken:8.4f} s")
                results.append((n, what, name, f"{time_taken:.4g}"))
        need_cupy().get_default_memory_pool().free_all_blocks()
    write_csv(output / "gpu_ensemble.csv", ["rows", "what", "step", "seconds"], results)


if __name__ == "__main__":
    main()
