"""Measure what the kernel gains from bundles of columns on KEEL's one-hot tables.

    python benchmarks/onehot.py --keel DIRECTORY --output benchmarks/results

Every fold is fitted twice at the paper's settings, in turn: as it is, and with 1e-100 in place of
every zero. The latter has no bundles, so that every column has passes of its own, and the same
result, since 1e-100 vanishes in every sum. Times are CPU times of one thread, in float64: in
float32, 1e-100 would be 0.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from keel import tasks_of
from reporting import console, output_option, write_csv
from rich.table import Table

from qms22._cpm.backends import solve
from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.task import Task
from qms22_bench.datasets import list_keel, load_keel

ONE_HOT = ("car-", "flare-F", "kr-vs-k-")


def timed_fit(task: Task) -> tuple[float, MemberFunctions]:
    """Fit and return the CPU time with the members."""
    begin = time.process_time()
    members = solve(task, SolverOptions()).members
    return time.process_time() - begin, members


def measure(task: Task, repeats: int) -> tuple[float, float]:
    """Return the shortest CPU times of both fits of a task."""
    tasks = (replace(task, X=np.where(task.X == 0, 1e-100, task.X)), task)
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        (single, expected), (bundled, found) = (timed_fit(each) for each in tasks)
        if not (np.array_equal(found.A, expected.A) and np.array_equal(found.b, expected.b)):
            raise RuntimeError("the two fits must find the same member functions")
        best = [min(best[0], single), min(best[1], bundled)]
    return best[0], best[1]


@click.command()
@click.option("--keel", type=click.Path(exists=True, path_type=Path), envvar="QMS22_KEEL")
@click.option("--repeats", default=3, show_default=True, help="Fits per fold; the best one counts.")
@output_option("onehot.csv")
def main(keel: Path | None, repeats: int, output: Path) -> None:
    """Time fits with and without bundles; takes a minute."""
    table = Table(title="QMS22 at the paper's settings: times faster through bundles of columns")
    for heading in ("data set", "columns, s", "bundles, s", "faster"):
        table.add_column(heading, justify="left" if heading == "data set" else "right")
    rows = []
    for name in (name for name in list_keel() if name.startswith(ONE_HOT)):
        tasks = tasks_of(load_keel(name, keel))
        single, bundled = np.sum([measure(task, repeats) for task in tasks], axis=0)
        table.add_row(name, f"{single:.3f}", f"{bundled:.3f}", f"{single / bundled:.2f}×")
        rows.append((name, f"{single:.4f}", f"{bundled:.4f}", f"{single / bundled:.3f}"))
    console.print(table)
    headings = ["dataset", "columns_seconds", "bundles_seconds", "times_faster"]
    write_csv(output / "onehot.csv", headings, rows)


if __name__ == "__main__":
    main()
