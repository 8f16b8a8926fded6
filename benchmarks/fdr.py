"""Check that flagging keeps its false discovery rate, and how many outliers it finds.

    python benchmarks/fdr.py --keel DIRECTORY --output benchmarks/results

KEEL's and scikit-learn's data sets are split at random, many times: up to 800 normal rows, four
fifths of them known, the others in the batch to search, with one outlier for every four of them as
far as there are outliers. Every split is searched a second time without its outliers, where nothing
should be flagged. QMS22Ensemble is fitted in float32. Without KEEL's files only the other data sets
are used.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from reporting import console, output_option, write_csv
from rich.table import Table
from sklearn import datasets as made
from sklearn.base import clone

from qms22 import QMS22, QMS22Ensemble
from qms22._cpm.backends import Backend
from qms22._cpm.options import SolverOptions
from qms22._runtime.progress import progress_bar
from qms22.datasets import load_keel
from qms22.detectors import KNNDetector
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.marks import NO_MARKS, Marks

LEVELS = (0.05, 0.1, 0.2)
CONFIDENCE = 0.9

MOST_NORMAL = 800
KNOWN_SHARE = 0.8
OUTLIERS_PER_NORMAL = 0.25

KEEL = (
    "abalone-17_vs_7-8-9-10",
    "abalone19",
    "abalone9-18",
    "car-good",
    "car-vgood",
    "flare-F",
    "kr-vs-k-three_vs_eleven",
    "kr-vs-k-zero-one_vs_draw",
    "kr-vs-k-zero_vs_eight",
    "page-blocks0",
    "pima",
    "poker-8-9_vs_5",
    "segment0",
    "shuttle-2_vs_5",
    "shuttle-c0_vs_c4",
    "vehicle0",
    "vehicle1",
    "vehicle2",
    "vowel0",
    "winequality-red-4",
    "winequality-white-3_vs_7",
    "wisconsin",
    "yeast-0-2-5-6_vs_3-7-8-9",
    "yeast1",
    "yeast3",
    "yeast4",
    "yeast5",
    "yeast6",
)

Labeled = tuple[NDArray[np.float64], NDArray[np.bool_]]
Found = dict[str, object]


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


# Detectors by name, and the numbers of splits to merge.
DETECTORS: dict[str, tuple[BatchDetector, tuple[int, ...]]] = {
    "QMS22Ensemble": (QMS22Ensemble(dtype="float32", contamination=1), (1, 5)),
    "QMS22": (QMS22(contamination=1), (1,)),
    "kNN": (NearestNeighbors(contamination=1), (1,)),
}


def made_datasets() -> dict[str, Labeled]:
    """Return synthetic data sets and some that come with scikit-learn."""
    rng = np.random.RandomState(0)
    normal, odd = rng.normal(size=(2000, 6)), rng.normal(size=(500, 6))
    mixing = rng.normal(size=(6, 6))
    tails, odd_tails = rng.standard_t(3, size=(2000, 6)), rng.standard_t(3, size=(500, 6))
    blobs, cluster = made.make_blobs([500] * 5, n_features=6, cluster_std=1.5, random_state=0)
    moons, _ = made.make_moons(2000, noise=0.1, random_state=0)
    classes, label = made.make_classification(
        4000, n_features=12, n_informative=6, weights=[0.7], class_sep=1.5, random_state=0
    )
    circles, ring = made.make_circles(2500, noise=0.1, factor=0.5, random_state=0)
    digits, digit = made.load_digits(return_X_y=True)
    patients, benign = made.load_breast_cancer(return_X_y=True)

    def stack(rows: NDArray[np.float64], outliers: NDArray[np.float64]) -> Labeled:
        return np.concatenate([rows, outliers]), np.arange(len(rows) + len(outliers)) >= len(rows)

    return {
        "gaussian, shifted": stack(normal, odd + 3 * np.eye(6)[0]),
        "gaussian, wider": stack(normal, odd * 2.5),
        "gaussian, correlations lost": stack(
            normal @ mixing, odd * np.std(normal @ mixing, axis=0)
        ),
        "gaussian, a tight cluster": stack(normal, odd * 0.1 + 1.5),
        "heavy tails, shifted": stack(tails, odd_tails + 2),
        "blobs, one is odd": (blobs, cluster == 4),
        "moons in a square": stack(moons, rng.uniform([-1.5, -1.0], [2.5, 1.5], size=(500, 2))),
        "circles": (circles, ring == 1),
        "make_classification": (classes, label == 1),
        "digits, 8 is odd": (
            digits.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16),
            digit == 8,
        ),
        "breast cancer": (patients, benign == 0),
    }


def load(name: str, keel: Path) -> Labeled:
    dataset = load_keel(name, keel, download=False)
    return dataset.rows.encode(dataset.features)[1], dataset.is_outlier


@dataclass(frozen=True)
class Sample:
    """Known-normal rows, and a batch whose last rows are outliers."""

    known: NDArray[np.float64]
    batch: NDArray[np.float64]
    n_outliers: int

    @property
    def n_normal(self) -> int:
        """The number of normal rows in the batch."""
        return len(self.batch) - self.n_outliers


def draw_split(labeled: Labeled, rng: np.random.RandomState) -> Sample:
    rows, is_outlier = labeled
    normal = rng.permutation(np.flatnonzero(~is_outlier))[:MOST_NORMAL]
    n_known = round(KNOWN_SHARE * len(normal))
    n_outliers = round(OUTLIERS_PER_NORMAL * (len(normal) - n_known))
    outliers = rng.permutation(np.flatnonzero(is_outlier))[:n_outliers]
    batch = np.concatenate([normal[n_known:], outliers])
    return Sample(rows[normal[:n_known]], rows[batch], len(outliers))


def search(name: str, labeled: Labeled, seed: int) -> list[Found]:
    """Draw one split of a data set and flag rows of it, with and without its outliers."""
    rng = np.random.RandomState(seed)
    split = draw_split(labeled, rng)
    about = {
        "dataset": name,
        "n_known": len(split.known),
        "n_unlabeled": len(split.batch),
        "n_outliers": split.n_outliers,
    }
    null = Sample(split.known, split.batch[: split.n_normal], 0)
    found = []
    for searched in (split, null):
        for detector_name, (detector, numbers_of_splits) in DETECTORS.items():
            fitted = clone(detector).set_params(random_state=rng.randint(2**31 - 1))
            fitted.fit(searched.known, unlabeled=searched.batch)
            for n_splits in numbers_of_splits:
                about |= {"detector": detector_name, "n_splits": n_splits}
                judged = judge(searched, fitted, n_splits)
                found += [about | {"null": searched is null} | numbers for numbers in judged]
    return found


def judge(split: Sample, detector: BatchDetector, n_splits: int) -> Iterator[Found]:
    """Compare the flags of a detector with the truth at every level."""
    share = split.n_outliers / len(split.batch)
    estimate = detector.estimate_contamination(confidence=CONFIDENCE, n_splits=n_splits)
    for level in LEVELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning that nothing is flagged
            flagged = detector.flag(level, n_splits=n_splits)
        n_false = int(flagged[: split.n_normal].sum())
        yield {
            "level": level,
            "false_share": n_false / max(1, int(flagged.sum())),
            "power": flagged[split.n_normal :].mean() if split.n_outliers else np.nan,
            "low_holds": estimate.low <= share + 1e-9,
            "high_holds": estimate.high >= share - 1e-9,
            "share_error": estimate.share - share,
        }


KEYS = ["detector", "n_splits", "level"]
OF_SET = ["dataset", "n_known", "n_unlabeled", "n_outliers"]


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
            "null_flags": null.mean(),  # all flags are false here
            "null_flags_se": null.sem(),
            "low_holds": with_outliers["low_holds"].mean(),
            "high_holds": with_outliers["high_holds"].mean(),
            "null_interval_holds": runs[runs["null"]].groupby(by, sort=False)["low_holds"].mean(),
            "share_error": with_outliers["share_error"].mean(),
        }
    ).reset_index()


def show(summary: pd.DataFrame, n_sets: int) -> None:
    table = Table(title=f"{n_sets} data sets, each split at random {summary.n_runs[0] // n_sets} ×")
    headings = (
        "detector",
        "splits",
        "level",
        "false discoveries",
        "found",
        "false flags without outliers",
    )
    for heading in (*headings, "low end holds", "high end holds"):
        table.add_column(heading, justify="left" if heading == "detector" else "right")
    for row in summary.itertuples():
        table.add_row(
            *(row.detector, str(row.n_splits), f"{row.level:g}"),
            f"{row.fdp:.3f} ± {row.fdp_se:.3f}",
            f"{row.power:.3f}",
            f"{row.null_flags:.3f} ± {row.null_flags_se:.3f}",
            *(f"{share:.3f}" for share in (row.low_holds, row.high_holds)),
        )
    console.print(table)


def draw(summary: pd.DataFrame, by_set: pd.DataFrame, path: Path) -> None:
    """Plot the false discovery rate against its level, by data set, and the outliers found."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    kept, found = figure.subplots(1, 2)
    kept.plot([0, 0.25], [0, 0.25], color="black", lw=1, label="promised at most")
    for at, (detector, n_splits) in enumerate(summary[KEYS[:2]].drop_duplicates().to_numpy()):
        label = detector if n_splits == 1 else f"{detector}, {n_splits} splits"
        parts = [
            table[(table.detector == detector) & (table.n_splits == n_splits)]
            for table in (summary, by_set)
        ]
        color, levels = f"C{at}", parts[0].level + 0.004 * (at - 1.5)
        kept.plot(parts[1].level + 0.004 * (at - 1.5), parts[1].fdp, "_", color=color, alpha=0.4)
        kept.errorbar(
            levels, parts[0].fdp, 2 * parts[0].fdp_se, fmt="o", color=color, label=label, ms=4
        )
        found.plot(parts[0].level, parts[0].power, "o-", color=color, label=label, ms=4)
    kept.set(xlabel="fdr asked for", ylabel="mean share of normal rows among the flagged")
    found.set(xlabel="fdr asked for", ylabel="mean share of outliers found", ylim=(0, None))
    for axes in (kept, found):
        axes.set_xticks(LEVELS)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def write(path: Path, numbers: pd.DataFrame) -> None:
    rounded = (
        [f"{value:.4f}" if isinstance(value, float) else value for value in row]
        for row in numbers.itertuples(index=False)
    )
    write_csv(path, numbers.columns, rounded)


