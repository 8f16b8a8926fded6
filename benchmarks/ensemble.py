"""Time the recommended detector against QMS22 at the paper's settings, and its growth with n.

Times are taken in turn in this one run. Prints tables and writes ensemble.csv:

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

from qms22 import QMS22, QMS22Ensemble
from qms22.datasets import list_keel, load_keel

Row = tuple[str, str, int, int, float, float]


def compare(
    normal: np.ndarray, batch: np.ndarray, clock: Callable[[], float], repeats: int, **options: Any
) -> tuple[float, float]:
    """Return the shortest times of QMS22 and of the ensemble, measured in turn."""
    best = [np.inf, np.inf]
    for _ in range(repeats):
        for number, detector in enumerate((QMS22, QMS22Ensemble)):
            begin = clock()
            detector(random_state=0, **options).fit(normal, unlabeled=batch)
            best[number] = min(best[number], clock() - begin)
    return best[0], best[1]


def keel(repeats: int) -> list[Row]:
    """Fit both on the first fold of every KEEL set; processor time of one thread."""
    rows = []
    for name in track(list_keel(), "KEEL sets", console=Console(stderr=True)):
        fold = next(iter(load_keel(name).folds()))
        n, p = len(fold.normal) + len(fold.unlabeled), fold.normal.shape[1]
        times = compare(fold.normal, fold.unlabeled, time.process_time, repeats)
        rows.append(("keel", name, n, p, *times))
    return rows


def growth(sizes: list[int]) -> list[Row]:
    """Fit both on Gaussian rows, a fifth of them unlabeled; float32, all cores, seconds."""
    rows = []
    for n in track(sizes, "growth with n", console=Console(stderr=True)):
        rng = np.random.default_rng(0)
        normal, batch = rng.normal(size=(n - n // 5, 10)), rng.normal(size=(n // 5, 10))
        batch[: n // 100] *= 2
        times = compare(normal, batch, time.perf_counter, 1, dtype="float32", n_jobs=-1)
        rows.append(("growth", "gaussian", n, 10, *times))
    return rows


@click.command()
@output_option("ensemble.csv")
@click.option("--repeats", default=3, show_default=True, help="Of each KEEL fit; the best counts.")
@click.option("--largest", default=1_000_000, show_default=True, help="Rows, at most.")
def main(output: Path, repeats: int, largest: int) -> None:
    """Measure, print and write."""
    rows: list[Row] = []
    if "QMS22_KEEL" in os.environ:
        rows += keel(repeats)
        ratios = np.array([row[5] / row[4] for row in rows])
        worst = rows[int(ratios.argmax())][1]
        console.print(
            f"KEEL, {len(rows)} sets: the ensemble takes {np.median(ratios):.2f} times as long as "
            f"QMS22 in the median, {ratios.max():.2f} times at most ({worst})"
        )
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= largest]
    grown = growth(sizes)
    for _, _, n, _, plain, ensemble in grown:
        console.print(
            f"{n:>9,} rows: QMS22 {plain:8.2f} s, ensemble {ensemble:8.2f} s, "
            f"{ensemble / plain:.2f} times, {1e6 * ensemble / n:.1f} µs per row"
        )
    write_csv(
        output / "ensemble.csv",
        ["part", "data", "rows", "features", "qms22_seconds", "ensemble_seconds"],
        ((*row[:4], f"{row[4]:.6g}", f"{row[5]:.6g}") for row in rows + grown),
    )


if __name__ == "__main__":
    main()
