"""The columns of a detector's rows, compared with those of its batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from qms22._runtime.arrays import as_host
from qms22._runtime.lazy_rows import LazyRows
from qms22.decisions.moved_columns import (
    MOST_COMPARED,
    ColumnPair,
    MovedColumn,
    compare_columns,
)


class BatchColumns:
    """The columns of known-normal rows and of a batch.

    Parameters
    ----------
    normal, batch : LazyRows
        With the same columns.
    names : sequence of str
    """

    def __init__(self, normal: LazyRows, batch: LazyRows, names: Sequence[str]) -> None:
        self._normal = normal
        self._batch = batch
        self._names = names

    @cached_property
    def moved(self) -> tuple[MovedColumn, ...]:
        """The columns, compared on first use; see `compare_columns`."""
        return compare_columns(self._pairs())

    def _pairs(self) -> list[ColumnPair]:
        """Draw rows of both tables, the same ones each time."""
        rng = np.random.RandomState(0)
        normal, batch = (
            as_host(rows.draw(MOST_COMPARED, rng)) for rows in (self._normal, self._batch)
        )
        columns = zip(self._names, normal.T, batch.T, strict=True)
        return [ColumnPair(*column) for column in columns]
