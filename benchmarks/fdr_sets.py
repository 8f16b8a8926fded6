"""Labelled data sets, and batches drawn from them, for the benchmarks of decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from reporting import console, write_csv
from sklearn import datasets as made

from qms22._runtime.stages import progress_bar
from qms22_bench.datasets import load_adbench, load_keel

MOST_NORMAL = 800
KNOWN_SHARE = 0.8
OUTLIERS_PER_NORMAL = 0.25

# Rows of a set of ADBench, half of whose normal rows are known.
ADBENCH_ROWS = 1500

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
    """Load a data set of KEEL as numbers."""
    dataset = load_keel(name, keel)
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

    @property
    def without_outliers(self) -> Sample:
        """The same batch without its outliers."""
        return Sample(self.known, self.batch[: self.n_normal], 0)


def draw_split(labeled: Labeled, rng: np.random.RandomState) -> Sample:
    """Draw up to 800 normal rows, four fifths known, and one outlier for every four others."""
    rows, is_outlier = labeled
    normal = rng.permutation(np.flatnonzero(~is_outlier))[:MOST_NORMAL]
    n_known = round(KNOWN_SHARE * len(normal))
    n_outliers = round(OUTLIERS_PER_NORMAL * (len(normal) - n_known))
    outliers = rng.permutation(np.flatnonzero(is_outlier))[:n_outliers]
    batch = np.concatenate([normal[n_known:], outliers])
    return Sample(rows[normal[:n_known]], rows[batch], len(outliers))


def draw_half(labeled: Labeled, rng: np.random.RandomState) -> Sample:
    """Draw up to 1,500 rows; half of the normal ones are known, all others are the batch."""
    rows, is_outlier = labeled
    drawn = rng.permutation(len(rows))[:ADBENCH_ROWS]
    normal, outliers = drawn[~is_outlier[drawn]], drawn[is_outlier[drawn]]
    n_known = len(normal) // 2
    batch = np.concatenate([normal[n_known:], outliers])
    return Sample(rows[normal[:n_known]], rows[batch], len(outliers))


def draw_known(
    labeled: Labeled, rng: np.random.RandomState, n_known: int, n_normal: int, n_outliers: int
) -> Sample:
    """Draw a number of known-normal rows, and of normal rows and outliers of the batch."""
    rows, is_outlier = labeled
    normal = rng.permutation(np.flatnonzero(~is_outlier))
    outliers = rng.permutation(np.flatnonzero(is_outlier))[:n_outliers]
    batch = np.concatenate([normal[:n_normal], outliers])
    return Sample(rows[normal[n_normal : n_normal + n_known]], rows[batch], len(outliers))


def adbench_sets(folder: Path) -> dict[str, Labeled]:
    """Load the sets of ADBench as numbers."""
    return {
        dataset.name: (dataset.rows.encode(dataset.features)[1], dataset.is_outlier)
        for dataset in load_adbench(folder)
    }


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


def write(path: Path, numbers: pd.DataFrame) -> None:
    """Write a table with numbers of four digits."""
    rounded = (
        [f"{value:.4f}" if isinstance(value, float) else value for value in row]
        for row in numbers.itertuples(index=False)
    )
    write_csv(path, numbers.columns, rounded)


keel_option = click.option(
    "--keel", type=click.Path(exists=True, path_type=Path), envvar="QMS22_KEEL"
)
adbench_option = click.option(
    "--adbench", type=click.Path(exists=True, path_type=Path), envvar="QMS22_ADBENCH"
)
n_jobs_option = click.option("--n-jobs", default=-1, show_default=True, help="Parallel processes.")


def old_sets(keel: Path | None) -> Iterator[tuple[str, Labeled]]:
    """Yield the generated data sets, those of scikit-learn and, if there, some of KEEL."""
    yield from made_datasets().items()
    if keel is None:
        console.print("no KEEL files; give their directory with --keel or QMS22_KEEL to use them")
        return
    for name in KEEL:
        yield name, load(name, keel)
