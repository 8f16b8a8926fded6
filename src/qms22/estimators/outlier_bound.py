"""How many rows of a batch are outliers at least, even if none of them can be named.

A normal row of the batch takes every rank among the held-out scores with the same probability. So
the number of normal rows that score higher than the held-out row of a certain rank is beta-binomial
exactly, for any data and any scores. If more rows score higher than that number can explain, the
others are outliers.

The ranks have to be chosen before the scores are seen. A few outliers far beyond all normal rows
stand out above the highest held-out score, many that are hardly unusual stand out above the median,
so that ranks from the first to the middle one are used, with Bonferroni's correction. With ratios
of six between them little is lost: counts above neighboring ranks have much in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.estimators.beta_binomial import beta_binomial_cdf

_RATIO_OF_RANKS = 6


class OutlierBound(NamedTuple):
    """How many rows of a batch are outliers at least.

    Parameters
    ----------
    fewest : int
        There are at least so many, with the confidence asked for, for any data.
    p_value : float
        Of the hypothesis that there are none.
    """

    fewest: int
    p_value: float


@dataclass(frozen=True)
class CountAbove:
    """The number of p-values above a cut, in each split.

    A normal row is counted if it scores lower than the calibration row of a certain rank, so the
    number of normal rows counted is beta-binomial.

    Parameters
    ----------
    n_above : ndarray of int of shape (n_splits,)
    a, b : int
        Parameters of the beta distribution.
    """

    n_above: NDArray[np.intp]
    a: int
    b: int

    @property
    def n_normal(self) -> float:
        """The number of normal rows expected from the count, if no outlier is counted."""
        return float(np.mean(self.n_above) * (self.a + self.b) / self.a)

    def chance_of_fewer(self, n_normal: int) -> float:
        """Return the probability of this count or a lower one: the mean over the splits."""
        return float(np.mean([self._cdf(count, n_normal) for count in self.n_above]))

    def chance_of_more(self, n_normal: int) -> float:
        """Return the probability of this count or a higher one: the mean over the splits."""
        return float(np.mean([1.0 - self._cdf(count - 1, n_normal) for count in self.n_above]))

    def _cdf(self, count: np.intp, n_normal: int) -> float:
        return beta_binomial_cdf(int(count), n_normal, self.a, self.b)


def cut_ranks(n_calibration: int) -> list[int]:
    """Return the ranks of the p-values (multiples of 1 / (n + 1)) that rows are counted above.

    The first is one half, the last is the lowest p-value.
    """
    ranks = [max(1, (n_calibration + 1) // 2)]
    while ranks[-1] > 1:
        ranks.append(max(1, ranks[-1] // _RATIO_OF_RANKS))
    return ranks


def counts_by_split(
    p_values: NDArray[np.float64], n_calibration: int, ranks: Sequence[int]
) -> NDArray[np.intp]:
    """Count the p-values above each of some ranks in each split.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)
        Computed from ranks without ties: tied rows would all be above a cut, or none.
    n_calibration : int
    ranks : sequence of int
        Chosen before the scores are seen, such as `cut_ranks`.

    Returns
    -------
    ndarray of int of shape (n_cuts, n_splits)
    """
    return np.array(
        [np.count_nonzero(p_values > rank / (n_calibration + 1), axis=1) for rank in ranks]
    )


def counts_above(
    n_above: NDArray[np.intp], n_calibration: int, ranks: Sequence[int]
) -> list[CountAbove]:
    """Return the counts of `counts_by_split` with their distributions."""
    return [
        CountAbove(of_cut, n_calibration + 1 - rank, rank)
        for of_cut, rank in zip(n_above, ranks, strict=True)
    ]


def most_normal(counts: list[CountAbove], n_rows: int, doubt: float) -> int:
    """Return the highest number of normal rows that is not too unlikely by any of the counts.

    Parameters
    ----------
    counts : list of CountAbove
    n_rows : int
        Rows of the batch.
    doubt : float
        The probability of a wrong answer is at most this.
    """
    level = doubt / _n_chances(counts)
    return -1 + first_number(
        n_rows, lambda n: any(count.chance_of_fewer(n) <= level for count in counts)
    )


def bound_outliers(
    n_above: NDArray[np.intp],
    n_rows: int,
    n_calibration: int,
    confidence: float,
    ranks: Sequence[int],
) -> OutlierBound:
    """Compute a lower confidence bound for the number of outliers.

    Parameters
    ----------
    n_above : ndarray of int of shape (n_cuts, n_splits)
        From `counts_by_split`.
    n_rows : int
    n_calibration : int
    confidence : float
    ranks : sequence of int
        Those of the counts.

    Returns
    -------
    OutlierBound
    """
    counts = counts_above(n_above, n_calibration, ranks)
    lowest = min(count.chance_of_fewer(n_rows) for count in counts)
    most = most_normal(counts, n_rows, 1.0 - confidence)
    return OutlierBound(n_rows - most, min(1.0, lowest * _n_chances(counts)))


def _n_chances(counts: list[CountAbove]) -> int:
    """Return what a probability is multiplied by, as the lowest of several counts.

    The probabilities of several splits are merged by twice their mean.
    """
    return len(counts) * min(len(counts[0].n_above), 2)


def first_number(last: int, holds: Callable[[int], bool]) -> int:
    """Return the first number in 0 … last from which a condition holds; last + 1 if none."""
    low, high = 0, last + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
