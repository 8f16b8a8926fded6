"""Base of the novelty detectors: scaling, and scikit-learn's interface."""

from __future__ import annotations

import numbers
from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from qms22_bench.rivals.scaling import Scaler, range_scaler


class NoveltyDetector(BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """A detector that learns from known-normal rows alone.

    Subclasses implement `_check_parameters`, `_learn` and `_score`.
    """

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            Known-normal rows.
        y : Ignored

        Returns
        -------
        self
            The fitted detector.
        """
        self._check_parameters()
        normal = check_rows(self, X, reset=True)
        self._scaler = self._learn_scaler(normal)
        self._learn(self._scaler.transform(normal))
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score rows; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._score(self._scaler.transform(check_rows(self, X)))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that are out of range."""

    @abstractmethod
    def _learn(self, rows: NDArray[np.float64]) -> None:
        """Learn from scaled normal rows."""

    @abstractmethod
    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score scaled rows; higher is more normal."""

    def _learn_scaler(self, normal: NDArray[np.float64]) -> Scaler:
        return range_scaler(normal)


def check_rows(
    detector: BaseEstimator, X: ArrayLike, *, reset: bool = False
) -> NDArray[np.float64]:
    """Return rows as finite float64; with `reset` the detector stores their number of features."""
    # scikit-learn's own check of infinity warns if the sum of large values overflows.
    rows: NDArray[np.float64] = validate_data(
        detector, X, reset=reset, dtype=np.float64, ensure_all_finite=False
    )
    bad = np.argwhere(~np.isfinite(rows))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"row {row} holds NaN or infinity (inf) in column {column}; drop or impute such values"
        )
    return rows


def gaussian_similarity(
    distances: NDArray[np.float64], delta: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute exp(−½ (d / δ)²); with δ = 0 that is 1 at distance 0 and 0 elsewhere."""
    with np.errstate(over="ignore", under="ignore"):
        ratio = distances / np.maximum(delta, np.finfo(np.float64).tiny)
        similarity: NDArray[np.float64] = np.exp(-0.5 * ratio**2)
    return similarity


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless a value is a whole number of at least `least`."""
    is_count = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (is_count and value >= least):
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
