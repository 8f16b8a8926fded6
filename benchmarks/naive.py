"""The naive C++ loop of CPM, which the kernel is compared with."""

from __future__ import annotations

import ctypes

import numpy as np
from compiled import load
from numpy.typing import NDArray

from qms22._cpm.solver_options import CpmRules, SolverOptions
from qms22._cpm.task import Task


def naive_cpm(
    task: Task, options: SolverOptions, *, reciprocals: bool = False
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Solve a task without row weights by the naive loop, and return A and b.

    With `reciprocals` the loop keeps 1 / f_j and divides once per row instead of 2 (m − 1) times.
    """
    if task.row_weight is not None:
        raise ValueError("the naive loop has no row weights")
    real = np.dtype(options.dtype)
    order = np.argsort(task.group, kind="stable")
    n_groups = task.group_weight.shape[1]
    group_start = np.searchsorted(task.group[order], np.arange(n_groups + 1)).astype(np.uintp)
    x = np.ascontiguousarray(task.X[order].T, dtype=real)
    group_weight = np.ascontiguousarray(task.group_weight, dtype=real)
    n_features, n_rows = x.shape
    rules = CpmRules.of(task, options)
    A = np.zeros((task.n_members, options.n_components, n_features), dtype=real)
    b = np.zeros(A.shape[:2], dtype=real)
    b[:, 0] = options.init_b / rules.unit
    call = getattr(load("naive_cpm.cpp"), f"naive_cpm_{options.dtype}")
    sizes = [n_rows, n_features, options.n_components, task.n_members, n_groups]
    numbers = [
        rules.alpha,
        rules.step_a,
        rules.step_b,
        rules.tolerance,
    ]
    call(
        ctypes.c_bool(reciprocals),
        *(ctypes.c_size_t(size) for size in sizes),
        *(array.ctypes.data_as(ctypes.c_void_p) for array in (x, group_start, group_weight)),
        *(ctypes.c_double(number) for number in numbers),
        ctypes.c_size_t(options.max_iter),
        *(array.ctypes.data_as(ctypes.c_void_p) for array in (A, b)),
    )
    return A * rules.unit, b * rules.unit
