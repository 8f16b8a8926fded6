"""Exact medians of rows in parts, by two passes over every part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.scaling import Extent
from qms22.estimators.explain import TypicalValues

_MARKS = 1024


@dataclass(frozen=True)
class FirstLook:
    """A summary of the columns of one part.

    Parameters
    ----------
    positions : ndarray of shape (n_marks,)
        Some positions in the sorted columns, the first and the last among them.
    marks : ndarray of shape (n_marks, p)
        The values there.
    ones : ndarray of shape (p,)
        The number of values other than 0.
    is_binary : ndarray of shape (p,)
        Whether all values are 0 or 1.
    """

    positions: NDArray[np.int64]
    marks: NDArray[np.float64]
    ones: NDArray[np.int64]
    is_binary: NDArray[np.bool_]

    @classmethod
    def at(cls, rows: NDArray[np.float64]) -> FirstLook:
        """Summarize the rows of a part, at least one."""
        positions = np.unique(np.linspace(0, len(rows) - 1, _MARKS).astype(np.int64))
        marks = np.column_stack([np.sort(column)[positions] for column in rows.T])
        ones = np.count_nonzero(rows, axis=0)
        return cls(positions, marks, ones, ((rows == 0.0) | (rows == 1.0)).all(axis=0))

    @property
    def n_rows(self) -> int:
        """The number of rows of the part."""
        return int(self.positions[-1]) + 1

    @property
    def extent(self) -> Extent:
        """The range of the columns."""
        return Extent(self.n_rows, self.marks[0], self.marks[-1])


def bracket(
    looks: Sequence[FirstLook],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds, both inclusive, of the lower median of each column."""
    rank = (sum(look.n_rows for look in looks) - 1) // 2
    # `surely` counts the rows that are certainly at or below a mark, beyond those of the mark
    # before it; `perhaps` counts the rows that may lie below the next mark.
    surely = np.concatenate([np.diff(look.positions, prepend=-1) for look in looks])
    perhaps = np.concatenate([np.diff(look.positions, append=look.n_rows) for look in looks])
    marks = np.concatenate([look.marks for look in looks])
    low, high = np.empty(marks.shape[1]), np.empty(marks.shape[1])
    for column, values in enumerate(marks.T):
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        high[column] = ascending[np.searchsorted(np.cumsum(surely[order]), rank + 1)]
        below = np.cumsum(perhaps[order]) - perhaps[order]
        low[column] = ascending[np.searchsorted(below, rank, side="right") - 1]
    return low, high


def between(
    rows: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> list[tuple[int, NDArray[np.float64]]]:
    """Return, for each column, the number of values up to `low` and the values strictly between.

    Values at the bounds are counted, not kept: in a column of few levels they would be most rows.
    """
    return [
        (int((column <= least).sum()), column[(column > least) & (column < most)])
        for column, least, most in zip(rows.T, low, high, strict=True)
    ]


def typical_values(
    looks: Sequence[FirstLook],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    seconds: Sequence[list[tuple[int, NDArray[np.float64]]]],
) -> TypicalValues:
    """Combine the summaries of all parts; `seconds` holds the result of `between` for each."""
    n_rows = sum(look.n_rows for look in looks)
    medians = []
    for least, most, of_column in zip(low, high, zip(*seconds, strict=True), strict=True):
        inside = np.concatenate([values for _, values in of_column])
        position = (n_rows - 1) // 2 - sum(n_up_to_low for n_up_to_low, _ in of_column)
        if 0 <= position < len(inside):
            medians.append(np.partition(inside, position)[position])
        else:
            medians.append(least if position < 0 else most)
    is_binary = np.all([look.is_binary for look in looks], axis=0)
    ones = np.sum([look.ones for look in looks], axis=0)
    return TypicalValues(np.array(medians), np.where(is_binary, ones / n_rows, np.nan))
