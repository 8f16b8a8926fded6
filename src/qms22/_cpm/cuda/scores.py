"""Scaled rows, member values and outlier scores on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.members import MemberFunctions
from qms22._runtime.devices import need_cupy
from qms22._runtime.kernels import compile_kernel, source_text

# Threads of a block, a multiple of 32: enough of them to hide the latency of memory.
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


class CudaMembers:
    """Member functions with their coefficients on the current GPU, for CuPy rows."""

    def __init__(self, members: MemberFunctions) -> None:
        self._cupy = need_cupy()
        # Joined arrays keep the order of their parts; the kernel reads one row after the other.
        coefficients = np.concatenate([members.A, members.b[:, :, None]], axis=2)
        self._coefficients = self._cupy.asarray(np.ascontiguousarray(coefficients))
        self._record = np.zeros((), dtype=_SCORED)
        n_members, n_components, n_features = members.A.shape
        numbers = {
            "coefficients": self._coefficients.data.ptr,
            "n_members": n_members,
            "n_components": n_components,
            "n_features": n_features,
            "floor": members.floor,
        }
        for field, number in numbers.items():
            self._record[field] = number

    def values(self, X: Any) -> Any:
        """Compute f_i(x): a CuPy array of shape (n, m)."""
        return self._launch("member_values", X, (len(X), int(self._record["n_members"])))

    def outlier_scores(self, X: Any) -> Any:
        """Compute η(x): a CuPy array of shape (n,)."""
        return self._launch("outlier_scores", X, (len(X),))

    def _launch(self, name: str, X: Any, shape: tuple[int, ...]) -> Any:
        result = self._cupy.empty(shape)
        record = self._record.copy()
        record["x"], record["n_rows"] = X.data.ptr, len(X)
        record["row_stride"], record["column_stride"] = (n // X.itemsize for n in X.strides)
        _launch(name, len(X), (record, result))
        return result


def scale_rows(X: Any, columns: tuple[NDArray[np.float64], ...], limit: float, scaled: Any) -> None:
    """Compute what ``FeatureScaler.transform`` does, to the same bits, of CuPy rows.

    `columns` are peak, center and factor; `scaled`, in C order, may be X.
    """
    cupy = need_cupy()
    strides = (np.int64(n // X.itemsize) for n in X.strides)
    rows = (X, np.int64(len(X)), *strides, np.int32(X.shape[1]))
    _launch("scale_rows", len(X), (*rows, *map(cupy.asarray, columns), np.float64(limit), scaled))


def _launch(name: str, n_rows: int, arguments: tuple[Any, ...]) -> None:
    source = source_text("qms22._cpm.cuda", "rows.hpp", "scores.cu")
    # Results are rounded as on the CPU: no fused multiply-add.
    kernel = compile_kernel(source, name, ("--fmad=false",), False, need_cupy().cuda.Device().id)
    kernel((-(-n_rows // _THREADS),), (_THREADS,), arguments)
