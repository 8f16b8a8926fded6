"""Scaled rows, member values and outlier scores on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.members import MemberFunctions
from qms22._runtime.devices import need_cupy
from qms22._runtime.kernels import compile_kernel, source_text, struct

# Threads of a block, a multiple of 32: enough of them to hide the latency of memory.
_THREADS = 256


class CudaMembers:
    """Member functions with their coefficients on the current GPU, for CuPy rows."""

    def __init__(self, members: MemberFunctions) -> None:
        self._cupy = need_cupy()
        # Joined arrays keep the order of their parts; the kernel reads one row after the other.
        coefficients = np.concatenate([members.A, members.b[:, :, None]], axis=2)
        self._coefficients = self._cupy.asarray(np.ascontiguousarray(coefficients))
        self._shape, self._floor = members.A.shape, members.floor

    def values(self, X: Any) -> Any:
        """Compute f_i(x): a CuPy array of shape (n, m)."""
        return self._launch("member_values", X, (len(X), self._shape[0]))

    def outlier_scores(self, X: Any) -> Any:
        """Compute η(x): a CuPy array of shape (n,)."""
        return self._launch("outlier_scores", X, (len(X),))

    def _launch(self, name: str, X: Any, shape: tuple[int, ...]) -> Any:
        result = self._cupy.empty(shape)
        row_stride, column_stride = (n // X.itemsize for n in X.strides)
        strides = {"row_stride": row_stride, "column_stride": column_stride}
        sizes = zip(("n_members", "n_components", "n_features"), self._shape, strict=True)
        record = struct(  # struct Scored of scores.cu
            (np.uint64, {"x": X.data.ptr}),
            (np.int64, {"n_rows": len(X), **strides}),
            (np.uint64, {"coefficients": self._coefficients.data.ptr}),
            (np.int32, dict(sizes)),
            (np.float64, {"floor": self._floor}),
        )
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
