"""Distances of rows to known-normal rows, as a score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22 import _core
from qms22._runtime import exact
from qms22._runtime.arrays import is_on_gpu, to_device_of
from qms22._runtime.build import forced_instruction_set
from qms22.estimators.cuda import view_kernels as views

# Added to distances, as a small share of a typical one: the logarithm of 0 is infinite.
_FLOOR = 1e-3


def mean_log_distances(
    rows: NDArray[np.floating[Any]],
    references: NDArray[np.floating[Any]],
    *,
    skip: NDArray[np.integer[Any]] | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Compute the expected logarithm of the distance to the nearest row of a random half.

    A coin toss decides whether a reference is in the half, so that the nearest of all is the
    nearest of the half with probability ½, the second with ¼, and so on: the mean over all halves
    is a weighted mean over a few neighbors. It replaces the random bags of rows of `BRM`. For rows
    on a grid, such as categories, the second and third neighbor show how dense a place is.

    A row's result does not depend on the other rows or on threads, and up to the last bit of the
    logarithm it is the same on every CPU and on a GPU. Rows are of NumPy or CuPy, as is the result.
    Float32 references are compared in single precision, which takes half the time. `skip` has for
    every row the position of a reference that does not count, such as the row itself; -1 for none.
    """
    dtype = np.float32 if references.dtype == np.float32 else np.float64
    # The typical distance between two references, or 1 if they are all equal.
    typical = np.sqrt(2.0 * references.var(axis=0, dtype=np.float64).sum()) or 1.0
    skipped = None if skip is None else to_device_of(np.ascontiguousarray(skip, np.int64), rows)
    floor = _FLOOR * typical
    if is_on_gpu(rows):
        compared = (each.astype(dtype, copy=False) for each in (rows, references))
        products = views.nearest_products(*compared, skip=skipped, floor=floor)
    else:
        products = _core.nearest_products(
            np.ascontiguousarray(rows, dtype),
            np.ascontiguousarray(references, dtype),
            skip=skipped,
            floor=floor,
            n_threads=n_threads,
            isa=forced_instruction_set(),
        )
    n_counted = len(references) - (0 if skipped is None else skipped >= 0)
    # The weights ½, ¼, ... of the neighbors that there are.
    weight_sum = 1.0 - np.ldexp(1.0, -np.minimum(n_counted, _core.NEIGHBORS))
    scores: NDArray[np.float64] = exact.log(products) / weight_sum
    return scores
