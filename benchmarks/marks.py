"""Measure what marks are worth: outliers that an analyst finds within a budget of looks.

    python benchmarks/marks.py --adbench DIRECTORY --output benchmarks/results

In batches of ADBench's sets (up to 1,500 rows, and as many known-normal ones), a simulated analyst
looks at the most suspicious rows and marks what they are. After 2, 5, 10, 20, 30, 50 and 70 looks
the detector learns again, and the ranking of the rest changes. The rivals are the ranking of the
first fit, without marks, and the active forest of coniferest, AADForest, with the same looks. Its
trees grow on the batch, and known-normal rows are labelled "regular": on half A of the sets that
finds more than trees on known-normal rows or on both, than no such labels, and than a prior.

Each set is searched as it is and with outliers as at most 5 % of the batch. After 30 looks, rows of
the rest are flagged at level 0.1: there the marks are of the same batch, and no proof covers that.
The weights of `QMS22Ensemble` for marks were chosen on half A of the sets; half B confirms them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from reporting import console, output_option, write_csv
from rich.table import Table
from study.families import halves_of
from study.problems import ADBENCH, adbench_problems

from qms22 import QMS22Ensemble
from qms22._runtime.stages import progress_bar

LOOKS = (2, 5, 10, 20, 30, 50, 70, 100)
BUDGETS = (10, 30, 100)
FLAG_AFTER, LEVEL = 30, 0.1
FEW = 0.05
BATCHES = ("as it is", "few outliers")

Found = dict[str, object]
# From which rows have been looked at to a score of every row, high for suspicious ones.
Rank = Callable[[NDArray[np.bool_]], NDArray[np.float64]]


@dataclass(frozen=True)
class Batch:
    """Known-normal rows, a batch, and the truth about it."""

    known: NDArray[np.float64]
    rows: NDArray[np.float64]
    is_outlier: NDArray[np.bool_]


def draw(whole: Batch, few: bool, most: int, rng: np.random.Generator) -> Batch:
    """Draw rows of a set; with few outliers, at most one row of the batch in twenty is one."""
    order = rng.permutation(len(whole.rows))
    if few:
        normal, outliers = order[~whole.is_outlier[order]], order[whole.is_outlier[order]]
        normal = normal[: round((1 - FEW) * most)]
        n_outliers = max(1, round(FEW / (1 - FEW) * len(normal)))
        order = rng.permutation(np.concatenate([normal, outliers[:n_outliers]]))
    order = order[:most]
    known = whole.known[rng.permutation(len(whole.known))[:most]]
    return Batch(known, whole.rows[order], whole.is_outlier[order])


def learn(batch: Batch, looked: NDArray[np.bool_], seed: int) -> QMS22Ensemble:
    """Fit the detector to the rows that have not been looked at, with the marks of the others."""
    return QMS22Ensemble(contamination=1, random_state=seed).fit(
        batch.known,
        unlabeled=batch.rows[~looked],
        outliers=batch.rows[looked & batch.is_outlier],
        marked_normal=batch.rows[looked & ~batch.is_outlier],
    )


def rank_with_marks(batch: Batch, seed: int, looked: NDArray[np.bool_]) -> NDArray[np.float64]:
    scores = np.full(len(looked), -np.inf)
    scores[~looked] = learn(batch, looked, seed).unlabeled_scores_
    return scores


def active_forest(batch: Batch, seed: int) -> Rank:
    from coniferest.aadforest import AADForest

    forest = AADForest(n_jobs=1, random_seed=seed)
    rows, known = np.ascontiguousarray(batch.rows), np.ascontiguousarray(batch.known)
    mark = np.where(batch.is_outlier, -1, 1)

    def rank(looked: NDArray[np.bool_]) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a batch has fewer rows than a tree's sample
            labels = np.concatenate([np.ones(len(known), dtype=int), mark[looked]])
            forest.fit_known(rows, np.concatenate([known, rows[looked]]), labels)
        scores: NDArray[np.float64] = -forest.score_samples(rows)
        return scores

    return rank


def look(rank: Rank, batch: Batch) -> NDArray[np.intp]:
    """Return the rows in the order in which they are looked at."""
    looked = np.zeros(len(batch.rows), dtype=bool)
    order: list[int] = []
    for n_looks in LOOKS:
        if looked.all():
            break
        scores = np.where(looked, -np.inf, rank(looked))
        n_new = min(n_looks, len(looked)) - len(order)
        new = np.argsort(-scores, kind="stable")[:n_new]
        order += new.tolist()
        looked[new] = True
    return np.array(order)


def search(whole: Batch, name: str, few: bool, seed: int, most: int) -> list[Found]:
    """Look at the rows of one batch, by each method."""
    batch = draw(whole, few, most, np.random.default_rng(seed))
    n_outliers = int(batch.is_outlier.sum())
    about = {"batch": BATCHES[few], "dataset": name, "n_outliers": n_outliers}
    if not n_outliers:
        return []
    first = rank_with_marks(batch, seed, np.zeros(len(batch.rows), dtype=bool))
    orders = {
        "marks": look(partial(rank_with_marks, batch, seed), batch),
        "no marks": np.argsort(-first, kind="stable"),
        "AADForest": look(active_forest(batch, seed), batch),
    }
    runs = []
    for method, order in orders.items():
        hits = np.cumsum(batch.is_outlier[order])
        found: Found = {}
        for budget in BUDGETS:
            n_found = int(hits[min(budget, len(hits)) - 1])
            found[f"found_{budget}"] = n_found
            found[f"share_{budget}"] = n_found / min(budget, n_outliers)
        if method == "marks" and len(batch.rows) > FLAG_AFTER:
            found |= flag_rest(batch, order[:FLAG_AFTER], seed)
        runs.append({**about, "method": method, **found})
    return runs


def flag_rest(batch: Batch, looked_at: NDArray[np.intp], seed: int) -> Found:
    """Flag rows that have not been looked at, and compare with the truth."""
    looked = np.isin(np.arange(len(batch.rows)), looked_at)
    detector, is_outlier = learn(batch, looked, seed), batch.is_outlier[~looked]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is flagged, or that columns moved
        flagged = detector.flag(LEVEL)
    return {
        "fdp": (flagged & ~is_outlier).sum() / max(1, flagged.sum()),
        "power": flagged[is_outlier].mean() if is_outlier.any() else np.nan,
    }


def search_all(folder: Path, repeats: int, most: int, n_jobs: int) -> pd.DataFrame:
    """Search every set, in parallel, and return a row per batch and method."""
    sets = {p.name: Batch(p.normal, p.batch, p.is_outlier) for p in adbench_problems(folder)}
    jobs = [(name, few, seed) for seed in range(repeats) for few in (True, False) for name in sets]
    runs: list[Found] = []
    with progress_bar("batches", len(jobs), enabled=True) as progress:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        found = parallel(
            delayed(search)(sets[name], name, few, seed, most) for name, few, seed in jobs
        )
        for number, rows in enumerate(found, start=1):
            runs += rows
            progress(number, jobs[number - 1][0])
    table = pd.DataFrame(runs)
    table.insert(1, "half", table["dataset"].map(halves_of(ADBENCH, list(sets))))
    return table


def show(table: pd.DataFrame) -> None:
    """Print the means over data sets, also of the half that confirms."""
    shown = Table(title="Share of the outliers that could have been found, mean over data sets")
    for heading in ("batch", "half", "method", *(f"{budget} looks" for budget in BUDGETS), "FDP"):
        shown.add_column(heading)
    both = table.assign(half="A and B")
    columns = [*(f"share_{budget}" for budget in BUDGETS), "fdp"]
    for keys, means in pd.concat([both, table]).groupby(["batch", "half", "method"])[columns]:
        shown.add_row(*keys, *("" if np.isnan(x) else f"{x:.3f}" for x in means.mean()))
    console.print(shown)


@click.command()
@click.option("--adbench", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--repeats", default=3, show_default=True, help="Random draws of each set.")
@click.option("--rows", "most", default=1500, show_default=True, help="Most rows of T and of S.")
@click.option("--n-jobs", default=-1, show_default=True, help="Parallel processes.")
@output_option("marks.csv")
def main(adbench: Path, repeats: int, most: int, n_jobs: int, output: Path) -> None:
    """Let analysts look at rows; takes about three minutes on 16 cores."""
    begin = time.perf_counter()
    table = search_all(adbench, repeats, most, n_jobs)
    means = table.groupby(["batch", "half", "dataset", "method"], sort=False).mean().reset_index()
    rounded = (
        [f"{value:.4g}" if isinstance(value, float) else value for value in row]
        for row in means.itertuples(index=False)
    )
    write_csv(output / "marks.csv", means.columns, rounded)
    show(means)
    console.print(f"{(time.perf_counter() - begin) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
