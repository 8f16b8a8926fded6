"""Compare the native distances to the nearest references with SciPy's and NumPy's: processor time.

Before they were native, the distances of a batch of rows to all references were computed by `cdist`
and the nearest ones were found by `partition` and `sort`. Times are processor times of one thread,
the shortest of several, measured in turn. Prints a table and writes nearest.csv:

    python benchmarks/nearest.py --output benchmarks/results
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from reporting import console, output_option, write_csv
from scipy.spatial.distance import cdist

from qms22.estimators.nearest import mean_log_distances

N_REFERENCES = (512, 2048)
N_COLUMNS = (5, 10, 30, 100)
ROWS_AT_ONCE = 1024
N_NEIGHBORS = 24

Rows = NDArray[np.float64]


def by_partition(rows: Rows, references: Rows) -> Rows:
    """Compute the same means over more neighbors, as it was done before."""
    weights = 0.5 ** np.arange(1, N_NEIGHBORS + 1)
    weights /= weights.sum()
    floor = 1e-3 * np.sqrt(2.0 * references.var(axis=0).sum())
    scores = []
    for first in range(0, len(rows), ROWS_AT_ONCE):
        distances = cdist(rows[first : first + ROWS_AT_ONCE], references)
        nearest = np.sort(np.partition(distances, N_NEIGHBORS - 1, axis=1)[:, :N_NEIGHBORS], axis=1)
        scores.append((np.log(nearest + floor) * weights).sum(axis=1))
    return np.concatenate(scores)


def shortest_times(functions: list[Callable[[], Rows]], repeats: int) -> list[float]:
    """Call all functions in turn, several times."""
    best = [np.inf] * len(functions)
    for _ in range(repeats):
        for number, function in enumerate(functions):
            begin = time.process_time()
            function()
            best[number] = min(best[number], time.process_time() - begin)
    return best


@click.command()
@output_option("nearest.csv")
@click.option("--rows", "n_rows", default=8192, show_default=True, help="Rows to compare.")
@click.option("--repeats", default=5, show_default=True, help="The shortest of so many times.")
def main(output: Path, n_rows: int, repeats: int) -> None:
    """Measure, print and write."""
    results = []
    for n_references in N_REFERENCES:
        for p in N_COLUMNS:
            rng = np.random.default_rng(0)
            rows, references = rng.normal(size=(n_rows, p)), rng.normal(size=(n_references, p))
            single = rows.astype(np.float32), references.astype(np.float32)
            error = np.abs(mean_log_distances(rows, references) - by_partition(rows, references))
            before, now, now_single = shortest_times(
                [
                    partial(by_partition, rows, references),
                    partial(mean_log_distances, rows, references),
                    partial(mean_log_distances, *single),
                ],
                repeats,
            )
            console.print(
                f"{n_references:>5} references, {p:>3} columns: "
                f"{before / n_rows * 1e6:6.2f} µs per row before, {now / n_rows * 1e6:5.2f} now "
                f"({before / now:.1f} times faster), {now_single / n_rows * 1e6:5.2f} in float32 "
                f"({now / now_single:.1f}); largest difference {error.max():.0e}"
            )
            times = (f"{seconds:.4g}" for seconds in (before, now, now_single))
            results.append((n_rows, n_references, p, *times, f"{before / now:.2f}"))
    write_csv(
        output / "nearest.csv",
        ["rows", "references", "columns", "cdist seconds", "seconds", "float32 seconds", "ratio"],
        results,
    )


if __name__ == "__main__":
    main()
