"""Check the verdict on batches: false alarms, power, and the choice between anomalies and drift.

    python benchmarks/verdict.py --keel DIRECTORY --adbench DIRECTORY --output benchmarks/results

Data sets are split at random: up to 1,500 normal rows, two thirds of them known, the others the
batch to judge. Most batches stay as they are, and their verdict should be "fine". The others get
outliers (real ones of the set, values far outside a column's range, or a tight cluster), or one of
their columns drifts. The settings were chosen on the generated sets and KEEL's; ADBench's confirm
them. Categories and missing cells are drawn at random and judged by their columns alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fdr_sets import (
    Found,
    Labeled,
    adbench_option,
    adbench_sets,
    keel_option,
    made_datasets,
    n_jobs_option,
    old_sets,
    search_all,
)
from numpy.typing import NDArray
from reporting import console, output_option, write_csv
from rich.table import Table

from qms22 import QMS22Ensemble
from qms22.decisions.moved_columns import ColumnPair, compare_columns
from qms22.decisions.verdict import Verdict, judge_batch

MOST_NORMAL = 1500
KNOWN_SHARE = 2 / 3

SHARES = (0.01, 0.02, 0.05)
SHIFTS = (0.25, 0.5, 1.0, 2.0)
SCALES = (1.5, 2.0)

# Random splits of a data set whose batches get outliers or drift; the others stay clean.
CHANGED_REPEATS = 2

# Cases in which anybody would see what happened, if there are enough rows.
CLEAR_ROWS = 200
CLEAR = {
    ("far values", 0.05),
    ("cluster", 0.05),
    ("shift", 1.0),
    ("shift", 2.0),
    ("scale", 2.0),
    ("share of a level", 0.3),
    ("missing cells", 0.3),
}

Rows = NDArray[np.float64]
Changed = tuple[str, float, Rows, int, int | None]


def deviations(known: Rows) -> NDArray[np.float64]:
    """Return robust standard deviations of columns, or plain ones if half of a column is equal."""
    low, high = np.quantile(known, [0.25, 0.75], axis=0)
    spread: NDArray[np.float64] = np.where(high > low, (high - low) / 1.349, known.std(axis=0))
    return spread


def with_outliers(
    known: Rows, batch: Rows, real: Rows, rng: np.random.RandomState
) -> Iterator[Changed]:
    """Replace some rows of a batch by outliers of several kinds."""
    spread = deviations(known)
    usable = np.flatnonzero(spread > 0)
    for share in SHARES:
        n = max(1, round(share * len(batch)))
        far = batch.copy()
        columns = rng.choice(usable, n)
        low, high = known.min(axis=0), known.max(axis=0)
        far[np.arange(n), columns] = (2 * high - low)[columns]
        yield "far values", share, far, n, None

        tight = batch.copy()
        columns = rng.choice(usable, min(3, len(usable)), replace=False)
        center = batch[rng.randint(len(batch))].copy()
        center[columns] += 4 * spread[columns]
        tight[:n] = center
        tight[:n, columns] += 0.1 * spread[columns] * rng.normal(size=(n, len(columns)))
        yield "cluster", share, tight, n, None

        if len(real) >= n:
            mixed = batch.copy()
            mixed[:n] = real[rng.permutation(len(real))[:n]]
            yield "real outliers", share, mixed, n, None


def with_drift(known: Rows, batch: Rows, rng: np.random.RandomState) -> Iterator[Changed]:
    """Change one column of a batch, one with many values if there is one."""
    spread = deviations(known)
    n_values = np.array([len(np.unique(column)) for column in known.T])
    usable = np.flatnonzero((spread > 0) & (n_values >= min(20, n_values.max())))
    column = int(rng.choice(usable))
    for shift in SHIFTS:
        moved = batch.copy()
        moved[:, column] += shift * spread[column]
        yield "shift", shift, moved, 0, column
    for scale in SCALES:
        moved = batch.copy()
        middle = np.median(known[:, column])
        moved[:, column] = middle + scale * (moved[:, column] - middle)
        yield "scale", scale, moved, 0, column


def judge(collection: Mapping[str, str], name: str, labeled: Labeled, seed: int) -> list[Found]:
    """Split a data set, and judge its batch as it is and changed in several ways."""
    rng = np.random.RandomState(seed)
    rows, is_outlier = labeled
    normal = rng.permutation(np.flatnonzero(~is_outlier))[:MOST_NORMAL]
    n_known = round(KNOWN_SHARE * len(normal))
    known, batch = rows[normal[:n_known]], rows[normal[n_known:]]
    cases: list[Changed] = [("clean", 0.0, batch, 0, None)]
    if seed < CHANGED_REPEATS:
        cases += with_outliers(known, batch, rows[is_outlier], rng)
        cases += with_drift(known, batch, rng)
    found = []
    for case, strength, searched, n_outliers, column in cases:
        detector = QMS22Ensemble(
            dtype="float32", contamination=1, random_state=rng.randint(2**31 - 1)
        )
        verdict = detector.fit(known, unlabeled=searched).verdict()
        about = {"collection": collection[name], "dataset": name, "case": case}
        moved = None if column is None else f"x{column}"
        found.append(
            about | {"strength": strength, "n_rows": len(batch)} | rate(verdict, n_outliers, moved)
        )
    return found


def rate(verdict: Verdict, n_outliers: int, moved: str | None) -> Found:
    """Compare a verdict with the truth: outliers, a moved column or neither."""
    truth = "drift" if moved is not None else "anomalies" if n_outliers else "fine"
    return {
        "alarm": verdict.decision != "fine",
        "anomalies": verdict.decision == "anomalies",
        "drift": verdict.decision == "drift",
        "right": verdict.decision == truth,
        "first": np.nan if moved is None else [c.name for c in verdict.moved[:1]] == [moved],
        "bound_holds": (verdict.fewest_outliers or 0) <= n_outliers if moved is None else np.nan,
    }


def judge_categories(seed: int, n_known: int = 1000, n_batch: int = 500) -> Iterator[Found]:
    """Draw tables of five categories with missing cells, and let one of them drift."""
    rng = np.random.RandomState(seed)
    levels = tuple("abcdef")
    cases = [("clean", 0.0)]
    cases += [("share of a level", share) for share in (0.1, 0.2, 0.3)]
    cases += [("missing cells", share) for share in (0.05, 0.1, 0.3)]
    for case, strength in cases:
        pairs = []
        for column in range(5):
            shares = rng.dirichlet(np.ones(len(levels)))
            normal, batch = (rng.choice(len(levels), n, p=shares) for n in (n_known, n_batch))
            for codes in (normal, batch):
                codes[rng.uniform(size=len(codes)) < 0.02] = -1
            if column == 0 and case == "share of a level":
                # This share of all rows moves to the rarest level.
                rarest = int(np.argmin(shares))
                others = np.flatnonzero((batch != rarest) & (batch >= 0))
                n_moved = min(round(strength * n_batch), len(others))
                batch[rng.permutation(others)[:n_moved]] = rarest
            if column == 0 and case == "missing cells":
                batch[rng.uniform(size=n_batch) < strength] = -1
            pairs.append(ColumnPair(f"c{column}", normal, batch, levels))
        verdict = judge_batch(compare_columns(pairs), n_batch)
        about = {"collection": "categories", "dataset": "categories", "case": case}
        moved = None if case == "clean" else "c0"
        yield about | {"strength": strength, "n_rows": n_batch} | rate(verdict, 0, moved)


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Return shares of runs by collection, case and strength."""
    grouped = runs.groupby(["collection", "case", "strength"], sort=False)
    shares = grouped[["alarm", "anomalies", "drift", "right", "first", "bound_holds"]].agg(
        lambda values: pd.to_numeric(values).mean()
    )
    shares.insert(0, "n_runs", grouped.size())
    return shares.reset_index()


