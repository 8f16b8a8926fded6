"""Quality of outlier scores: the ROC curve of the paper's Algorithm 1, AUC, TPR at k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from qms22._runtime.validation import check_count


@dataclass(frozen=True)
class RocCurve:
    """Points of a ROC curve, from (0, 0) to (1, 1).

    Parameters
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (n_points,)
    thresholds : ndarray of shape (n_points,)
        β in the paper: a point counts the rows with a score of at least β. The first threshold is
        infinite: no row counts.
    auc : float
        Area under the curve: the probability that an outlier scores higher than a normal row;
        ties count half.
    """

    false_positive_rate: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    auc: float

    def thinned(self, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return false and true positive rates at no more than `most` points, for plots.

        Parameters
        ----------
        most : int

        Returns
        -------
        false_positive_rate, true_positive_rate : ndarray
        """
        x, y = self.false_positive_rate, self.true_positive_rate
        # Drop the middle of three points on a line, up to rounding.
        corner = np.ones(len(x), dtype=bool)
        step_x, step_y = np.diff(x), np.diff(y)
        corner[1:-1] = np.abs(step_x[:-1] * step_y[1:] - step_y[:-1] * step_x[1:]) > 1e-12
        x, y = x[corner], y[corner]
        if len(x) <= most:
            return x, y
        # x + y increases along the curve: equal steps of it cover all parts.
        way = np.linspace(0, 2, most)
        return np.interp(way, x + y, x), np.interp(way, x + y, y)


def roc(is_outlier: ArrayLike, scores: ArrayLike) -> RocCurve:
    """Compute the ROC curve of outlier scores.

    Parameters
    ----------
    is_outlier : array-like of shape (n,)
        True (or 1) for outliers, False (or 0) for normal rows.
    scores : array-like of shape (n,)
        Outlier scores such as ``unlabeled_scores_``: higher is more suspicious. Rows with equal
        scores (many have η = 0) make one straight line of the curve.

    Returns
    -------
    RocCurve

    Examples
    --------
    >>> from qms22.metrics import roc
    >>> roc([0, 0, 1, 1], [0.0, 0.0, 0.0, 2.5]).auc
    0.75
    """
    truth, values = _check(is_outlier, scores)
    n_outliers = int(truth.sum())
    if n_outliers in (0, len(truth)):
        kind = "outliers" if n_outliers == 0 else "normal rows"
        raise ValueError(f"is_outlier holds no {kind}; a ROC curve needs both kinds")
    false_rate, true_rate, thresholds = roc_curve(truth, values, drop_intermediate=False)
    return RocCurve(false_rate, true_rate, thresholds, float(roc_auc_score(truth, values)))


def true_positive_rate_at(is_outlier: ArrayLike, scores: ArrayLike, k: int) -> float:
    """Return the share of the outliers that are among the k most suspicious rows (the paper's PP).

    Parameters
    ----------
    is_outlier : array-like of shape (n,)
        True (or 1) for outliers, False (or 0) for normal rows.
    scores : array-like of shape (n,)
        Outlier scores: higher is more suspicious. If rows tie at place k, the result is the mean
        over all ways to break the tie.
    k : int
        Number of rows picked.

    Returns
    -------
    float

    Examples
    --------
    >>> from qms22.metrics import true_positive_rate_at
    >>> true_positive_rate_at([1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0], k=2)
    0.5
    """
    truth, values = _check(is_outlier, scores)
    check_count("k", k, least=0)
    if k > len(values):
        raise ValueError(f"k={k} is more than the {len(values)} rows")
    n_outliers = int(truth.sum())
    if n_outliers == 0:
        raise ValueError("is_outlier holds no outliers, so the rate is undefined")
    if k == 0:
        return 0.0
    last = np.partition(values, len(values) - k)[len(values) - k]
    above, tied = values > last, values == last
    share = (k - above.sum()) / tied.sum()
    return float((truth[above].sum() + share * truth[tied].sum()) / n_outliers)


def _check(
    is_outlier: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    truth, values = np.asarray(is_outlier), np.asarray(scores, dtype=np.float64)
    if truth.ndim != 1 or truth.shape != values.shape:
        raise ValueError(
            "is_outlier and scores must be one-dimensional and of equal length; "
            f"got shapes {truth.shape} and {values.shape}"
        )
    if not np.isin(truth, (0, 1)).all():
        raise ValueError("is_outlier must hold only True/False or 1/0 (True for outliers)")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"scores holds {values[bad[0]]} at row {bad[0]}; it must be finite")
    return truth.astype(bool), values
