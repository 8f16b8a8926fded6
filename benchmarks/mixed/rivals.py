"""Rivals that no registry has: a distance, and the check of ranges that people write first."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.covariance import ShrunkCovariance
from sklearn.preprocessing import StandardScaler


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


class RangeCheck:
    """Count the cells of a row that are outside what normal rows have.

    These are numbers and dates beyond the least or the largest, levels that were never seen, and
    empty cells in a column that is never empty. Among rows with the same count those that are
    farther outside come first, in units of the range.
    """

    def fit(self, table: pd.DataFrame) -> RangeCheck:
        """Learn from normal rows of a table."""
        self._normal = table
        return self

    def score_samples(self, table: pd.DataFrame) -> np.ndarray:
        """Return minus the count, less a part of 1 that says how far outside cells are."""
        outside = np.column_stack(
            [_outside(self._normal[name], table[name]) for name in self._normal.columns]
        )
        far = outside.sum(axis=1)
        scores: np.ndarray = -((outside > 0).sum(axis=1) + far / (1 + far))
        return scores


def _outside(normal: pd.Series, column: pd.Series) -> np.ndarray:
    """Return how far cells are outside; 1 for those that have no distance."""
    gaps = column.isna().to_numpy()
    odd_gaps = gaps & (not normal.isna().any())
    if not (
        pd.api.types.is_datetime64_dtype(normal)
        or (pd.api.types.is_numeric_dtype(normal) and normal.dtype != bool)
    ):
        is_new = ~column.isin(normal.unique()).to_numpy() & ~gaps
        unseen: np.ndarray = (is_new | odd_gaps).astype(float)
        return unseen
    least, largest = normal.min(), normal.max()
    below, above = (least - column) / (largest - least), (column - largest) / (largest - least)
    far = np.maximum(0, np.maximum(below, above).to_numpy(dtype=float, na_value=0.0))
    return np.where(odd_gaps, 1.0, far)