def show(summary: pd.DataFrame, runs: pd.DataFrame) -> None:
    table = Table(title="shares of batches with each verdict")
    for heading in summary.columns:
        table.add_column(heading, justify="left" if heading in ("collection", "case") else "right")
    for row in summary.itertuples(index=False):
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    console.print(table)
    cases = pd.Series(list(zip(runs.case, runs.strength, strict=True)), index=runs.index)
    is_clear = cases.isin(CLEAR) & (runs.n_rows >= CLEAR_ROWS)
    for collection, clear in runs[is_clear].groupby("collection"):
        alarmed = clear[clear.alarm]
        console.print(
            f"{collection}: clear cases {len(clear)}, right {clear.right.mean():.3f}, right where "
            f"there is an alarm {alarmed.right.mean():.3f}, moved column first "
            f"{pd.to_numeric(clear['first']).mean():.3f}"
        )
    clean = runs[(runs.case == "clean") & (runs.collection != "categories")].alarm
    error = np.sqrt(0.05 * 0.95 / len(clean))
    console.print(
        f"alarms in {len(clean)} clean batches: {clean.mean():.4f}; allowed are 0.05 and two "
        f"standard errors, {0.05 + 2 * error:.4f}"
    )


def all_datasets(keel: Path | None, adbench: Path | None) -> Iterator[tuple[str, str, Labeled]]:
    """Return the collection, the name and the rows of every data set."""
    made = made_datasets()
    for name, labeled in old_sets(keel):
        yield "generated" if name in made else "KEEL", name, labeled
    if adbench is not None:
        for name, labeled in adbench_sets(adbench).items():
            yield "ADBench", name, labeled


@click.command()
@keel_option
@adbench_option
@click.option("--repeats", default=8, show_default=True, help="Random splits of each data set.")
@n_jobs_option
@output_option("verdict.csv")
def main(keel: Path | None, adbench: Path | None, repeats: int, n_jobs: int, output: Path) -> None:
    """Measure alarms and decisions; takes about half an hour on two cores."""
    begin = time.perf_counter()
    found = list(all_datasets(keel, adbench))
    collections = {name: collection for collection, name, _ in found}
    datasets = {name: labeled for _, name, labeled in found}
    runs = search_all(partial(judge, collections), datasets, repeats, n_jobs)
    categories = [line for seed in range(25 * repeats) for line in judge_categories(seed)]
    runs = pd.concat([runs, pd.DataFrame(categories)], ignore_index=True)
    summary = summarise(runs)
    rounded = ([f"{v:.4f}" if isinstance(v, float) else v for v in row] for row in summary.values)
    write_csv(output / "verdict.csv", summary.columns, rounded)
    show(summary, runs)
    console.print(f"{(time.perf_counter() - begin) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
