"""The decisions of `conformal` for a batch in parts, which no machine needs to hold in full.

P-values are multiples of 1 / (n + 1), where n is the number of held-out rows. So flagging
needs how many rows have each of them: parts are counted, counts are added,
and the rows stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22.estimators.conformal import SLACK, e_value_of, share_of_normal, storey_rank
from qms22.estimators.outlier_bound import cut_ranks


@dataclass(frozen=True, eq=False)
class HeldOutRanks:
    """The scores of held-out rows, to compare the rows of a batch with.

    Parameters
    ----------
    ascending : ndarray of shape (n,)
        Higher is more suspicious.
    cuts : tuple of pairs of float
        The held-out rows of the `cut_ranks`: their scores, and random numbers in [0, 1) that break
        ties.
    """

    ascending: NDArray[np.float64]
    cuts: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, scores: NDArray[np.float64], rng: np.random.RandomState) -> HeldOutRanks:
        """Sort scores, and equal ones at random."""
        tie_breakers = rng.uniform(size=len(scores))
        order = np.lexsort((tie_breakers, scores))
        cuts = [order[-rank] for rank in cut_ranks(len(scores))]
        return cls(scores[order], tuple((scores[at], tie_breakers[at]) for at in cuts))

    def __len__(self) -> int:
        return len(self.ascending)

    def p_values(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute what `conformal_p_values` does."""
        p_values: NDArray[np.float64] = (1 + self._n_as_high(scores)) / (len(self) + 1)
        return p_values

    def count_p_values(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the rows that have each of the p-values 1 / (n + 1), 2 / (n + 1), … up to a half.

        Rows with higher ones are never flagged.
        """
        n_as_high = self._n_as_high(scores)
        return np.bincount(n_as_high[n_as_high < self.n_counts], minlength=self.n_counts)

    @property
    def n_counts(self) -> int:
        """How many different p-values are counted."""
        return storey_rank(len(self)) - 1

    def line(self, counts: NDArray[np.int64], n_rows: int, level: float) -> FlagLine:
        """Apply `adaptive_benjamini_hochberg` to what `count_p_values` counted.

        Parameters
        ----------
        counts : ndarray of int
            The sum over all parts.
        n_rows : int
            Rows of the batch.
        level : float
        """
        n_below = np.cumsum(counts)
        n_high = n_rows - int(counts.sum())
        share = share_of_normal(n_high, n_rows, len(self))
        p_values = np.arange(1, len(counts) + 1) / (len(self) + 1)
        enough = np.flatnonzero(p_values <= level / share * n_below / n_rows * SLACK)
        if not enough.size or not n_below[enough[-1]]:
            return FlagLine(np.inf, 0, 0.0)
        n_flagged = int(n_below[enough[-1]])
        # A p-value of at most k / (n + 1) means a score above the k-th highest held-out one.
        above = float(self.ascending[-1 - enough[-1]])
        return FlagLine(above, n_flagged, e_value_of(n_flagged, n_rows, len(self), level, share))

    def count_above(
        self, scores: NDArray[np.float64], rng: np.random.RandomState
    ) -> NDArray[np.intp]:
        """Count the rows with a p-value above each of the `cut_ranks`, ties broken at random."""
        tie_breakers = rng.uniform(size=len(scores))
        counts = [
            np.count_nonzero((scores < score) | ((scores == score) & (tie_breakers < tie_breaker)))
            for score, tie_breaker in self.cuts
        ]
        return np.array(counts)

    def _n_as_high(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        n_lower: NDArray[np.intp] = np.searchsorted(self.ascending, scores, side="left")
        return len(self) - n_lower


@dataclass(frozen=True)
class FlagLine:
    """Which rows a split flags.

    Parameters
    ----------
    above : float
        Rows that score higher are flagged.
    n_flagged : int
    e_value : float
        Of a flagged row; see `qms22.estimators.conformal.e_values`.
    """

    above: float
    n_flagged: int
    e_value: float


def e_value_line(counts: dict[float, int], n_rows: int, level: float) -> float:
    """Return the lowest e-value that `e_benjamini_hochberg` flags; infinity if it flags no row.

    Parameters
    ----------
    counts : dict from float to int
        How many rows have each e-value.
    n_rows : int
        Rows of the batch.
    level : float
    """
    line, n_higher = np.inf, 0
    for value in sorted(counts, reverse=True):
        n_higher += counts[value]
        if level * n_higher * value * SLACK >= n_rows:
            line = value
    return line
