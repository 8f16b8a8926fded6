"""How many of the first rows of a ranking may be normal: one bound for all numbers of rows at once.

A normal row of the batch takes every rank among the known-normal rows with the same probability. So
the numbers of normal rows with a rank of at most r, for all r together, have a known distribution:
that of an urn with n + m₀ rows in random order, where m₀ is the number of normal rows in the batch.
A simulation finds limits for a few ranks that all hold at once with the confidence asked for. What
a limit leaves of the rows with low ranks has to be outliers; the rows between two of the ranks
count as normal, all of them in the worst case. As the limits hold for all ranks at once, a person
may look at the rows first and choose any set of them afterwards.

Nobody knows m₀. Numbers for which the limits contradict what is seen are ruled out, and the largest
number that is left is used. This gives the number of outliers in the batch, at least.

References
----------
J. Goeman, A. Solari, "Multiple testing for exploratory research", Statistical Science 26 (2011).
https://doi.org/10.1214/11-STS356

Y. Song, Y. Jin, E. Candès, "Simultaneous false discovery bounds for conformal selection", 2026.
https://arxiv.org/abs/2605.20726
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.validation import check_share
from qms22.decisions.ruler import highest_flagged_rank

# The rate of false discoveries at which rows are flagged by default.
_USUAL_FDR = 0.1

# Rows that are not flagged count only if there are clearly too many: this share of the doubt.
_CLEARLY = 0.1

# Orders of the urn that are simulated; the same ones each time.
_N_SIMULATED = 2000


class OutlierBound(NamedTuple):
    """How many rows of a batch are outliers at least."""

    fewest: int  # there are at least this many, with the given confidence
    p_value: float  # of the hypothesis that there are none


@dataclass(frozen=True, eq=False)
class Curve:
    """Bounds on the number of normal rows in sets of rows of a batch, all of them at once."""

    ranks: NDArray[np.intp]  # ascending
    limits: NDArray[np.int64]  # at most so many normal rows have at most this rank
    n_within: NDArray[np.int64]  # so many rows have at most this rank
    most_normal: int  # at most so many rows of the batch are normal
    n_rows: int  # of the batch
    confidence: float  # all bounds hold with this probability

    @property
    def fewest_outliers(self) -> int:
        """At least this many rows of the batch are outliers."""
        return self.n_rows - self.most_normal

    def of_first(self, k: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the largest numbers of normal rows among the first k, for each k."""
        first = np.asarray(k, dtype=np.int64)
        most = np.minimum(first, self.most_normal)
        for limit, n_within in zip(self.limits, self.n_within, strict=True):
            np.minimum(most, limit + np.maximum(first - n_within, 0), out=most)
        return most

    def of_rows(self, ranks: NDArray[np.intp]) -> int:
        """Return the largest number of normal rows in a set of rows, given by their ranks."""
        n_beyond = [np.count_nonzero(ranks > rank) for rank in self.ranks]
        return int(min(len(ranks), self.most_normal, *(self.limits + n_beyond)))


def bound_false(counts: NDArray[np.int64], confidence: float = 0.9) -> Curve:
    """Bound the number of normal rows in all sets of rows at once.

    `counts` has the number of rows of the batch with each rank; see `Comparison.counts`.
    """
    check_share("confidence", confidence)
    n_known, n_rows = len(counts) - 1, int(counts.sum())
    ranks = ranks_with_limits(n_known)
    n_within = np.cumsum(counts)[ranks]
    # The largest number of normal rows that is not ruled out lies between the two.
    most, too_many = 0, n_rows + 1
    limits, tried = np.zeros(len(ranks), dtype=np.int64), n_rows
    while too_many - most > 1:
        of_tried = _limits(ranks, n_known, tried, confidence)
        # Of n normal rows at least n_within − (n_rows − n) have a low rank.
        if (of_tried >= n_within - (n_rows - tried)).all():
            most, limits = tried, of_tried
        else:
            too_many = tried
        tried = (most + too_many) // 2
    return Curve(ranks, limits, n_within, most, n_rows, confidence)


