"""Measure the variants of the study on data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata

from qms22.datasets import Dataset, Fold
from study.pieces import Pieces
from study.variants import all_variants


@dataclass(frozen=True)
class FoldJob:
    """One fold of a data set, to score by variants with one seed."""

    dataset: str
    fold: Fold
    seed: int
    variants: Sequence[str]


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
        Parallel folds; -1 uses all cores.
    show : callable, optional
        Called after each fold and seed with the number done and the name of the data set.

    Returns
    -------
    DataFrame
        Raw AUC, mean over folds and seeds: data sets as rows, variants as columns.
    """
    jobs = [
        FoldJob(dataset.name, fold, seed, variants)
        for dataset in datasets
        for fold in dataset.folds()
        for seed in seeds
    ]
    # Long ones first, so that no core is idle at the end.
    jobs.sort(key=lambda job: -job.fold.normal.size)
    rows = []
    for job, auc in zip(jobs, _execute(jobs, n_jobs), strict=True):
        rows.append([job.dataset, *auc])
        show(len(rows), job.dataset)
    table = pd.DataFrame(rows, columns=["dataset", *variants])
    return table.groupby("dataset").mean().loc[[dataset.name for dataset in datasets]]


def run_job(job: FoldJob) -> NDArray[np.float64]:
    """Compute the AUC of every variant on one fold."""
    pieces, known = Pieces(job.fold, job.seed), all_variants()
    scores = np.array([known[name].scores(pieces) for name in job.variants])
    return auc_of_rows(job.fold.is_outlier, scores)


def auc_of_rows(is_outlier: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the AUC of every row of `scores`; ties count half."""
    n_outliers = int(is_outlier.sum())
    ranks = rankdata(scores, axis=1)[:, is_outlier].mean(axis=1)
    auc: NDArray[np.float64] = (ranks - (n_outliers + 1) / 2) / (len(is_outlier) - n_outliers)
    return auc


def _execute(jobs: Sequence[FoldJob], n_jobs: int) -> Iterator[NDArray[np.float64]]:
    if n_jobs == 1:
        yield from map(run_job, jobs)
    else:
        yield from Parallel(n_jobs, return_as="generator")(delayed(run_job)(job) for job in jobs)
