"""The scores that rows get from models that have not learned from them, found by their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import is_on_gpu
from qms22.estimators.cuda import view_kernels as views

# Odd constants of a known mixer of 64-bit numbers (SplitMix64).
_FIRST, _SECOND, _THIRD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


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
    def of_equal(cls, keys: NDArray[Any], scores: NDArray[np.float64]) -> LearnedRows:
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
        keys = _mix(keys * np.uint64(_FIRST) + bits)
    return keys


def _mix(keys: Any) -> Any:
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(_SECOND)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(_THIRD)
    return keys ^ (keys >> np.uint64(31))
