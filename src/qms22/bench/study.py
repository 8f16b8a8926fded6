"""The study behind `QMS22Ensemble`: choose on one half of KEEL's families, confirm on the other.

Data sets that were made from one source are a family; they are alike, so that a family is in one
half as a whole. Every variant is measured on every data set, but the choice sees one half only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata

from qms22.bench.statistics import signed_ranks
from qms22.bench.study_pieces import Pieces
from qms22.bench.study_variants import BRM, KNN, PAPER, all_variants
from qms22.datasets import Dataset, Fold

FAMILIES = (
    "abalone",
    "car",
    "cleveland",
    "dermatology",
    "ecoli",
    "flare",
    "glass",
    "haberman",
    "iris",
    "kr-vs-k",
    "led7digit",
    "lymphography",
    "new-thyroid",
    "page-blocks",
    "pima",
    "poker",
    "segment",
    "shuttle",
    "vehicle",
    "vowel",
    "winequality",
    "wisconsin",
    "yeast",
    "zoo",
)
RIVALS = (BRM, PAPER, KNN)


@dataclass(frozen=True)
class Job:
    """One fold of a data set, to be scored by variants with one seed."""

    dataset: str
    fold: Fold
    seed: int
    variants: Sequence[str]


def family_of(name: str) -> str:
    """Name the source of a KEEL data set.

    Examples
    --------
    >>> family_of("winequality-red-4"), family_of("glass-0-1-5_vs_2")
    ('winequality', 'glass')
    """
    for family in FAMILIES:
        if name.startswith(family):
            return family
    raise ValueError(f"{name!r} belongs to none of the families {', '.join(FAMILIES)}")


def halves_of(names: Iterable[str]) -> dict[str, str]:
    """Give the half, "A" or "B", of every family that KEEL data sets belong to.

    Families are dealt out by their number of data sets, larger ones first and equal ones by name,
    each to the half that has fewer data sets so far. Nothing in it depends on rows or labels.

    Examples
    --------
    >>> halves_of(["glass1", "glass2", "iris0", "zoo-3", "pima"])
    {'glass': 'A', 'iris': 'B', 'pima': 'B', 'zoo': 'A'}
    """
    sizes = Counter(map(family_of, names))
    if len(sizes) < 2:
        raise ValueError(
            "a study chooses on one half of the families and confirms on the other; "
            f"give data sets of at least two families, not of {len(sizes)}"
        )
    n_sets = {"A": 0, "B": 0}
    halves = {}
    for family in sorted(sizes, key=lambda family: (-sizes[family], family)):
        halves[family] = min(n_sets, key=n_sets.__getitem__)
        n_sets[halves[family]] += sizes[family]
    return halves


def measure(
    datasets: Sequence[Dataset],
    variants: Sequence[str],
    seeds: Sequence[int],
    *,
    n_jobs: int = 1,
    show: Callable[[int, str], None] = lambda done, name: None,
) -> pd.DataFrame:
    """Measure variants on data sets.

    Parameters
    ----------
    datasets : sequence of Dataset
    variants : sequence of str
        Names of `all_variants`.
    seeds : sequence of int
    n_jobs : int
        Folds side by side; -1 means all cores.
    show : callable, optional
        Told after each fold and seed how many are done, and the last one's data set.

    Returns
    -------
    DataFrame
        Raw AUC, mean over folds and seeds: data sets as rows, variants as columns.
    """
    jobs = [
        Job(dataset.name, fold, seed, variants)
        for dataset in datasets
        for fold in dataset.folds()
        for seed in seeds
    ]
    # Long ones first, so that no core waits for the last one.
    jobs.sort(key=lambda job: -job.fold.normal.size)
    rows = []
    for job, auc in zip(jobs, _execute(jobs, n_jobs), strict=True):
        rows.append([job.dataset, *auc])
        show(len(rows), job.dataset)
    table = pd.DataFrame(rows, columns=["dataset", *variants])
    return table.groupby("dataset").mean().loc[[dataset.name for dataset in datasets]]


def run_job(job: Job) -> NDArray[np.float64]:
    """Compute the AUC of every variant on one fold."""
    pieces, known = Pieces(job.fold, job.seed), all_variants()
    scores = np.array([known[name].scores(pieces) for name in job.variants])
    return auc_of_rows(job.fold.is_outlier, scores)


def auc_of_rows(is_outlier: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the AUC of every row of `scores`, ties counting half."""
    n_outliers = int(is_outlier.sum())
    ranks = rankdata(scores, axis=1)[:, is_outlier].mean(axis=1)
    auc: NDArray[np.float64] = (ranks - (n_outliers + 1) / 2) / (len(is_outlier) - n_outliers)
    return auc


