"""Member values and outlier scores of rows on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.cuda.kernel import compile_kernel, source_text
from qms22._runtime.devices import need_cupy

_THREADS = 256

# struct Scored of scores.cu, field by field.
_SCORED = np.dtype(
    [
        ("x", np.uint64),
        *((name, np.int64) for name in ("n_rows", "row_stride", "column_stride")),
        ("coefficients", np.uint64),
        *((name, np.int32) for name in ("n_members", "n_components", "n_features")),
        ("floor", np.float64),
    ],
    align=True,
)


def member_values(X: Any, A: NDArray[np.float64], b: NDArray[np.float64], *, floor: float) -> Any:
    """Compute f_i(x) of CuPy rows: a CuPy array of shape (n, m)."""
    values = need_cupy().empty((len(X), len(A)))
    _launch("member_values", X, A, b, floor, values)
    return values


def outlier_scores(X: Any, A: NDArray[np.float64], b: NDArray[np.float64], *, floor: float) -> Any:
    """Compute η(x) of CuPy rows: a CuPy array of shape (n,); see `MemberFunctions`."""
    scores = need_cupy().empty(len(X))
    _launch("outlier_scores", X, A, b, floor, scores)
    return scores


def _launch(
    name: str,
    X: Any,
    A: NDArray[np.float64],
    b: NDArray[np.float64],
    floor: float,
    result: Any,
) -> None:
    cupy = need_cupy()
    n_members, n_components, n_features = A.shape
    coefficients = cupy.asarray(np.concatenate([A, b[:, :, None]], axis=2))
    scored = np.zeros((), dtype=_SCORED)
    row_stride, column_stride = (stride // X.itemsize for stride in X.strides)
    numbers = {
        "x": X.data.ptr,
        "n_rows": len(X),
        "row_stride": row_stride,
        "column_stride": column_stride,
        "coefficients": coefficients.data.ptr,
        "n_members": n_members,
        "n_components": n_components,
        "n_features": n_features,
        "floor": floor,
    }
    for field, number in numbers.items():
        scored[field] = number
    source = source_text("rows.hpp", "scores.cu")
    kernel = compile_kernel(source, name, ("--fmad=false",), False, cupy.cuda.Device().id)
    kernel((-(-len(X) // _THREADS),), (_THREADS,), (scored, result))
