"""The checks in which rows are the oddest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Checks of a row that are kept.
MOST_KEPT = 4


class OddCells(NamedTuple):
    """The checks in which rows are the oddest, the oddest first, (n_rows, n_kept)."""

    checks: NDArray[np.int16]  # their numbers
    surprises: NDArray[np.float32]  # about −log p

    @classmethod
    def of(cls, surprises: NDArray[np.float64]) -> OddCells:
        """Keep the largest surprises of each row."""
        n_kept = min(MOST_KEPT, surprises.shape[1])
        order = np.argsort(-surprises, axis=1, kind="stable")[:, :n_kept]
        kept = np.take_along_axis(surprises, order, axis=1)
        found = cls.empty(len(surprises))
        found.checks[:, :n_kept], found.surprises[:, :n_kept] = order, kept
        return found

    @classmethod
    def empty(cls, n_rows: int) -> OddCells:
        """Return a place for rows, none of which is odd."""
        return cls(
            np.zeros((n_rows, MOST_KEPT), np.int16), np.zeros((n_rows, MOST_KEPT), np.float32)
        )

    def put(self, rows: NDArray[np.intp], found: OddCells) -> None:
        """Fill in what was found in some rows."""
        self.checks[rows], self.surprises[rows] = found

    def take(self, rows: NDArray[np.intp]) -> OddCells:
        """Return some of the rows."""
        return OddCells(self.checks[rows], self.surprises[rows])