def bound_outliers(counts: NDArray[np.int64], confidence: float) -> OutlierBound:
    """Compute how many rows of a batch are outliers at least; see `bound_false`.

    Only rows that can be named count: those that are flagged at the usual rate, or more rows beyond
    all known-normal ones than chance would put there. A batch that is a little unlike the
    known-normal rows everywhere has no outliers.
    """
    highest = highest_flagged_rank(counts, _USUAL_FDR)
    n_named = int(counts[: highest + 1].sum())
    if not n_named and _chance_beyond_all(counts) <= _CLEARLY * (1.0 - confidence):
        n_named = int(counts[0])
    if not n_named:
        return OutlierBound(0, 1.0)
    fewest = bound_false(counts, confidence).fewest_outliers
    return OutlierBound(min(fewest, n_named), no_outlier_chance(counts))


def _chance_beyond_all(counts: NDArray[np.int64]) -> float:
    """Return the chance that so many of n + m rows in random order come before the first of n."""
    n_known, n_rows, n_beyond = len(counts) - 1, int(counts.sum()), int(counts[0])
    if not n_beyond:
        return 1.0
    left = np.arange(n_rows, n_rows - n_beyond, -1.0)
    return float(np.prod(left / (left + n_known)))


def no_outlier_chance(counts: NDArray[np.int64]) -> float:
    """Return the p-value of the hypothesis that all rows of a batch are normal.

    It is at most 1 − c if and only if the curve of confidence c finds an outlier, and not below
    1 / (number of simulated orders + 1).
    """
    n_known, n_rows = len(counts) - 1, int(counts.sum())
    ranks = ranks_with_limits(n_known)
    simulated = _simulate(ranks, n_known, n_rows)
    observed = _unusual(np.cumsum(counts)[ranks][None], simulated)
    n_as_unusual = np.count_nonzero(_unusual(simulated, simulated) >= observed)
    return float((1 + n_as_unusual) / (_N_SIMULATED + 1))


def ranks_with_limits(n_known: int) -> NDArray[np.intp]:
    """Return ranks from 0 to a tenth of all; with ratios of two little lies between them.

    Outliers that score like nine tenths of the known-normal rows cannot be told from these. With
    higher ranks, small differences between the two in how scores are made would count as outliers.
    """
    steps = 2 ** np.arange(max(1, (n_known + 1) // 10).bit_length())
    ranks: NDArray[np.intp] = steps - 1
    return ranks


def _limits(
    ranks: NDArray[np.intp], n_known: int, n_normal: int, confidence: float
) -> NDArray[np.int64]:
    """Return limits for the numbers of normal rows with low ranks that hold at once."""
    # As for p-values, what is observed counts as one more among the simulated orders.
    place = math.ceil(confidence * (_N_SIMULATED + 1)) - 1
    if place == _N_SIMULATED:  # so much confidence needs more of them
        return np.full(len(ranks), n_normal)
    simulated = _simulate(ranks, n_known, n_normal)
    unusual = np.sort(_unusual(simulated, simulated))
    # The smallest numbers that more than this share of the simulated ones do not exceed.
    limits: NDArray[np.int64] = np.sort(simulated, axis=0)[round(unusual[place] * _N_SIMULATED)]
    return limits


def _simulate(ranks: NDArray[np.intp], n_known: int, n_normal: int) -> NDArray[np.int64]:
    """Simulate how many of `n_normal` normal rows have at most each of some ranks.

    Shape (number of simulated orders, number of ranks). The known-normal row after rank r is at a
    tail probability that is the sum of r + 1 of n + 1 equal exponential gaps, and so on.
    """
    rng = np.random.RandomState(0)
    gaps = np.diff(ranks + 1, prepend=0, append=n_known + 1)
    tails = np.cumsum(rng.standard_gamma(gaps, size=(_N_SIMULATED, len(gaps))), axis=1)
    tails /= tails[:, -1:]
    found = np.empty((_N_SIMULATED, len(ranks)), dtype=np.int64)
    n_before, before = np.zeros(_N_SIMULATED, dtype=np.int64), np.zeros(_N_SIMULATED)
    for at in range(len(ranks)):
        share = np.clip((tails[:, at] - before) / np.maximum(1.0 - before, 1e-300), 0.0, 1.0)
        n_before = n_before + rng.binomial(n_normal - n_before, share)
        before = tails[:, at]
        found[:, at] = n_before
    return found


def _unusual(numbers: NDArray[np.int64], simulated: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each line of numbers the largest share of simulated ones that a number exceeds."""
    shares = [
        np.searchsorted(np.sort(of_rank), column) / len(simulated)
        for of_rank, column in zip(simulated.T, numbers.T, strict=True)
    ]
    largest: NDArray[np.float64] = np.max(shares, axis=0)
    return largest
