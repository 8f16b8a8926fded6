"""Recall of detectors on one table: fit, score batches of one kind of anomaly each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.covariance import ShrunkCovariance
from sklearn.preprocessing import StandardScaler

from mixed.anomalies import inject
from mixed.tables import MixedTable
from qms22 import TabularEncoder
from qms22.detectors import registry
from qms22.metrics import roc, true_positive_rate_at

DETECTORS = ("QMS22Ensemble", "QMS22", "IsolationForest", "LOF", "kNN", "Mahalanobis", "pyod:ECOD")
# Those that take groups of columns.
OURS = ("QMS22Ensemble", "QMS22")
# The share of anomalies by seed.
SHARES = (0.01, 0.02, 0.005)


@dataclass(frozen=True)
class Recall:
    """One detector on one batch."""

    table: str
    kind: str
    seed: int
    n_anomalies: int
    detector: str
    recall: float
    auc: float
    seconds: float


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded rows: known-normal ones, and a batch with anomalies of one kind.

    Parameters
    ----------
    kind : str
    known, searched : ndarray
    is_anomaly : ndarray
    groups : tuple of tuple of int
        The columns of each column of the table.
    """

    kind: str
    known: np.ndarray
    searched: np.ndarray
    is_anomaly: np.ndarray
    groups: tuple[tuple[int, ...], ...]


class Mahalanobis:
    """The distance from the mean of the normal rows, in units of their covariance."""

    def fit(self, X: np.ndarray) -> Mahalanobis:
        """Learn from encoded normal rows."""
        self._scaler = StandardScaler().fit(X)
        # A little shrinkage, so that levels that no normal row has count as well.
        self._covariance = ShrunkCovariance(shrinkage=1e-3).fit(self._scaler.transform(X))
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return minus the squared distance."""
        distances: np.ndarray = self._covariance.mahalanobis(self._scaler.transform(X))
        return -distances


def measure_table(
    table: MixedTable,
    seed: int,
    n_normal: int,
    n_batch: int,
    detectors: Sequence[str] = DETECTORS,
) -> Iterator[Recall]:
    """Yield the recall of every detector on every kind of anomaly.

    Parameters
    ----------
    table : MixedTable
    seed : int
        Of the rows, the anomalies and the detectors; it also sets the share of anomalies.
    n_normal, n_batch : int
        Known-normal rows, and rows of each batch.
    detectors : sequence of str
        Names as in `qms22.detectors.registry`, or "Mahalanobis".
    """
    fitted: dict[str, Any] = {}
    for batch in draw_batches(table, seed, n_normal, n_batch):
        n_anomalies = int(batch.is_anomaly.sum())
        for name in detectors:
            if name not in fitted and not _learns_batch(name):
                # Those that do not learn from the batch are fitted once.
                fitted[name] = _build(name, seed).fit(batch.known)
            begin = time.process_time()
            if name in fitted:
                scores = registry.score(fitted[name], batch.searched)
            else:
                detector = _build(name, seed)
                # Rivals take rows as they are; ours are told which columns are one category.
                groups = {"groups": batch.groups} if name in OURS else {}
                detector.fit(batch.known, unlabeled=batch.searched, **groups)
                scores = detector.unlabeled_scores_
            seconds = time.process_time() - begin
            recall = true_positive_rate_at(batch.is_anomaly, scores, n_anomalies)
            auc = roc(batch.is_anomaly, scores).auc
            yield Recall(table.name, batch.kind, seed, n_anomalies, name, recall, auc, seconds)


def draw_batches(
    table: MixedTable, seed: int, n_normal: int, n_batch: int
) -> Iterator[EncodedBatch]:
    """Draw known-normal rows and, for every kind of anomaly, a batch; yield them encoded.

    The parameters are those of `measure_table`.
    """
    rng = np.random.default_rng(seed)
    n_anomalies = round(SHARES[seed % len(SHARES)] * n_batch)
    rows = table.draw(n_normal + n_batch, rng)
    normal, clean = rows.iloc[:n_normal].reset_index(drop=True), rows.iloc[n_normal:]
    encoder = TabularEncoder(missing="impute").fit(normal)
    known = encoder.transform(normal)
    groups = tuple(tuple(columns) for columns in encoder.groups_.values())
    for kind, change in table.changes.items():
        shuffled = clean.iloc[rng.permutation(n_batch)].reset_index(drop=True)
        batch, is_anomaly = inject(shuffled, change, n_anomalies, rng)
        yield EncodedBatch(kind, known, encoder.transform(batch), is_anomaly, groups)


def recall_by_kind(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean recall of each detector (column) on each kind (row), and over all kinds."""
    means = results.pivot_table("recall", "kind", "detector", sort=False)
    means.loc["mean"] = means.mean()
    return means


def _build(name: str, seed: int) -> Any:
    return Mahalanobis() if name == "Mahalanobis" else registry.get_detector(name).build(seed)


def _learns_batch(name: str) -> bool:
    return name != "Mahalanobis" and registry.get_detector(name).is_transductive
