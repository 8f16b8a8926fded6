"""The views of the ensemble by their definitions: slow, and without shortcuts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from qms22.estimators.held_out import hash_rows
from qms22.estimators.views import SHRINKAGE as SHRINKAGE
from qms22.estimators.weights import _MOST_SUSPICIOUS as MOST_SUSPICIOUS


def shares(scores: Sequence[float], held_out: Sequence[float]) -> list[float]:
    """The shares of held-out rows with higher scores; ties count half."""
    n, found = len(held_out), []
    for score in scores:
        n_higher = sum(other > score for other in held_out)
        n_equal = sum(other == score for other in held_out)
        p = (0.5 + n_higher + 0.5 * n_equal) / (n + 1)
        beyond = max(0.0, score - max(held_out)) / (np.std(held_out) or 1.0)
        found.append(p * math.exp(-beyond))
    return found


def mean_log_distance(row: np.ndarray, others: np.ndarray, references: np.ndarray) -> float:
    """The mean of log distances to the nearest of the others, with weights ½, ¼, ..."""
    nearest = np.sort(cdist(row[None], others)[0])[:16]
    floor = 1e-3 * np.sqrt(2 * references.var(axis=0).sum())
    weights = 0.5 ** np.arange(1, len(nearest) + 1)
    return float(np.average(np.log(nearest + floor), weights=weights))


def left_out_square(rows: np.ndarray, number: int) -> float:
    """The squared distance of a row from the mean of the others in units of their covariance."""
    n, p = rows.shape
    others = np.delete(rows, number, axis=0)
    # What is added in every direction is that of all rows, in their unit.
    constant = SHRINKAGE * (1 - SHRINKAGE) * rows.var(axis=0).mean() * n / (n - 1)
    covariance = (1 - SHRINKAGE) * np.cov(others.T, bias=True).reshape(p, p) + constant * np.eye(p)
    away = rows[number] - others.mean(axis=0)
    return float(away @ np.linalg.inv(covariance) @ away)


def square(row: np.ndarray, rows: np.ndarray) -> float:
    """The squared distance of a row from the mean of others in units of their covariance."""
    p = len(row)
    constant = SHRINKAGE * (1 - SHRINKAGE) * rows.var(axis=0).mean()
    covariance = (1 - SHRINKAGE) * np.cov(rows.T, bias=True).reshape(p, p) + constant * np.eye(p)
    away = row - rows.mean(axis=0)
    return float(away @ np.linalg.inv(covariance) @ away)


def naive_scores(
    views: dict[str, Any], normal: np.ndarray, batch: np.ndarray
) -> dict[str, np.ndarray]:
    """Compute −log p of the batch in each view; members and trees are those of the views."""
    mean, deviation = normal.mean(axis=0), normal.std(axis=0)
    known, searched = ((rows - mean) / deviation * 85 for rows in (normal, batch))
    p = []
    for part in views["members"].parts:
        scores = np.log1p(part.members.outlier_scores(searched))
        p.append(shares(scores, part.held_out.ascending))
    by_view = {"members": np.mean(p, axis=0)}
    by_view["covariance"] = shares(
        [np.log(square(row, known)) for row in searched],
        [np.log(left_out_square(known, i)) for i in range(len(known))],
    )
    unit = np.minimum(np.ptp(normal, axis=0), 3 * deviation)
    known, searched = normal / unit, batch / unit
    by_view["distances"] = shares(
        [mean_log_distance(row, known, known) for row in searched],
        [mean_log_distance(row, np.delete(known, i, axis=0), known) for i, row in enumerate(known)],
    )
    for name in views.keys() & {"forest", "self_training"}:
        of_normal, of_batch = np.split(views[name].forest.oob_scores, [len(normal)])
        # The batch is learned from in the order of its hashes.
        of_batch = of_batch[np.argsort(np.argsort(hash_rows(batch)))]
        by_view[name] = shares(of_batch.tolist(), of_normal.tolist())
    return {name: -np.log(p) for name, p in by_view.items()}


def naive_excess(scores: np.ndarray, n_compared: int) -> float:
    """The largest number of rows beyond one of the most suspicious, above what chance gives."""
    n, largest = len(scores), 0.0
    suspicious = sorted(scores, reverse=True)[: max(1, int(MOST_SUSPICIOUS * n))]
    for place, score in enumerate(suspicious):
        p = math.exp(-score)
        deviation = math.sqrt(n * p * (1 - p) * (1 + n / n_compared) + 1)
        largest = max(largest, (place + 1 - n * p) / deviation)
    return largest
