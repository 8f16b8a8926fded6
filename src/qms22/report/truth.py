"""How many true outliers the ranking finds, for every number of flagged rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.metrics import roc

# A curve of more points looks the same.
_MOST_POINTS = 400


def rows_reached(ranked: NDArray[np.float64], n_kept: int) -> NDArray[np.intp]:
    """Return for each of the first rows how many rows have at least its score.

    The scores are `ranked`: in descending order.
    """
    reached: NDArray[np.intp] = len(ranked) - np.searchsorted(ranked[::-1], ranked[:n_kept])
    return reached


def outliers_found(ranked: NDArray[np.float64], truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the number of outliers among the first 0, 1, …, n rows.

    If k divides rows of equal score, they count with their share of outliers, as in
    `qms22.metrics.true_positive_rate_at`: the mean over all ways to break the tie.
    """
    group = np.cumsum(np.concatenate([[True], ranked[1:] != ranked[:-1]])) - 1
    size, hits = np.bincount(group), np.bincount(group, weights=truth)
    rows_before, hits_before = np.cumsum(size) - size, np.cumsum(hits) - hits
    inside = np.arange(1, len(truth) + 1) - rows_before[group]
    return np.concatenate([[0.0], hits_before[group] + inside * (hits / size)[group]])


def roc_points(truth: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, Any] | None:
    """Return a ROC curve with few points, or None if all rows are of one kind."""
    if truth.all() or not truth.any():
        return None
    curve = roc(truth, scores)
    x, y = curve.thinned(_MOST_POINTS)
    return {"auc": round(curve.auc, 4), "x": x.round(5).tolist(), "y": y.round(5).tolist()}
