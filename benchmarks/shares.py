"""Measure how well outliers are found when they are few: by their share of the batch.

    python benchmarks/shares.py

A set of ADBench gives a batch of up to 1,500 rows, of which 0.5, 1, 5 or 10 % are outliers. Half of
its normal rows, up to 1,500, are known. The size of a set's batch is the same for all shares, and
the outliers of a smaller share are among those of a larger one. Sets with too few outliers for 10 %
of 400 rows are left out: 400 rows have two outliers at 0.5 %. AUC and average precision are means
over random draws, then over sets. ADBench's files come from ../shared/adbench or from the directory
that QMS22_ADBENCH names.
"""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fdr_sets import Found, Labeled, adbench_sets, draw_known, n_jobs_option, search_all, write
from reporting import console, output_option
from rich.table import Table
from sklearn.metrics import average_precision_score, roc_auc_score

from qms22_bench.registry import get_detector, outlier_scores

SHARES = (0.005, 0.01, 0.05, 0.1)
MOST_ROWS = 1500

# Two outliers at the smallest share: the rank of a single one is mostly chance.
LEAST_ROWS = round(2 / min(SHARES))

# Those with the best mean AUC on KEEL and ADBench, and those that learn from the batch.
DETECTORS = ("QMS22Ensemble", "QMS22", "DOUST", "DTE-NP", "BRM", "kNN")

ADBENCH = Path(__file__).resolve().parents[2] / "shared" / "adbench"


def batch_size(labeled: Labeled) -> int:
    """Return how many rows a set's batch can have at every share."""
    n_outliers = int(labeled[1].sum())
    n_normal = len(labeled[1]) - n_outliers
    return min(MOST_ROWS, n_normal // 2, int(n_outliers / max(SHARES)))


def measure(name: str, labeled: Labeled, seed: int) -> list[Found]:
    """Search a random batch of a set for outliers of each share."""
    n_rows = batch_size(labeled)
    n_known = min(MOST_ROWS, int((~labeled[1]).sum()) // 2)
    found: list[Found] = []
    for share in SHARES:
        n_outliers = round(share * n_rows)
        rng = np.random.RandomState(seed)
        sample = draw_known(labeled, rng, n_known, n_rows - n_outliers, n_outliers)
        is_outlier = np.arange(n_rows) >= sample.n_normal
        for detector in DETECTORS:
            scores = outlier_scores(get_detector(detector).build(seed), sample.known, sample.batch)
            found.append(
                {
                    "dataset": name,
                    "share": share,
                    "detector": detector,
                    "auc": roc_auc_score(is_outlier, scores),
                    "average_precision": float(average_precision_score(is_outlier, scores)),
                }
            )
    return found


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Return means over draws, then over sets, by detector and share."""
    keys = ["detector", "share"]
    sets = runs.groupby([*keys, "dataset"], sort=False).mean().groupby(keys, sort=False)
    means = sets.mean()
    means.insert(0, "n_sets", sets.size())
    return means.reset_index()


def show(summary: pd.DataFrame) -> None:
    """Print AUC and average precision of each detector, in the columns of the shares."""
    table = Table(title="mean AUC / average precision, by the share of outliers in the batch")
    for heading in ("detector", *(f"{share:.1%}" for share in SHARES)):
        table.add_column(heading)
    for detector in DETECTORS:
        rows = summary[summary.detector == detector].itertuples()
        table.add_row(detector, *(f"{row.auc:.3f} / {row.average_precision:.3f}" for row in rows))
    console.print(table)


@click.command()
@click.option(
    "--adbench",
    type=click.Path(path_type=Path),
    default=ADBENCH,
    envvar="QMS22_ADBENCH",
    help="Directory of ADBench's files.",
)
@click.option("--repeats", default=5, show_default=True, help="Random draws of each set.")
@n_jobs_option
@output_option("shares.csv")
def main(adbench: Path, repeats: int, n_jobs: int, output: Path) -> None:
    """Measure AUC and average precision by share; takes a quarter of an hour on one core."""
    if not adbench.is_dir():
        console.print(f"no ADBench files in {adbench}; give their directory with --adbench")
        return
    begin = time.perf_counter()
    sets = adbench_sets(adbench)
    large = {name: labeled for name, labeled in sets.items() if batch_size(labeled) >= LEAST_ROWS}
    console.print(f"{len(large)} of {len(sets)} sets have enough rows and outliers")
    summary = summarise(search_all(measure, large, repeats, n_jobs))
    write(output / "shares.csv", summary)
    show(summary)
    console.print(f"{(time.perf_counter() - begin) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
