"""Measure the variants of the study on problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from joblib import Parallel, delayed

from study.pieces import Pieces
from study.problems import COLLECTIONS, MIXED, Problem
from study.variants import ABLATION, ALL

# By collection: AUC or recall, data sets as rows and variants as columns.
Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Job:
    """One problem to score with one seed, by all variants or by those of the ablation."""

    problem: Problem
    seed: int
    is_full: bool


def plan(problems: Iterable[Problem], n_seeds: int, n_ablation: int) -> list[Job]:
    """Return the jobs, long ones first, so that no core is idle at the end.

    Mixed tables have no more seeds in the ablation: there are several batches of each kind already.
    """
    jobs = [
        Job(problem, seed, seed < n_seeds)
        for problem in problems
        for seed in range(n_seeds if problem.collection == MIXED else max(n_seeds, n_ablation))
    ]
    return sorted(jobs, key=lambda job: -job.problem.normal.size)


def run_job(job: Job) -> dict[str, float]:
    """Compute the quality of every variant on one problem."""
    pieces = Pieces(job.problem, job.seed)
    variants = ALL if job.is_full else ABLATION
    return {name: job.problem.quality(variant(pieces)) for name, variant in variants.items()}


def measure(
    jobs: Sequence[Job],
    *,
    n_jobs: int = 1,
    show: Callable[[int, str], None] = lambda done, name: None,
) -> tuple[Tables, Tables]:
    """Measure variants.

    Parameters
    ----------
    jobs : sequence of Job
    n_jobs : int
        Parallel jobs; -1 uses all cores.
    show : callable, optional
        Called after each job with the number done and the name of the data set.

    Returns
    -------
    variants, ablation : dict of str to DataFrame
        Means over folds and seeds. The ablation has its own variants only, with all its seeds.
    """
    found = Parallel(n_jobs, return_as="generator")(delayed(run_job)(job) for job in jobs)
    rows = []
    for job, result in zip(jobs, found, strict=True):
        key = {"collection": job.problem.collection, "dataset": job.problem.name}
        rows.append({**key, "is_full": job.is_full, **result})
        show(len(rows), job.problem.name)
    table = pd.DataFrame(rows)
    full = table[table["is_full"]]
    return _by_collection(full, list(ALL)), _by_collection(table, list(ABLATION))


def _by_collection(table: pd.DataFrame, variants: list[str]) -> Tables:
    return {
        collection: part.groupby("dataset")[variants].mean()
        for collection in COLLECTIONS
        if len(part := table[table["collection"] == collection])
    }
