"""The matrix of the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, count_rows
from qms22.tables.columns.plan import ColumnPlan


class LazyMatrix:
    """The matrix of a table; rows are encoded when they are read, as ``matrix[rows]``.

    `plans` are those of the columns by name, `cells` the results of `ColumnPlan.typed`. A column
    that is not there has the typical value: it is the same in all rows, so that it cannot make one
    of them more suspicious than another. `moves` has slopes and offsets for numbers.
    """

    def __init__(
        self,
        plans: Mapping[str, ColumnPlan],
        cells: Mapping[str, Cells],
        moves: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._plans = plans
        self._cells = cells
        self._moves = moves or {}
        self.shape = count_rows(cells), _n_outputs(plans)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> NDArray[np.float64]:
        n_rows = len(range(len(self))[rows]) if isinstance(rows, slice) else len(rows)
        matrix = np.empty((n_rows, self.shape[1]))
        for plan, out in _blocks(self._plans, matrix):
            if plan.name not in self._cells:
                plan.encode_typical(out)
                continue
            cells = self._cells[plan.name].take(rows)
            if plan.name in self._moves:
                slope, offset = self._moves[plan.name]
                cells = replace(cells, values=slope * cells.values + offset)
            plan.encode(cells, out)
        return matrix


def typical_row(plans: Mapping[str, ColumnPlan]) -> NDArray[np.float64]:
    """Return a row of the matrix with the typical value of each column."""
    row = np.empty((1, _n_outputs(plans)))
    for plan, out in _blocks(plans, row):
        plan.encode_typical(out)
    return row.ravel()


def _n_outputs(plans: Mapping[str, ColumnPlan]) -> int:
    return sum(len(plan.outputs) for plan in plans.values())


def _blocks(
    plans: Mapping[str, ColumnPlan], matrix: NDArray[np.float64]
) -> Iterator[tuple[ColumnPlan, NDArray[np.float64]]]:
    """Yield the plan of each column that is used, with its columns of the matrix."""
    at = 0
    for plan in plans.values():
        if plan.outputs:
            yield plan, matrix[:, at : at + len(plan.outputs)]
        at += len(plan.outputs)
