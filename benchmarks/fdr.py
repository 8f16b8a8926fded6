"""Check that flagging keeps its false discovery rate, and how many outliers it finds.

    python benchmarks/fdr.py --keel DIRECTORY --adbench DIRECTORY --output benchmarks/results

Data sets are split at random, many times. "39 sets": KEEL's and scikit-learn's and generated ones,
up to 640 known-normal rows, and 160 normal rows with up to 40 outliers to search. "ADBench": 1,500
rows of each set, half of the normal ones known, all others to search. Every batch is searched a
second time without its outliers, where nothing should be flagged, and the first five with another
seed, to compare the flags. Of the sets in alphabetical order, every second one is of the half
"confirmed", which no choice may be made on; the others are "chosen".

"known rows": of the large sets of ADBench, 100 to 3,000 known-normal rows and batches of 450 normal
rows and up to 50 outliers.

The recommended detector is compared with kNN, calibrated by half of the known-normal rows, which it
does not learn from. Without KEEL's or ADBench's files those sets are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from fdr_sets import (
    Found,
    Labeled,
    Sample,
    adbench_option,
    adbench_sets,
    draw_half,
    draw_known,
    draw_split,
    keel_option,
    n_jobs_option,
    old_sets,
    search_all,
    write,
)
from numpy.typing import NDArray
from reporting import console, output_option
from rich.table import Table
from sklearn.base import clone

from qms22 import QMS22Ensemble
from qms22.decisions.comparison import Comparison
from qms22.decisions.curve import bound_false
from qms22.decisions.ruler import Ruler
from qms22_bench.rivals import KNNDetector

LEVELS = (0.05, 0.1, 0.2)
CONFIDENCE = 0.9
# Splits of each set that are searched with a second seed.
COMPARED = 5

KNOWN = (100, 300, 1000, 3000)
KNOWN_BATCH = (450, 50)

Rows = NDArray[np.float64]
# Scores of known-normal rows that were not learned from, and of the batch.
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


def by_ensemble(known: Rows, batch: Rows, seed: int) -> Scores:
    detector = QMS22Ensemble(contamination=1, random_state=seed).fit(known, unlabeled=batch)
    return detector.score_normals(), detector.unlabeled_scores_


def by_half(detector: Any, known: Rows, batch: Rows, seed: int) -> Scores:
    """Score by what is learned from half of the known-normal rows; the others are held out."""
    learned, held_out = np.array_split(np.random.RandomState(seed).permutation(known), 2)
    fitted = clone(detector).fit(learned)
    return -fitted.score_samples(held_out), -fitted.score_samples(batch)


# From known-normal rows, a batch and a seed to scores.
DETECTORS: dict[str, Callable[[Rows, Rows, int], Scores]] = {
    "QMS22Ensemble": by_ensemble,
    "kNN, half held out": partial(by_half, KNNDetector()),
}


def flag(scores: Scores, level: float) -> NDArray[np.bool_]:
    """Flag rows as `QMS22Ensemble.flag` does."""
    return Comparison.of(Ruler.of(scores[0]), scores[1]).flag(level)


def bounds_hold(sample: Sample, scores: Scores) -> bool:
    """Return whether the bounds on false discoveries are right for all numbers of rows."""
    bounds = bound_false(Comparison.of(Ruler.of(scores[0]), scores[1]).counts, CONFIDENCE)
    is_normal = np.arange(len(sample.batch)) < sample.n_normal
    n_false = np.cumsum(is_normal[np.argsort(-scores[1], kind="stable")])
    return bool((n_false <= bounds.of_first(np.arange(1, len(n_false) + 1))).all())


def search(
    collection: str,
    draw: Callable[[Labeled, np.random.RandomState], Sample],
    half: Mapping[str, str],
    name: str,
    labeled: Labeled,
    seed: int,
) -> list[Found]:
    """Draw one split of a data set and flag rows of it, with and without its outliers."""
    sample = draw(labeled, np.random.RandomState(seed))
    if not sample.n_outliers:
        return []
    found = []
    for searched in (sample, sample.without_outliers):
        about: Found = {
            "collection": collection,
            "half": half[name],
            "dataset": name,
            "null": searched is not sample,
        }
        for detector, score in DETECTORS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = score(searched.known, searched.batch, seed)
                is_compared = seed < COMPARED and searched is sample
                other = None
                if is_compared:
                    other = score(searched.known, searched.batch, 1000 + seed)
            for numbers in judge(searched, scores, other):
                found.append(about | {"detector": detector} | numbers)
    return found


def judge(sample: Sample, scores: Scores, other: Scores | None) -> Iterator[Found]:
    """Compare flags with the truth at every level, and with those of another seed."""
    hold = bounds_hold(sample, scores)
    for level in LEVELS:
        flagged = flag(scores, level)
        same = np.nan
        if other is not None:
            others = flag(other, level)
            n_either = int((flagged | others).sum())
            same = int((flagged & others).sum()) / n_either if n_either else np.nan
        yield {
            "level": level,
            "false_share": int(flagged[: sample.n_normal].sum()) / max(1, int(flagged.sum())),
            "power": flagged[sample.n_normal :].mean() if sample.n_outliers else np.nan,
            "is_none": not flagged.any(),
            "same": same,
            "bounds_hold": hold,
        }


KEYS = ["collection", "half", "detector", "level"]


def halves(sets: Mapping[str, Labeled]) -> dict[str, str]:
    """Return which half a set is of, by its place in the alphabet."""
    return {name: ("chosen", "confirmed")[at % 2] for at, name in enumerate(sorted(sets))}


def summarise(runs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means over runs, with the standard errors of independent runs."""
    with_outliers = runs[~runs["null"]].groupby(by, sort=False)
    null = runs[runs["null"]].groupby(by, sort=False)
    return pd.DataFrame(
        {
            "n_runs": with_outliers.size(),
            "fdp": with_outliers["false_share"].mean(),
            "fdp_se": with_outliers["false_share"].sem(),
            "power": with_outliers["power"].mean(),
            "nothing": with_outliers["is_none"].mean(),
            "same": with_outliers["same"].mean(),  # flagged with both seeds, of those with either
            "bounds_hold": with_outliers["bounds_hold"].mean(),
            "null_flags": null["false_share"].mean(),  # all flags are false here
            "null_flags_se": null["false_share"].sem(),
            "null_bounds_hold": null["bounds_hold"].mean(),
        }
    ).reset_index()


