"""Time the recommended detector against Isolation Forest and QMS22, in turn in this one run.

Processor time, so that the number of cores and other programs matter little. Prints tables and
writes ensemble.csv:

    python benchmarks/ensemble.py --output benchmarks/results

The KEEL sets are read from the directory that QMS22_KEEL names; without it that part is skipped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from reporting import console, output_option, write_csv
from rich.console import Console
from rich.progress import track
from sklearn.ensemble import IsolationForest

from qms22 import QMS22, QMS22Ensemble
from qms22.datasets import list_keel, load_keel

# Rows and features.
SIZES = (
    *((n, 10) for n in (2_000, 10_000, 60_000, 300_000, 1_000_000, 4_000_000)),
    *((10_000, p) for p in (50, 200)),
)

Work = Callable[[np.ndarray, np.ndarray], Any]
Row = tuple[str, str, int, int, str, float]

# Fits and scores of the batch; flags where there are any.
DETECTORS: dict[str, Work] = {
    "QMS22Ensemble": lambda normal, batch: (
        QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch).flag()
    ),
    "QMS22": lambda normal, batch: QMS22(random_state=0).fit(normal, unlabeled=batch),
    "IsolationForest": lambda normal, batch: (
        IsolationForest(random_state=0).fit(normal).score_samples(batch)
    ),
}


def compare(
    normal: np.ndarray, batch: np.ndarray, names: list[str], repeats: int
) -> dict[str, float]:
    """Return the shortest processor time of each detector, measured in turn."""
    best = dict.fromkeys(names, np.inf)
    for _ in range(repeats):
        for name in names:
            begin = time.process_time()
            DETECTORS[name](normal, batch)
            best[name] = min(best[name], time.process_time() - begin)
    return best


def keel() -> list[Row]:
    """Fit on all folds of every KEEL set, once."""
    rows: list[Row] = []
    for name in track(list_keel(), "KEEL sets", console=Console(stderr=True)):
        total = dict.fromkeys(("QMS22", "QMS22Ensemble"), 0.0)
        folds = list(load_keel(name).folds())
        for fold in folds:
            for detector, seconds in compare(fold.normal, fold.unlabeled, [*total], 1).items():
                total[detector] += seconds
        n, p = len(folds[0].normal) + len(folds[0].unlabeled), folds[0].normal.shape[1]
        rows += [("keel", name, n, p, *measured) for measured in total.items()]
    return rows


def growth(sizes: list[tuple[int, int]], repeats: int) -> list[Row]:
    """Fit and score Gaussian rows and features, a fifth of them unlabeled, 1 % outliers."""
    rows: list[Row] = []
    for n, p in track(sizes, "growth with n", console=Console(stderr=True)):
        rng = np.random.default_rng(0)
        normal, batch = rng.normal(size=(n - n // 5, p)), rng.normal(size=(n // 5, p))
        batch[: n // 100] *= 2
        best = compare(normal, batch, ["IsolationForest", "QMS22Ensemble"], repeats)
        rows += [("growth", "gaussian", n, p, *measured) for measured in best.items()]
        console.print(
            f"{n:>9,} rows of {p:>3}: Isolation Forest {best['IsolationForest']:6.2f} s, ensemble "
            f"{best['QMS22Ensemble']:6.2f} s, "
            f"{best['QMS22Ensemble'] / best['IsolationForest']:.2f} times"
        )
    return rows


@click.command()
@output_option("ensemble.csv")
@click.option("--repeats", default=3, show_default=True, help="Of the growth; the best counts.")
@click.option("--largest", default=4_000_000, show_default=True, help="Rows, at most.")
def main(output: Path, repeats: int, largest: int) -> None:
    """Measure, print and write."""
    rows = growth([size for size in SIZES if size[0] <= largest], repeats)
    if "QMS22_KEEL" in os.environ:
        rows += keel()
        totals = {
            name: sum(row[5] for row in rows if row[0] == "keel" and row[4] == name)
            for name in ("QMS22", "QMS22Ensemble")
        }
        console.print(
            f"KEEL, all folds of {len(list_keel())} sets: QMS22 {totals['QMS22']:.1f} s, ensemble "
            f"{totals['QMS22Ensemble']:.1f} s"
        )
    write_csv(
        output / "ensemble.csv",
        ["part", "data", "rows", "features", "detector", "cpu_seconds"],
        ((*row[:5], f"{row[5]:.6g}") for row in rows),
    )


if __name__ == "__main__":
    main()
