"""Scores of rows that a view has not learned from: the common scale, and scores by values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22._runtime.arrays import as_host, is_on_gpu
from qms22.estimators.cuda import view_kernels as views

# Held-out rows that others are compared with, in each part of a view: enough for p-values of 1 in
# 8,000, and a fit stays as fast with more known-normal rows.
MOST_COMPARED = 4096
# Odd constants of a known mixer of 64-bit numbers (SplitMix64).
_FIRST, _SECOND, _THIRD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of held-out normal rows, for comparison."""

    ascending: NDArray[np.float64]
    deviation: float  # their standard deviation, or 1 if that is 0

    @classmethod
    def of(cls, scores: Any) -> HeldOutScores:
        """Sort scores of NumPy or CuPy; higher is more suspicious."""
        scores = as_host(scores)
        return cls(np.sort(scores), float(scores.std()) or 1.0)

    def log_p_values(self, scores: Any) -> Any:
        """Compute the logarithm of the share of held-out rows that score higher.

        Ties count half, and a share is at least 1 / (2n + 2). Above the highest held-out score the
        value decreases exponentially, so that the most suspicious rows keep their order.
        """
        if is_on_gpu(scores):
            return views.log_p_values(scores, self.ascending, self.deviation)
        n = len(self.ascending)
        n_lower = np.searchsorted(self.ascending, scores, side="left")
        n_not_higher = n_lower.copy()
        ties = self.ascending.take(n_lower, mode="clip") == scores
        if ties.any():
            n_not_higher[ties] = np.searchsorted(self.ascending, scores[ties], side="right")
        shares = (1 + 2 * n - n_lower - n_not_higher) / (2 * n + 2)
        beyond = np.maximum(scores - float(self.ascending[-1]), 0.0) / self.deviation
        return exact.log(shares) - beyond

    def log_p_values_of_own(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute what `log_p_values` does for held-out rows, compared with the others only."""
        n = len(self.ascending)
        n_lower = np.searchsorted(self.ascending, scores, side="left")
        n_not_higher = np.searchsorted(self.ascending, scores, side="right")
        # At least one: equal rows of a forest share a mean score, which need not be among these.
        shares = np.maximum(2 * n - n_lower - n_not_higher, 1) / (2 * n)
        second = self.ascending[-2:][0]
        beyond = np.where(n_lower == n - 1, np.maximum(scores - second, 0.0), 0.0)
        result: NDArray[np.float64] = exact.log(shares) - beyond / self.deviation
        return result


def log_mean(logarithms: list[Any]) -> Any:
    """Compute the logarithm of the mean of values from their logarithms."""
    # One after the other: a sum along an axis would add in an order that depends on n.
    add = views.add_logarithms if is_on_gpu(logarithms[0]) else exact.add_logarithms
    return reduce(add, logarithms) - exact.log(len(logarithms))


@dataclass(frozen=True)
class LearnedRows:
    """Scores of rows by their values.

    A forest knows the rows that it has learned from, and scores them too high or too low. Their
    out-of-bag scores are kept here. A row is recognised by its values, not by its place, so that
    the score of a row is a function of its values alone.
    """

    keys: NDArray[np.uint64]  # ascending hashes of the different rows
    scores: NDArray[np.float64]  # the mean score of the rows with these values

    @classmethod
    def of(cls, keys: NDArray[np.uint64], scores: NDArray[np.float64]) -> LearnedRows:
        """Keep the scores of rows given by their hashes; equal rows share the mean of theirs."""
        different, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return cls(different, np.bincount(which, weights=scores) / counts)

    @classmethod
    def of_equal(cls, keys: NDArray[Any], scores: NDArray[Any]) -> LearnedRows:
        """Keep the scores of rows given by their hashes, of which equal ones have equal scores."""
        different, first = np.unique(keys, return_index=True)
        return cls(different, scores[first])

    def replace(self, scores: Any, keys: Any) -> Any:
        """Return scores of rows given by their hashes, with the kept ones where a row is known."""
        if is_on_gpu(keys):
            return views.replace_known(scores, keys, self.keys, self.scores)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.scores[place], scores)


def hash_rows(rows: Any) -> Any:
    """Compute a 64-bit hash of the values of every row of NumPy or CuPy."""
    if is_on_gpu(rows):
        return views.hash_rows(rows)
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        # 0.0 is added because -0.0 equals 0.0 and has other bits.
        bits = (column.astype(np.float64) + 0.0).view(np.uint64)
        keys = mix_bits(keys * np.uint64(_FIRST) + bits)
    return keys


def mix_bits(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Make every bit of 64-bit numbers depend on all of their bits, in place."""
    for shift, factor in ((30, _SECOND), (27, _THIRD)):
        keys ^= keys >> np.uint64(shift)
        keys *= np.uint64(factor)
    keys ^= keys >> np.uint64(31)
    return keys
