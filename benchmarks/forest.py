"""Compare the native forest with scikit-learn's extremely randomised trees: AUC and time.

Both tell the batch from known-normal rows, and a row's score is its out-of-bag share of the batch.
Times are processor times of one thread, measured in turn. Prints tables and writes forest.csv:

    python benchmarks/forest.py --adbench ../shared/adbench --output benchmarks/results

The folder holds ADBench's .npz files and splits.py, which splits them into rows known to be normal
and a batch. Without it that part is skipped.
"""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from reporting import console, output_option, write_csv
from rich.console import Console
from rich.progress import track
from sklearn.ensemble import ExtraTreesClassifier

from qms22.estimators.forest import BinnedRows, fit_forest
from qms22.metrics import roc

SIZES = (2_000, 20_000, 100_000)
SEEDS = (0, 1, 2)
MOST_ROWS = 4_000

Rows = NDArray[np.float64]
Result = tuple[str, str, int, int, str, str]


def native(rows: Rows, labels: Rows, seed: int) -> Rows:
    return fit_forest(BinnedRows.of(rows), labels, seed=seed).oob_scores


def sklearn(rows: Rows, labels: Rows, seed: int) -> Rows:
    forest = ExtraTreesClassifier(
        n_estimators=200,
        bootstrap=True,
        oob_score=True,
        min_samples_leaf=5,
        class_weight="balanced",
        random_state=seed,
    )
    scores: Rows = forest.fit(rows, labels).oob_decision_function_[:, 1]
    return scores


def compare_auc(folder: Path) -> list[Result]:
    """Return the AUC of both on every set, as a mean over the seeds, and the mean of all sets."""
    splits = runpy.run_path(str(folder / "splits.py"))["splits"]
    results: list[Result] = []
    measured = []
    for name, normal, batch, truth in track(
        splits(folder, most_rows=MOST_ROWS), "ADBench", console=Console(stderr=True)
    ):
        rows = np.vstack([normal, batch])
        labels = np.repeat([0.0, 1.0], [len(normal), len(batch)])
        aucs = np.array(
            [
                [roc(truth, fit(rows, labels, seed)[len(normal) :]).auc for seed in SEEDS]
                for fit in (native, sklearn)
            ]
        )
        measured.append(aucs)
        ours, theirs = aucs.mean(axis=1)
        results.append(("auc", name, *rows.shape, f"{ours:.4f}", f"{theirs:.4f}"))
    means = np.mean(measured, axis=(0, 2))
    # Of the means, if the same sets were measured with other seeds.
    errors = np.sqrt((np.var(measured, axis=2, ddof=1) / len(SEEDS)).sum(axis=0)) / len(measured)
    for name, (ours, theirs) in (("mean", means), ("standard error of the mean", errors)):
        console.print(f"AUC, {name}: {ours:.4f}, scikit-learn {theirs:.4f}")
        results.append(("auc", name, 0, 0, f"{ours:.4f}", f"{theirs:.4f}"))
    return results


def compare_times(largest: int) -> list[Result]:
    """Return the shortest times of both on Gaussian rows, half of them unlabeled."""
    results: list[Result] = []
    for n in [size for size in SIZES if size <= largest]:
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(n, 10)), np.repeat([0.0, 1.0], n // 2)
        rows[-n // 20 :] += 1
        best = [np.inf, np.inf]
        for _ in range(3 if n < 100_000 else 1):
            for number, fit in enumerate((native, sklearn)):
                begin = time.process_time()
                fit(rows, labels, 0)
                best[number] = min(best[number], time.process_time() - begin)
        console.print(
            f"{n:>7,} x 10: {best[0]:.3f} s, scikit-learn {best[1]:.2f} s, "
            f"{best[1] / best[0]:.1f} times faster"
        )
        results.append(("seconds", "gaussian", n, 10, f"{best[0]:.4g}", f"{best[1]:.4g}"))
    return results


@click.command()
@output_option("forest.csv")
@click.option("--adbench", type=click.Path(path_type=Path), default=Path("../shared/adbench"))
@click.option("--largest", default=SIZES[-1], show_default=True, help="Rows to time, at most.")
def main(output: Path, adbench: Path, largest: int) -> None:
    """Measure, print and write."""
    results = compare_times(largest)
    if (adbench / "splits.py").exists():
        results += compare_auc(adbench)
    write_csv(
        output / "forest.csv",
        ["quantity", "data", "rows", "features", "native", "sklearn"],
        results,
    )


if __name__ == "__main__":
    main()
