"""How well the ranking finds the true outliers, for every number of flagged rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.metrics import roc

_MOST_POINTS = 400


@dataclass(frozen=True, eq=False)
class Ties:
    """Rows with equal scores, for scores in descending order.

    Parameters
    ----------
    group : ndarray of shape (n,)
        Number of the group of each row.
    size : ndarray of shape (n_groups,)
        Rows in each group.
    """

    group: NDArray[np.intp]
    size: NDArray[np.intp]

    @classmethod
    def of(cls, ranked: NDArray[np.float64]) -> Ties:
        """Group scores in descending order."""
        is_new = np.concatenate([[True], ranked[1:] != ranked[:-1]])
        group = np.cumsum(is_new) - 1
        return cls(group, np.bincount(group))

    def reach(self) -> NDArray[np.intp]:
        """Tell for each row how many have at least its score."""
        return np.cumsum(self.size)[self.group]

    def found(self, truth: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Count the outliers among the first 0, 1, …, n rows.

        Where k cuts a tie, its rows count with their share of outliers, as in
        `qms22.metrics.true_positive_rate_at`: the mean over all ways to break the tie.
        """
        hits = np.bincount(self.group, weights=truth)
        rows_before = np.cumsum(self.size) - self.size
        hits_before = np.cumsum(hits) - hits
        inside = np.arange(1, len(truth) + 1) - rows_before[self.group]
        share = (hits / self.size)[self.group]
        return np.concatenate([[0.0], hits_before[self.group] + inside * share])


def roc_points(truth: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, Any] | None:
    """Trace a ROC curve with few points; None where all rows are of one kind."""
    if truth.all() or not truth.any():
        return None
    curve = roc(truth, scores)
    x, y = curve.thinned(_MOST_POINTS)
    return {"auc": round(curve.auc, 4), "x": x.round(5).tolist(), "y": y.round(5).tolist()}