def choose(auc: pd.DataFrame) -> str:
    """Name the variant with the best mean over the data sets."""
    return str(auc.mean().idxmax())


def summarize(auc: pd.DataFrame) -> pd.DataFrame:
    """Give the means of every variant.

    Parameters
    ----------
    auc : DataFrame
        KEEL data sets as rows, variants as columns, those of `RIVALS` among them.

    Returns
    -------
    DataFrame
        A row per variant: group, variant, mean (over data sets), family_mean (over families),
        A and B (over data sets of either half), rank_A and rank_B (1 is the best), gain (over
        BRM) and p_value (two-sided, of a Wilcoxon test against BRM).
    """
    families, halves = families_of(auc), halves_by_set(auc)
    variants = all_variants()
    table = pd.DataFrame(
        {
            "group": [variants[name].group for name in auc.columns],
            "variant": auc.columns,
            "mean": auc.mean().to_numpy(),
            "family_mean": auc.groupby(families).mean().mean().to_numpy(),
        }
    )
    for half in "AB":
        table[half] = auc[halves == half].mean().to_numpy()
        table[f"rank_{half}"] = table[half].rank(ascending=False, method="min").astype(int)
    table["gain"] = table["mean"] - auc[BRM].mean()
    table["p_value"] = [signed_ranks(auc[name], auc[BRM]).p_value for name in auc.columns]
    return table


def confirm(auc: pd.DataFrame, shipped: str) -> pd.DataFrame:
    """Choose on each half and confirm on the other; the same for the shipped variant.

    Returns
    -------
    DataFrame
        Four rows: role ("chosen" or "shipped"), variant, chosen_on, confirmed_on, mean_there (on
        the half that chose), mean (on the half that confirms) and, for every rival, its gain
        there and the two-sided p-value of a Wilcoxon test, as in "gain over BRM", "p of BRM".
    """
    halves = halves_by_set(auc)
    rows = []
    for chosen_on, confirmed_on in ("AB", "BA"):
        seen, unseen = auc[halves == chosen_on], auc[halves == confirmed_on]
        for role, variant in (("chosen", choose(seen)), ("shipped", shipped)):
            row = {
                "role": role,
                "variant": variant,
                "chosen_on": chosen_on,
                "confirmed_on": confirmed_on,
                "mean_there": seen[variant].mean(),
                "mean": unseen[variant].mean(),
            }
            for rival in RIVALS:
                row[f"gain over {rival}"] = (unseen[variant] - unseen[rival]).mean()
                row[f"p of {rival}"] = signed_ranks(unseen[variant], unseen[rival]).p_value
            rows.append(row)
    return pd.DataFrame(rows)


def families_of(auc: pd.DataFrame) -> pd.Series:
    """Give the family of every row."""
    return pd.Series([family_of(name) for name in auc.index], auc.index, name="family")


def halves_by_set(auc: pd.DataFrame) -> pd.Series:
    """Give the half of every row."""
    return families_of(auc).map(halves_of(auc.index)).rename("half")


def _execute(jobs: Sequence[Job], n_jobs: int) -> Iterator[NDArray[np.float64]]:
    if n_jobs == 1:
        yield from map(run_job, jobs)
    else:
        yield from Parallel(n_jobs, return_as="generator")(delayed(run_job)(job) for job in jobs)
