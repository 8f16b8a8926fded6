"""Time the paper's 95 × 5 fits: the native kernel against the naive C++ loop, in one run.

    python benchmarks/keel.py --keel DIRECTORY --output benchmarks/results

Both solve the same tasks (paper settings, float64, one thread), taking turns data set by data set,
and must find the same member functions.
"""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np
from compiled import load
from naive import naive_cpm
from reporting import console, output_option, write_csv

from qms22._cpm.backends import solve
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.task import Task, detection_task
from qms22._runtime.stages import progress_bar
from qms22_bench.datasets import Dataset, list_keel, load_keel, paper_table1


def tasks_of(dataset: Dataset) -> list[Task]:
    """Make the QMS22 tasks of a data set, one per fold."""
    tasks = []
    for fold in dataset.folds():
        scaler = FeatureScaler.learn(fold.normal, "maxabs")
        rows = scaler.transform(np.concatenate([fold.unlabeled, fold.normal]))
        rng = np.random.RandomState(0)
        tasks.append(detection_task(rows, len(fold.unlabeled), 7, rng))
    return tasks


def measure(dataset: Dataset) -> tuple[float, float, int]:
    """Time all folds natively and naively; count the folds whose member functions agree."""
    options = SolverOptions()
    native_seconds, naive_seconds, n_equal = 0.0, 0.0, 0
    for task in tasks_of(dataset):
        begin = time.perf_counter()
        found = solve(task, options).members
        middle = time.perf_counter()
        A, b = naive_cpm(task, options)
        end = time.perf_counter()
        native_seconds += middle - begin
        naive_seconds += end - middle
        n_equal += np.array_equal(found.A, A) and np.array_equal(found.b, b)
    return native_seconds, naive_seconds, n_equal


@click.command()
@click.option("--keel", type=click.Path(exists=True, path_type=Path), envvar="QMS22_KEEL")
@output_option("keel.csv")
def main(keel: Path | None, output: Path) -> None:
    """Time the paper's 95 × 5 fits; takes about three minutes."""
    load("naive_cpm.cpp")  # compiled before the clock starts
    names = list_keel()
    rows = []
    with progress_bar("data sets", len(names), enabled=True) as show:
        for number, name in enumerate(names, start=1):
            rows.append((name, *measure(load_keel(name, keel)), paper_table1()[name].seconds))
            show(number, name)
    native, naive, n_equal, paper = np.sum([row[1:] for row in rows], axis=0)
    write_csv(
        output / "keel.csv",
        ["dataset", "native_seconds", "naive_seconds", "equal_folds", "paper"],
        ((name, f"{a:.4f}", f"{b:.4f}", n, t) for name, a, b, n, t in rows),
    )
    console.print(
        f"{5 * len(names)} fits, float64, one thread: native {native:.1f} s, naive loop "
        f"{naive:.1f} s, {naive / native:.1f}× faster; the paper reports {paper:.0f} s for its C "
        f"code on another machine. Member functions are equal in {n_equal:.0f} fits."
    )


if __name__ == "__main__":
    main()
