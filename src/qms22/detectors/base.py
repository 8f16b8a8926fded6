"""Base of the novelty detectors: scaling, scikit-learn's interface, the threshold."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from qms22._cpm.scaling import FeatureScaler, range_scaler
from qms22._runtime.validation import check_rows, is_number
from qms22._runtime.warn import warn_user
from qms22.estimators.base import ThresholdMixin

# The share of known-normal rows beyond the threshold, where nothing else is asked for.
FALSE_ALARMS = 0.05

# "auto" scores at most this many of them: a quantile does not need a million rows.
_MAX_CALIBRATION = 500


class NoveltyDetector(ThresholdMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """A detector that learns from known-normal rows alone.

    Subclasses have a parameter `contamination` and implement `_check_parameters`, `_learn` and
    `_score`.
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
        check_contamination(self.contamination)
        self._check_parameters()
        normal = check_rows(self, X, reset=True)
        self._scaler = self._learn_scaler(normal)
        scaled = self._scaler.transform(normal)
        self._learn(scaled)
        self.offset_ = self._find_offset(scaled)
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

    def _learn_scaler(self, normal: NDArray[np.float64]) -> FeatureScaler:
        return range_scaler(normal)

    def _left_out_scores(
        self, rows: NDArray[np.float64], positions: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Score normal rows as if they were not in the training data, if the detector can."""
        return self._score(rows[positions])

    def _find_offset(self, rows: NDArray[np.float64]) -> float:
        if self.contamination == "auto":
            n_scored = min(len(rows), _MAX_CALIBRATION)
            positions = np.linspace(0, len(rows) - 1, n_scored).astype(np.intp)
            scores, share = self._left_out_scores(rows, positions), FALSE_ALARMS
        else:
            scores, share = self._score(rows), self.contamination
        return float(np.percentile(scores, 100.0 * share))


def batch_or_normal(
    detector: BaseEstimator, unlabeled: ArrayLike | None, normal: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Check the batch of a detector that learns from it; without one, warn and return T."""
    if unlabeled is not None:
        batch: NDArray[np.float64] = check_rows(detector, unlabeled, name="unlabeled")
        return batch
    warn_user(
        "no unlabeled rows were given, so there is nothing to tell from the known-normal rows; "
        "pass the batch to search as fit(X, unlabeled=batch)",
    )
    return normal


def gaussian_similarity(
    distances: NDArray[np.float64], delta: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute exp(−½ (d / δ)²); with δ = 0 that is 1 at distance 0 and 0 elsewhere."""
    with np.errstate(over="ignore", under="ignore"):
        ratio = distances / np.maximum(delta, np.finfo(np.float64).tiny)
        similarity: NDArray[np.float64] = np.exp(-0.5 * ratio**2)
    return similarity


def check_contamination(contamination: object) -> None:
    """Raise ValueError unless `contamination` is "auto" or a share in (0, 0.5]."""
    if isinstance(contamination, str) and contamination == "auto":
        return
    if is_number(contamination) and 0 < contamination <= 0.5:  # type: ignore[operator]
        return
    raise ValueError(f"contamination must be 'auto' or a share in (0, 0.5]; got {contamination!r}")