def show(summary: pd.DataFrame) -> None:
    table = Table(title="means over data sets and splits")
    for column in summary.columns:
        table.add_column(column, justify="left" if column in KEYS else "right")
    for row in summary.itertuples(index=False):
        table.add_row(
            *(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row)
        )
    console.print(table)


def draw(summary: pd.DataFrame, by_set: pd.DataFrame, path: Path) -> None:
    """Plot the false discovery rate against its level, by data set, and the outliers found."""
    from matplotlib.figure import Figure

    collections = list(dict.fromkeys(summary.collection))
    figure = Figure(figsize=(10, 4 * len(collections)), layout="constrained")
    rows = figure.subplots(len(collections), 2, squeeze=False)
    for (kept, found), collection in zip(rows, collections, strict=True):
        kept.plot([0, 0.25], [0, 0.25], color="black", lw=1, label="promised at most")
        of_collection = summary[summary.collection == collection]
        for at, keys in enumerate(of_collection[KEYS[1:3]].drop_duplicates().to_numpy()):
            parts = [
                table[(table[KEYS[:3]] == [collection, *keys]).all(axis=1)]
                for table in (summary, by_set)
            ]
            moved = 0.004 * (at - 2.5)
            kept.plot(parts[1].level + moved, parts[1].fdp, "_", color=f"C{at}", alpha=0.4)
            kept.errorbar(
                parts[0].level + moved,
                parts[0].fdp,
                2 * parts[0].fdp_se,
                fmt="o",
                color=f"C{at}",
                label=", ".join(keys),
                ms=4,
            )
            found.plot(parts[0].level, parts[0].power, "o-", color=f"C{at}", ms=4)
        kept.set(xlabel="fdr asked for", ylabel="mean share of normal rows among the flagged")
        found.set(xlabel="fdr asked for", ylabel="mean share of outliers found", ylim=(0, None))
        kept.set_title(collection, loc="left")
        for axes in (kept, found):
            axes.set_xticks(LEVELS)
        kept.legend(fontsize=7)
    figure.savefig(path, dpi=120)


def search_sets(
    collection: str,
    draw: Callable[[Labeled, np.random.RandomState], Sample],
    sets: Mapping[str, Labeled],
    repeats: int,
    n_jobs: int,
) -> pd.DataFrame:
    return search_all(partial(search, collection, draw, halves(sets)), sets, repeats, n_jobs)


def search_known(large: Mapping[str, Labeled], repeats: int, n_jobs: int) -> pd.DataFrame:
    """Search batches of the large sets with different numbers of known-normal rows."""
    n_normal, n_outliers = KNOWN_BATCH
    runs = []
    for n_known in KNOWN:
        draw = partial(draw_known, n_known=n_known, n_normal=n_normal, n_outliers=n_outliers)
        runs.append(search_sets(f"{n_known} known", draw, large, repeats, n_jobs))
    return pd.concat(runs)


def large_sets(adbench: Mapping[str, Labeled]) -> dict[str, Labeled]:
    """Return the sets with enough normal rows and outliers for `search_known`."""
    n_normal, n_outliers = KNOWN_BATCH
    return {
        name: (rows, is_outlier)
        for name, (rows, is_outlier) in adbench.items()
        if (~is_outlier).sum() >= max(KNOWN) + n_normal and is_outlier.sum() >= n_outliers
    }


@click.command()
@keel_option
@adbench_option
@click.option("--repeats", default=20, show_default=True, help="Random splits of each data set.")
@click.option("--adbench-repeats", default=5, show_default=True, help="The same for ADBench's.")
@n_jobs_option
@output_option("fdr.csv, fdr-summary.csv, fdr-known.csv and fdr.png")
def main(
    keel: Path | None,
    adbench: Path | None,
    repeats: int,
    adbench_repeats: int,
    n_jobs: int,
    output: Path,
) -> None:
    """Measure false discoveries and power; takes about half an hour on two cores."""
    begin = time.perf_counter()
    tables = [search_sets("39 sets", draw_split, dict(old_sets(keel)), repeats, n_jobs)]
    if adbench is not None:
        sets = adbench_sets(adbench)
        tables.append(search_sets("ADBench", draw_half, sets, adbench_repeats, n_jobs))
        known = summarise(search_known(large_sets(sets), max(1, repeats // 20), n_jobs), KEYS)
        write(output / "fdr-known.csv", known)
        show(known[known.level == 0.1])
    runs = pd.concat(tables)
    by_set, summary = summarise(runs, ["dataset", *KEYS]), summarise(runs, KEYS)
    write(output / "fdr.csv", by_set)
    write(output / "fdr-summary.csv", summary)
    show(summary)
    draw(summary, by_set, output / "fdr.png")
    console.print(f"{(time.perf_counter() - begin) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
