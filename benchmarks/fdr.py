"""Check that flagging keeps its false discovery rate, and how many outliers it finds.

    python benchmarks/fdr.py --keel DIRECTORY --adbench DIRECTORY --output benchmarks/results

Data sets are split at random, many times. "39 sets": KEEL's and scikit-learn's and generated ones,
up to 640 known-normal rows, and 160 normal rows with up to 40 outliers to search. "ADBench": 1,500
rows of each set, half of the normal ones known, all others to search. Every batch is searched a
second time without its outliers, where nothing should be flagged. The first five splits are
also searched with another seed, to compare the flags, with five splits and by other detectors.

"known rows": of the large sets of ADBench, 100 to 3,000 known-normal rows and batches of 450 normal
rows and up to 50 outliers.

Ways to flag are those of `flag`, and "plain", what `flag` did before: one split, without an
estimate of the share of normal rows. Without KEEL's or ADBench's files those are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from qms22 import QMS22, QMS22Ensemble
from qms22._cpm.backends import Backend
from qms22._cpm.options import SolverOptions
from qms22.detectors import KNNDetector
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.conformal import benjamini_hochberg
from qms22.estimators.marks import NO_MARKS, Marks

LEVELS = (0.05, 0.1, 0.2)
CONFIDENCE = 0.9
# Splits of each set that are searched with a second seed, with five splits and by other detectors.
COMPARED = 5

MANY = "5 splits"

KNOWN = (100, 300, 1000, 3000)
KNOWN_BATCH = (450, 50)


class NearestNeighbors(QMS22):
    """The distance to the nearest known-normal rows, with the calibration of QMS22."""

    def _learn(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        rng: np.random.RandomState,
        options: SolverOptions,
        groups: Sequence[Sequence[int]] = (),
        marks: Marks = NO_MARKS,
    ) -> None:
        self._knn = KNNDetector().fit(normal)

    def _scorer(self, backend: Backend) -> Callable[[Any], Any]:
        return lambda rows: -self._knn.score_samples(rows)


def plain(detector: BatchDetector, level: float) -> NDArray[np.bool_]:
    """Flag rows as versions before this one did."""
    return benjamini_hochberg(detector.p_values(), level)


def by(method: str, n_splits: int = 1) -> Callable[[BatchDetector, float], NDArray[np.bool_]]:
    return lambda detector, level: detector.flag(level, method=method, n_splits=n_splits)


Ways = Mapping[str, Callable[[BatchDetector, float], NDArray[np.bool_]]]

# Detectors by name, and ways to flag.
DETECTORS: dict[str, tuple[BatchDetector, Ways]] = {
    "QMS22Ensemble": (
        QMS22Ensemble(contamination=1),
        {"full": by("full"), "split": by("split"), "plain": plain, MANY: by("split", 5)},
    ),
    "QMS22": (QMS22(contamination=1), {"split": by("split")}),
    "kNN": (NearestNeighbors(contamination=1), {"split": by("split")}),
}


def quietly(
    way: Callable[[BatchDetector, float], Any], detector: BatchDetector, level: float
) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is flagged, or that the batch has drifted
        return way(detector, level)


def search(
    collection: str,
    draw: Callable[[Labeled, np.random.RandomState], Sample],
    name: str,
    labeled: Labeled,
    seed: int,
) -> list[Found]:
    """Draw one split of a data set and flag rows of it, with and without its outliers."""
    rng = np.random.RandomState(seed)
    sample = draw(labeled, rng)
    if not sample.n_outliers:
        return []
    found = []
    for searched in (sample, sample.without_outliers):
        about = {
            "collection": collection,
            "dataset": name,
            "n_known": len(searched.known),
            "n_unlabeled": len(searched.batch),
            "n_outliers": sample.n_outliers,
            "null": searched is not sample,
        }
        for detector_name, (unfitted, ways) in DETECTORS.items():
            if seed >= COMPARED and detector_name != "QMS22Ensemble":
                continue
            fitted, other = (
                clone(unfitted).set_params(random_state=rng.randint(2**31 - 1)) for _ in range(2)
            )
            fitted.fit(searched.known, unlabeled=searched.batch)
            is_compared = seed < COMPARED and not about["null"] and detector_name == "QMS22Ensemble"
            if is_compared:
                other.fit(searched.known, unlabeled=searched.batch)
            for way_name, way in ways.items():
                if way_name == MANY and not is_compared:
                    continue  # it takes five fits
                keys = {"detector": detector_name, "way": way_name}
                second = partial(way, other) if is_compared else None
                found += [
                    about | keys | numbers for numbers in judge(searched, fitted, way, second)
                ]
    return found


def judge(
    sample: Sample,
    detector: BatchDetector,
    way: Callable[[BatchDetector, float], NDArray[np.bool_]],
    second: Callable[[float], NDArray[np.bool_]] | None,
) -> Iterator[Found]:
    """Compare the flags of a detector with the truth at every level."""
    share = sample.n_outliers / len(sample.batch)
    estimate = detector.estimate_contamination(confidence=CONFIDENCE)
    for level in LEVELS:
        flagged = quietly(way, detector, level)
        n_false = int(flagged[: sample.n_normal].sum())
        numbers = {
            "level": level,
            "false_share": n_false / max(1, int(flagged.sum())),
            "power": flagged[sample.n_normal :].mean() if sample.n_outliers else np.nan,
            "is_none": not flagged.any(),
            "same": np.nan,
            "low_holds": estimate.low <= share + 1e-9,
            "high_holds": estimate.high >= share - 1e-9,
        }
        if second is not None:
            other = quietly(lambda _, at: second(at), detector, level)
            either = int((flagged | other).sum())
            numbers["same"] = (flagged & other).sum() / either if either else np.nan
        yield numbers


KEYS = ["collection", "detector", "way", "level"]


def summarise(runs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means over runs, with the standard errors of independent runs."""
    with_outliers = runs[~runs["null"]].groupby(by, sort=False)
    null = runs[runs["null"]].groupby(by, sort=False)["false_share"]
    return pd.DataFrame(
        {
            "n_runs": with_outliers.size(),
            "fdp": with_outliers["false_share"].mean(),
            "fdp_se": with_outliers["false_share"].sem(),
            "power": with_outliers["power"].mean(),
            "nothing": with_outliers["is_none"].mean(),
            "same": with_outliers["same"].mean(),  # flagged with both seeds, of those with either
            "null_flags": null.mean(),  # all flags are false here
            "null_flags_se": null.sem(),
            "low_holds": with_outliers["low_holds"].mean(),
            "high_holds": with_outliers["high_holds"].mean(),
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


def search_briefly(
    collection: str,
    draw: Callable[[Labeled, np.random.RandomState], Sample],
    name: str,
    labeled: Labeled,
    seed: int,
) -> list[Found]:
    """Search one split without what is done for the first ones only."""
    return search(collection, draw, name, labeled, COMPARED + seed)


def search_known(large: Mapping[str, Labeled], repeats: int, n_jobs: int) -> pd.DataFrame:
    """Search batches of the large sets with different numbers of known-normal rows."""
    n_normal, n_outliers = KNOWN_BATCH
    runs = []
    for n_known in KNOWN:
        draw = partial(draw_known, n_known=n_known, n_normal=n_normal, n_outliers=n_outliers)
        named = partial(search_briefly, f"{n_known} known", draw)
        runs.append(search_all(named, large, repeats, n_jobs))
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
    tables = [
        search_all(partial(search, "39 sets", draw_split), dict(old_sets(keel)), repeats, n_jobs)
    ]
    if adbench is not None:
        sets = adbench_sets(adbench)
        second = partial(search, "ADBench", draw_half)
        tables.append(search_all(second, sets, adbench_repeats, n_jobs))
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
