"""The memory layout of a fit: columns of rows, and the record that points to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.solver_options import CpmRules, SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._runtime.arrays import address, array_module
from qms22._runtime.kernels import struct

# A thread loads up to 16 bytes of a column at once.
_PACK_BYTES = 16


def rows_per_pack(precision: str) -> int:
    """Return the rows of one load."""
    return _PACK_BYTES // np.dtype(precision).itemsize


def padded(n_rows: int, precision: str) -> int:
    """Round a number of rows up to full packs."""
    pack = rows_per_pack(precision)
    return -(-n_rows // pack) * pack


def bytes_of_fits(fits: Sequence[Fit], precision: str) -> int:
    """Count the bytes that fits take on the GPU; rows that several of them share count once."""
    itemsize = np.dtype(precision).itemsize
    needed = 0
    for task, n_components in ((fit.task, fit.state.members.A.shape[1]) for fit in fits):
        n_columns = n_components + task.n_members + 4 + (task.row_weight is not None)
        needed += padded(len(task.X), precision) * (n_columns * itemsize + 4)
    for X in {id(fit.task.X): fit.task.X for fit in fits}.values():
        needed += padded(len(X), precision) * (X.shape[1] + 1) * itemsize
    return needed


def columns_of(X: Any, precision: str, xp: Any) -> Any:
    """Return rows as columns, padded with copies of the last row, and a last column of -1."""
    n_rows, n_features = X.shape
    shape = (n_features + 1, padded(n_rows, precision))
    # Rows of the host are laid out there: CuPy would compile that first.
    columns = array_module(X).full(shape, -1, dtype=precision)
    columns[:-1, :n_rows] = X.T
    columns[:, n_rows:] = columns[:, n_rows - 1 : n_rows]
    return xp.asarray(columns)


@dataclass(frozen=True)
class FitMemory:
    """The arrays of one fit, of CuPy or NumPy.

    As in the native solver, member values start near 1.
    """

    arrays: dict[str, Any]  # by the names of ``struct Fit``; None for a missing one
    record: NDArray[np.void]  # the ``struct Fit`` that the kernel reads
    unit: float  # a power of two near init_b; coefficients are divided by it

    @classmethod
    def allocate(
        cls, fit: Fit, options: SolverOptions, x: Any, n_blocks: int, most_sweeps: int, xp: Any
    ) -> FitMemory:
        """Lay a fit out for the kernel; `x` has its rows as columns. See `allocate_fits`."""
        task, precision, rules = fit.task, options.dtype, CpmRules.of(fit.task, options)
        A, b = fit.state.members.A, fit.state.members.b
        n_members, n_components, n_features = A.shape
        n_rows, stride, n_groups = len(task.X), x.shape[1], task.group_weight.shape[1]
        # The last group is the padding, with weight 0.
        group = np.full(stride, n_groups, dtype=np.int32)
        group[:n_rows] = task.group
        group_weight = np.pad(task.group_weight, [(0, 0), (0, 1)]).astype(precision)
        row_weight = None
        if task.row_weight is not None:
            row_weight = xp.asarray(np.pad(task.row_weight, (0, stride - n_rows)), dtype=precision)
        start = np.concatenate([A, b[:, :, None]], axis=2) / rules.unit
        n_entries = n_components * (n_features + 1)
        arrays = {  # in the order of struct Fit of rows.hpp
            "x": x,
            "group": xp.asarray(group),
            "group_weight": xp.asarray(group_weight),
            "row_weight": row_weight,
            "value": xp.empty((n_members, stride), dtype=precision),
            "residual2": xp.empty((n_components, stride), dtype=precision),
            **{name: xp.empty(stride, dtype=precision) for name in ("f", "s1", "s2", "slack")},
            "coefficients": xp.asarray(np.broadcast_to(start, (n_blocks, *start.shape)).copy()),
            "entries": xp.empty((n_blocks, n_entries), dtype=precision),
            "moves": xp.zeros((n_blocks, n_entries), dtype=np.int8),
            "change": xp.zeros(most_sweeps),
            "accepted": xp.zeros(most_sweeps, dtype=np.int32),
        }
        numbers = {"n_features": n_features, "n_components": n_components, "n_members": n_members}
        inverse_alpha = 1 / rules.alpha if rules.alpha > 0 else math.inf
        record = struct(
            (np.int64, {"n_rows": stride, "stride": stride}),
            (np.int32, {**numbers, "n_groups": n_groups + 1}),
            (np.uint64, {name: address(array) for name, array in arrays.items()}),
            (
                precision,
                {"alpha": rules.alpha, "inverse_alpha": inverse_alpha, "floor": rules.floor},
            ),
            (
                np.float64,
                {"tolerance": rules.tolerance, "step_a": rules.step_a, "step_b": rules.step_b},
            ),
        )
        return cls(arrays, record, rules.unit)

    @property
    def coefficients(self) -> Any:
        """A and b side by side, of shape (m, q, p + 1); every block's copy is the same."""
        return self.arrays["coefficients"][0]


def allocate_fits(
    fits: Sequence[Fit], options: SolverOptions, n_blocks: int, most_sweeps: int, xp: Any
) -> list[FitMemory]:
    """Lay fits out for the kernel in CuPy or NumPy; those of the same rows share their columns.

    `n_blocks` blocks work on a fit, and a launch makes `most_sweeps` sweeps at most.
    """
    rows = {id(fit.task.X): fit.task.X for fit in fits}
    columns = {key: columns_of(X, options.dtype, xp) for key, X in rows.items()}
    return [
        FitMemory.allocate(fit, options, columns[id(fit.task.X)], n_blocks, most_sweeps, xp)
        for fit in fits
    ]
