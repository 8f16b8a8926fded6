"""From scores to decisions with a guarantee: conformal p-values, false discoveries, outlier share.

Some known-normal rows, the calibration rows, are mixed into the unlabeled ones before anything is
learned. Whoever scores them cannot tell which is which, so that the score of a normal row is as
likely to stand at one rank among the calibration scores as at any other, whatever the data and
however good the score. All guarantees here rest on that alone.

References
----------
S. Bates, E. Candès, L. Lei, Y. Romano, M. Sesia, "Testing for outliers with conformal p-values",
Annals of Statistics 51 (2023). https://doi.org/10.1214/22-AOS2244

A. Marandon, L. Lei, D. Mary, E. Roquain, "Adaptive novelty detection with false discovery rate
guarantee", Annals of Statistics 52 (2024). https://doi.org/10.1214/23-AOS2338

M. Bashari, A. Epstein, Y. Romano, M. Sesia, "Derandomized novelty detection with FDR control via
conformal e-values", NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom  # type: ignore[import-untyped, unused-ignore]

# P-values and levels are fractions that may meet exactly; rounding must not keep them apart.
_SLACK = 1 + 1e-12

# Rows with a p-value above a cut are compared with the number of normal rows there.
_CUTS = (1 / 2, 1 / 8, 1 / 32)


class ContaminationEstimate(NamedTuple):
    """The share of outliers in a batch.

    Parameters
    ----------
    share : float
        Storey's estimate.
    low : float
        The share is at least this, whatever the data, with the confidence asked for.
    high : float
        The share is at most this, with the same confidence, as far as outliers have p-values
        below one half: outliers that look like normal rows are beyond any method.
    """

    share: float
    low: float
    high: float


def conformal_p_values(
    scores: NDArray[np.float64], calibration: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute (1 + the number of calibration scores that are as high or higher) / (n + 1).

    Of a normal row it is at most u with a probability of at most u. Ties count against the row.

    Parameters
    ----------
    scores : ndarray of shape (n_unlabeled,)
        Higher is more suspicious.
    calibration : ndarray of shape (n_calibration,)

    Returns
    -------
    ndarray of shape (n_unlabeled,)
    """
    n_lower = np.searchsorted(np.sort(calibration), scores, side="left")
    p_values: NDArray[np.float64] = (1 + len(calibration) - n_lower) / (len(calibration) + 1)
    return p_values


