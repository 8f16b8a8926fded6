"""Measure the loss of AUC for small `max_samples`, on large real sets and on synthetic rows.

    python benchmarks/max_samples.py --output benchmarks/results

Sets of KEEL and of ADBench are read from the directories that QMS22_KEEL and QMS22_ADBENCH name;
without them these parts are skipped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from reporting import console, output_option, write_csv

from qms22 import QMS22, QMS22Ensemble
from qms22.metrics import roc
from qms22_bench.datasets import load_keel, paper_table1

DETECTORS = {"QMS22": QMS22, "QMS22Ensemble": QMS22Ensemble}

KEEL_LIMITS = (None, 1000, 500, 250, 100)
ADBENCH_LIMITS = (None, 14_000, 7_000, 3_500, 1_750)
MADE_LIMITS = (None, 100_000, 30_000, 10_000, 3_000, 1_000)

# Of ADBench's sets those with at least so many rows, and no more rows of each.
LEAST_ROWS, MOST_ROWS = 40_000, 60_000

# Shift of the outliers in synthetic rows, in standard deviations.
SHIFTS = {"made, faint outliers": 1.5, "made, clear outliers": 4.0}

# Above this number of rows only QMS22 is measured, on faint outliers, to save time.
MOST_FOR_ALL = 100_000


class Case(NamedTuple):
    """Known-normal rows, a batch, and the truth about it."""

    normal: np.ndarray
    batch: np.ndarray
    is_outlier: np.ndarray


def keel_cases(name: str) -> list[Case]:
    return [Case(fold.normal, fold.unlabeled, fold.is_outlier) for fold in load_keel(name).folds()]


def adbench_case(path: Path) -> Case | None:
    """Return half of the normal rows, and the others with the outliers; None for small sets."""
    with np.load(path, allow_pickle=True) as file:
        rows, is_outlier = file["X"].astype(float), file["y"] == 1
    if len(rows) < LEAST_ROWS:
        return None
    rng = np.random.RandomState(0)
    drawn = rng.permutation(len(rows))[:MOST_ROWS]
    rows, is_outlier = rows[drawn], is_outlier[drawn]
    known = np.flatnonzero(~is_outlier)[: np.count_nonzero(~is_outlier) // 2]
    return Case(rows[known], np.delete(rows, known, axis=0), np.delete(is_outlier, known))


def made_case(n_rows: int, shift: float, n_features: int = 10) -> Case:
    """Return five Gaussian clouds; a fifth of the rows is the batch, 1 % of it shifted."""
    rng = np.random.RandomState(0)
    centers = 4 * rng.normal(size=(5, n_features))
    rows = centers[rng.randint(5, size=n_rows)] + rng.normal(size=(n_rows, n_features))
    batch, normal = np.split(rows, [n_rows // 5])
    is_outlier = np.arange(len(batch)) < len(batch) // 100
    batch[is_outlier, :3] += shift
    return Case(normal, batch, is_outlier)


def measure(
    data: str, cases: Sequence[Case], detector: str, limits: Sequence[int | None]
) -> Iterator[dict[str, object]]:
    """Fit with every limit; AUC is the mean over the cases, seconds the sum."""
    n_rows = len(cases[0].normal) + len(cases[0].batch)
    whole = None
    for max_samples in limits:
        if max_samples is not None and max_samples >= len(cases[0].normal):
            continue
        begin, aucs = time.perf_counter(), []
        for case in cases:
            fitted = DETECTORS[detector](
                max_samples=max_samples, dtype="float32", n_jobs=-1, random_state=0
            ).fit(case.normal, unlabeled=case.batch)
            aucs.append(roc(case.is_outlier, fitted.unlabeled_scores_).auc)
        seconds, auc = time.perf_counter() - begin, float(np.mean(aucs))
        whole = auc if whole is None else whole
        yield {
            "data": data,
            "rows": n_rows,
            "features": cases[0].normal.shape[1],
            "detector": detector,
            "max_samples": max_samples or "all",
            "auc": f"{auc:.4f}",
            "change": f"{auc - whole:+.4f}",
            "seconds": f"{seconds:.2f}",
        }


def show_changes(
    source: str, lines: list[dict[str, object]], detector: str, limits: Sequence[int | None]
) -> None:
    """Print the mean and the worst change of AUC over data sets, by limit."""
    for limit in limits[1:]:
        changes = [
            float(str(line["change"]))
            for line in lines
            if (line["detector"], line["max_samples"]) == (detector, limit)
        ]
        console.print(
            f"{detector}, {len(changes)} sets of {source}, max_samples={limit}: AUC "
            f"{np.mean(changes):+.4f} on average, {min(changes):+.4f} at worst"
        )


@click.command()
@click.option("--rows", multiple=True, type=int, default=(100_000, 1_000_000), show_default=True)
@output_option("max_samples.csv")
def main(rows: tuple[int, ...], output: Path) -> None:
    """Fit on fewer and fewer rows; takes a few minutes."""
    found: list[dict[str, object]] = []
    if "QMS22_KEEL" in os.environ:
        large = [name for name, paper in paper_table1().items() if paper.n >= 2000]
        for name in large:
            cases = keel_cases(name)
            for detector in DETECTORS:
                found += measure(name, cases, detector, KEEL_LIMITS)
        for detector in DETECTORS:
            show_changes("KEEL", found, detector, KEEL_LIMITS)
    if "QMS22_ADBENCH" in os.environ:
        measured: list[dict[str, object]] = []
        for path in sorted(Path(os.environ["QMS22_ADBENCH"]).glob("*.npz")):
            large_case = adbench_case(path)
            if large_case is not None:
                for line in measure(path.stem, [large_case], "QMS22Ensemble", ADBENCH_LIMITS):
                    console.print(*line.values())
                    measured.append(line)
        show_changes("ADBench", measured, "QMS22Ensemble", ADBENCH_LIMITS)
        found += measured
    for n_rows in rows:
        for data, shift in SHIFTS.items():
            case = made_case(n_rows, shift)
            for detector in DETECTORS:
                if n_rows <= MOST_FOR_ALL or (shift, detector) == (1.5, "QMS22"):
                    for line in measure(data, [case], detector, MADE_LIMITS):
                        console.print(*line.values())
                        found.append(line)
    write_csv(output / "max_samples.csv", found[0], (line.values() for line in found))


if __name__ == "__main__":
    main()
