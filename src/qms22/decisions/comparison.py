"""Where the rows of a batch stand among the known-normal rows: p-values, flags, bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qms22.decisions.curve import Curve, OutlierBound, bound_false, bound_outliers
from qms22.decisions.ruler import Ruler, highest_flagged_rank

# That bounds on false discoveries hold.
CONFIDENCE = 0.9

_NO_ROWS = slice(0)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The scores of a batch next to those of known-normal rows.

    Parameters
    ----------
    ruler : Ruler
        The known-normal rows.
    ranks : ndarray of int of shape (n_rows,)
        How many known-normal rows score as high as each row of the batch, or higher; -1 for rows
        without a score.
    cases : ndarray of int of shape (n_rows,)
        The same, but n for rows that belong to a case that another row stands for: they say nothing
        that it does not say, and do not count.
    """

    ruler: Ruler
    ranks: NDArray[np.intp]
    cases: NDArray[np.intp]

    @classmethod
    def of(
        cls, ruler: Ruler, scores: NDArray[np.float64], repeats: NDArray[np.intp] | slice = _NO_ROWS
    ) -> Comparison:
        """Compare scores; NaN stands for none. `repeats` are rows of a case with another row."""
        ranks = ruler.ranks(scores)
        ranks[np.isnan(scores)] = -1
        cases = ranks.copy()
        cases[repeats] = np.where(ranks[repeats] < 0, -1, ruler.n_known)
        return cls(ruler, ranks, cases)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many cases have each rank."""
        return np.bincount(self.cases[self.cases >= 0], minlength=self.ruler.n_known + 1)

    @cached_property
    def curve(self) -> Curve:
        """Bounds on the number of normal rows in all sets of rows."""
        return bound_false(self.counts, CONFIDENCE)

    @property
    def p_values(self) -> NDArray[np.float64]:
        """The p-value of every row; NaN for rows without a score."""
        p_values = (1 + self.ranks) / (self.ruler.n_known + 1)
        p_values[self.ranks < 0] = np.nan
        return p_values

    def flag(self, fdr: float) -> NDArray[np.bool_]:
        """Flag the first rows, so that at most this share of them is expected to be normal."""
        return (self.ranks >= 0) & (self.ranks <= highest_flagged_rank(self.counts, fdr))

    def fewest_outliers(self, rows: NDArray[np.intp]) -> int:
        """Return how many of some rows are outliers at least."""
        return len(rows) - self.curve.of_rows(self.cases[rows])

    def bound(self, confidence: float) -> OutlierBound:
        """Return how many rows of the batch are outliers at least, and the p-value of none."""
        return bound_outliers(self.counts, confidence)