def all_datasets(keel: Path | None) -> Iterator[tuple[str, Labeled]]:
    yield from made_datasets().items()
    if keel is None:
        console.print("no KEEL files; give their directory with --keel or QMS22_KEEL to use them")
        return
    for name in KEEL:
        yield name, load(name, keel)


def search_all(
    search: Callable[[str, Labeled, int], list[Found]],
    datasets: Mapping[str, Labeled],
    repeats: int,
    n_jobs: int,
) -> pd.DataFrame:
    """Search random splits of every data set, in parallel, and return what was found."""
    jobs = [(name, seed) for seed in range(repeats) for name in datasets]
    runs: list[Found] = []
    with progress_bar("splits", len(jobs), enabled=True) as progress:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        found = parallel(delayed(search)(name, datasets[name], seed) for name, seed in jobs)
        for number, rows in enumerate(found, start=1):
            runs += rows
            progress(number, jobs[number - 1][0])
    return pd.DataFrame(runs)


keel_option = click.option(
    "--keel", type=click.Path(exists=True, path_type=Path), envvar="QMS22_KEEL"
)
n_jobs_option = click.option("--n-jobs", default=-1, show_default=True, help="Parallel processes.")


@click.command()
@keel_option
@click.option("--repeats", default=20, show_default=True, help="Random splits of each data set.")
@n_jobs_option
@output_option("fdr.csv, fdr-summary.csv and fdr.png")
def main(keel: Path | None, repeats: int, n_jobs: int, output: Path) -> None:
    """Measure false discoveries and power; takes about ten minutes on two cores."""
    begin = time.perf_counter()
    datasets = dict(all_datasets(keel))
    table = search_all(search, datasets, repeats, n_jobs)
    by_set, summary = summarise(table, OF_SET + KEYS), summarise(table, KEYS)
    write(output / "fdr.csv", by_set)
    write(output / "fdr-summary.csv", summary)
    draw(summary, by_set, output / "fdr.png")
    show(summary, len(datasets))
    console.print(f"{(time.perf_counter() - begin) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
