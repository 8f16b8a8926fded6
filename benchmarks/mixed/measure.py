"""Recall of detectors on one table: fit, score batches of one kind of anomaly each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mixed import command
from mixed.anomalies import Injected, inject
from mixed.rivals import Mahalanobis, RangeCheck
from mixed.tables import MixedTable
from qms22 import TabularEncoder
from qms22.metrics import roc, true_positive_rate_at
from qms22_bench import registry

RANGE_CHECK = "range check"
DETECTORS = (
    command.NAME,
    "IsolationForest",
    "LOF",
    "kNN",
    "Mahalanobis",
    RANGE_CHECK,
    "pyod:ECOD",
    "QMS22Ensemble",
    "QMS22",
)
# Those that take groups of columns.
OURS = ("QMS22Ensemble", "QMS22")
# The share of anomalies by seed.
SHARES = (0.01, 0.02, 0.005)


@dataclass(frozen=True)
class Recall:
    """One detector on one batch.

    The last two are of the command alone: in how many of the anomalies found the first reason
    begins with a changed cell, and in how many it names one.
    """

    table: str
    kind: str
    seed: int
    n_anomalies: int
    detector: str
    recall: float
    auc: float
    seconds: float
    named_first: float | None = None
    named: float | None = None


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
        Names as in `qms22_bench.registry`, or "Mahalanobis".
    """
    fitted: dict[str, Any] = {}
    for kind, normal, injected in draw_tables(table, seed, n_normal, n_batch):
        is_anomaly = injected.is_anomaly
        n_anomalies = int(is_anomaly.sum())
        encoded = _encode(kind, normal, injected)
        for name in detectors:
            begin = _cpu_seconds()
            named: tuple[float | None, float | None] = (None, None)
            if name == command.NAME:
                with tempfile.TemporaryDirectory() as folder:
                    # One batch of each table goes through the installed script.
                    ranked = command.run_command(
                        normal, injected.batch, Path(folder), in_process=bool(fitted)
                    )
                fitted[name] = None
                scores, named = ranked.scores, command.share_named(injected, ranked, kind)
            else:
                scores = _score(name, seed, normal, injected, encoded, fitted)
            seconds = _cpu_seconds() - begin
            recall = true_positive_rate_at(is_anomaly, scores, n_anomalies)
            auc = roc(is_anomaly, scores).auc
            yield Recall(table.name, kind, seed, n_anomalies, name, recall, auc, seconds, *named)


def draw_tables(
    table: MixedTable, seed: int, n_normal: int, n_batch: int
) -> Iterator[tuple[str, pd.DataFrame, Injected]]:
    """Draw known-normal rows and, for every kind of anomaly, a batch.

    The parameters are those of `measure_table`.
    """
    rng = np.random.default_rng(seed)
    n_anomalies = round(SHARES[seed % len(SHARES)] * n_batch)
    rows = table.draw(n_normal + n_batch, rng)
    normal, clean = rows.iloc[:n_normal].reset_index(drop=True), rows.iloc[n_normal:]
    for kind, change in table.changes.items():
        shuffled = clean.iloc[rng.permutation(n_batch)].reset_index(drop=True)
        yield kind, normal, inject(shuffled, change, n_anomalies, rng)


def draw_batches(
    table: MixedTable, seed: int, n_normal: int, n_batch: int
) -> Iterator[EncodedBatch]:
    """Draw known-normal rows and, for every kind of anomaly, a batch; yield them encoded.

    The parameters are those of `measure_table`.
    """
    for kind, normal, injected in draw_tables(table, seed, n_normal, n_batch):
        yield _encode(kind, normal, injected)


def recall_by_kind(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean recall of each detector (column) on each kind (row), and over all kinds."""
    means = results.pivot_table("recall", "kind", "detector", sort=False)
    means.loc["mean"] = means.mean()
    return means


def _encode(kind: str, normal: pd.DataFrame, injected: Injected) -> EncodedBatch:
    encoder = TabularEncoder().fit(normal)
    groups = tuple(tuple(columns) for columns in encoder.groups_.values())
    known, searched = encoder.transform(normal), encoder.transform(injected.batch)
    return EncodedBatch(kind, known, searched, injected.is_anomaly, groups)


def _score(
    name: str,
    seed: int,
    normal: pd.DataFrame,
    injected: Injected,
    encoded: EncodedBatch,
    fitted: dict[str, Any],
) -> np.ndarray:
    """Score a batch by a rival; those that do not learn from the batch are fitted once."""
    if name == RANGE_CHECK:
        return -RangeCheck().fit(normal).score_samples(injected.batch)
    if _learns_batch(name):
        detector = _build(name, seed)
        # Rivals take rows as they are; ours are told which columns are one category.
        groups = {"groups": encoded.groups} if name in OURS else {}
        detector.fit(encoded.known, unlabeled=encoded.searched, **groups)
        learned: np.ndarray = detector.unlabeled_scores_
        return learned
    if name not in fitted:
        fitted[name] = _build(name, seed).fit(encoded.known)
    return registry.score(fitted[name], encoded.searched)


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the commands it has run."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _build(name: str, seed: int) -> Any:
    return Mahalanobis() if name == "Mahalanobis" else registry.get_detector(name).build(seed)


def _learns_batch(name: str) -> bool:
    return name != "Mahalanobis" and registry.get_detector(name).is_transductive