def benjamini_hochberg(p_values: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Tell which rows to flag so that the false discovery rate is at most `level`.

    It is at most `level` times the share of normal rows.

    Parameters
    ----------
    p_values : ndarray of shape (n,)
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    ascending = np.sort(p_values)
    lines = level * np.arange(1, len(ascending) + 1) / len(ascending)
    below = np.flatnonzero(ascending <= lines * _SLACK)
    return p_values <= (ascending[below[-1]] if below.size else 0.0)


def e_values(
    p_values: NDArray[np.float64], n_calibration: int, level: float
) -> NDArray[np.float64]:
    """Turn the p-values of one split into e-values.

    Where the procedure of Benjamini and Hochberg flags k rows, each of them gets 1 / u, where u
    is the highest value at or below level · k / n that a p-value can take; any other row gets 0.
    Over the normal rows they add up to at most the number of those in expectation, which is what
    `e_benjamini_hochberg` asks for, and, unlike p-values, averages of them do so, too.

    The highest p-value that was in fact flagged would not do for u. It is often lower by chance,
    and the expected sum would be too high.

    Parameters
    ----------
    p_values : ndarray of shape (n,)
    n_calibration : int
    level : float

    Returns
    -------
    ndarray of shape (n,)
    """
    flagged = benjamini_hochberg(p_values, level)
    if not flagged.any():
        return np.zeros(len(p_values))
    line = level * np.count_nonzero(flagged) / len(p_values)
    return flagged * (n_calibration + 1) / math.floor(line * (n_calibration + 1) * _SLACK)


def e_benjamini_hochberg(values: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Tell which rows to flag by e-values so that the false discovery rate is at most `level`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        E-values, dependent in any way.
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    descending = -np.sort(-values)
    rank = np.arange(1, len(values) + 1)
    enough = np.flatnonzero(level * rank * descending * _SLACK >= len(values))
    return values >= (descending[enough[-1]] if enough.size else np.inf)


def flag_rows(p_values: NDArray[np.float64], n_calibration: int, level: float) -> NDArray[np.bool_]:
    """Flag rows by the p-values of one split or of several.

    One split goes the way of Benjamini and Hochberg. Several are merged by the mean of their
    e-values: merged p-values, such as twice the mean, are p-values again, but the guarantee on
    false discoveries asks more of them than that; that of e-values holds for any dependence.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)
    n_calibration : int
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    cut = _level_of_split(level, len(p_values))
    if len(p_values) == 1:
        return benjamini_hochberg(p_values[0], cut)
    values = np.mean([e_values(split, n_calibration, cut) for split in p_values], axis=0)
    return e_benjamini_hochberg(values, level)


def least_to_flag(n_unlabeled: int, n_calibration: int, level: float, n_splits: int = 1) -> int:
    """Count the rows that a split must flag together, if it flags any.

    No p-value is below 1 / (n_calibration + 1), and k rows are flagged only if all of theirs are
    at most level · k / n_unlabeled. Where it is more than `n_unlabeled`, nothing can be flagged.

    Parameters
    ----------
    n_unlabeled, n_calibration : int
    level : float
        Of `flag_rows`.
    n_splits : int
        Of `flag_rows`.

    Returns
    -------
    int
    """
    highest = _level_of_split(level, n_splits) * (n_calibration + 1) * _SLACK
    return math.ceil(n_unlabeled / highest)


def merge_p_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge the p-values of several splits: twice their mean, which is a p-value again.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)

    Returns
    -------
    ndarray of shape (n,)
    """
    factor = 1.0 if len(p_values) == 1 else 2.0
    merged: NDArray[np.float64] = np.minimum(factor * p_values.mean(axis=0), 1.0)
    return merged


def estimate_contamination(
    p_values: NDArray[np.float64], n_calibration: int, confidence: float
) -> ContaminationEstimate:
    """Estimate the share of outliers by the number of p-values above one half.

    About half of the normal rows are there, and few of the outliers. How many of n₀ normal rows
    are there follows a beta-binomial distribution, exactly; the interval has all shares
    for which what was seen is not too unlikely. Outliers with low p-values show better against
    the few normal rows there: its lower end also looks at p-values above 1/8 and above 1/32.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)
        Of ranks without ties: tied rows would all be above one half, or none. Of several splits
        the estimates are averaged, and what is too unlikely is told by twice the mean of the
        probabilities.
    n_calibration : int
        At least 1.
    confidence : float

    Returns
    -------
    ContaminationEstimate
    """
    n_splits, n_rows = p_values.shape
    doubt = (1.0 - confidence) / 2 / min(n_splits, 2)
    counts = [_CountAbove.of(p_values, n_calibration, cut) for cut in _CUTS]
    half = counts[0]
    most = -1 + _first(
        n_rows, lambda n: any(count.chance_of_fewer(n) <= doubt / len(_CUTS) for count in counts)
    )
    fewest = min(_first(n_rows, lambda n: half.chance_of_more(n) > doubt), most)
    n_normal = np.clip(half.n_normal, fewest, most)
    share, low, high = (float(1.0 - n / n_rows) for n in (n_normal, most, fewest))
    return ContaminationEstimate(share, low, high)


@dataclass(frozen=True)
class _CountAbove:
    """The number of p-values above a cut, in each split.

    A normal row is there if it scores lower than the calibration row at a certain rank, so that
    their number is beta-binomial.

    Parameters
    ----------
    n_above : ndarray of int of shape (n_splits,)
    a, b : int
        Parameters of the beta distribution.
    """

    n_above: NDArray[np.intp]
    a: int
    b: int

    @classmethod
    def of(cls, p_values: NDArray[np.float64], n_calibration: int, cut: float) -> _CountAbove:
        rank = max(1, math.floor(cut * (n_calibration + 1)))
        n_above = np.count_nonzero(p_values > rank / (n_calibration + 1), axis=1)
        return cls(n_above, n_calibration + 1 - rank, rank)

    @property
    def n_normal(self) -> float:
        """The number of normal rows that explains the count, if no outlier is in it."""
        return float(np.mean(self.n_above) * (self.a + self.b) / self.a)

    def chance_of_fewer(self, n_normal: int) -> float:
        """Tell how likely so few, or fewer, are above the cut: the mean over the splits."""
        return float(np.mean(betabinom.cdf(self.n_above, n_normal, self.a, self.b)))

    def chance_of_more(self, n_normal: int) -> float:
        """Tell how likely so many normal rows, or more, are above the cut."""
        return float(np.mean(betabinom.sf(self.n_above - 1, n_normal, self.a, self.b)))


def _level_of_split(level: float, n_splits: int) -> float:
    """Give the level at which each split is cut."""
    return level if n_splits == 1 else level / 2


def _first(last: int, holds: Callable[[int], bool]) -> int:
    """Find the first number of 0 … last from which on a condition holds; last + 1 if none."""
    low, high = 0, last + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
