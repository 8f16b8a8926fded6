"""The data of the study: folds of KEEL, sets of ADBench, and batches of mixed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from mixed.anomalies import KINDS
from mixed.measure import SHARES, draw_batches
from mixed.tables import all_tables
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from qms22.metrics import true_positive_rate_at
from qms22_bench.datasets import load_adbench, load_keel

COLLECTIONS = KEEL, ADBENCH, MIXED = "KEEL", "ADBench", "mixed"

_N_NORMAL, _N_BATCH = 2000, 1000


@dataclass(frozen=True)
class Problem:
    """Known-normal rows, and a batch in which outliers are to be found.

    Parameters
    ----------
    collection : str
    name : str
        Of the data set; its folds have the same.
    normal, batch : ndarray
    is_outlier : ndarray
    groups : tuple of tuple of int
        Columns of one category.
    """

    collection: str
    name: str
    normal: NDArray[np.float64] = field(repr=False)
    batch: NDArray[np.float64] = field(repr=False)
    is_outlier: NDArray[np.bool_] = field(repr=False)
    groups: tuple[tuple[int, ...], ...] = ()

    def quality(self, scores: NDArray[np.float64]) -> float:
        """Compute the AUC of scores or, in mixed tables, the recall among the top k."""
        if self.collection == MIXED:
            return true_positive_rate_at(self.is_outlier, scores, int(self.is_outlier.sum()))
        return float(roc_auc_score(self.is_outlier, scores))


def mixed_names() -> list[str]:
    """Return the names of the mixed tables with each kind of anomaly."""
    return [f"{table.name}: {kind}" for table in all_tables() for kind in KINDS]


def keel_problems(names: Sequence[str], keel: Path | None, n_folds: int) -> Iterator[Problem]:
    """Yield the first folds of data sets of KEEL."""
    for name in names:
        for fold in islice(load_keel(name, keel).folds(), n_folds):
            yield Problem(KEEL, name, fold.normal, fold.unlabeled, fold.is_outlier)


def adbench_problems(folder: Path) -> Iterator[Problem]:
    """Yield the data sets of a folder of ADBench's files."""
    for dataset in load_adbench(folder):
        for fold in dataset.folds():
            yield Problem(ADBENCH, dataset.name, fold.normal, fold.unlabeled, fold.is_outlier)


def mixed_problems(names: Sequence[str]) -> Iterator[Problem]:
    """Yield batches of mixed tables with one kind of anomaly each, of every share of anomalies."""
    for table in all_tables():
        if not any(name.startswith(f"{table.name}:") for name in names):
            continue
        for seed in range(len(SHARES)):
            for batch in draw_batches(table, seed, _N_NORMAL, _N_BATCH):
                name = f"{table.name}: {batch.kind}"
                if name in names:
                    yield Problem(
                        MIXED, name, batch.known, batch.searched, batch.is_anomaly, batch.groups
                    )
