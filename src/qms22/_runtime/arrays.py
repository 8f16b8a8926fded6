"""Arrays in the host's memory (NumPy) or in a GPU's (CuPy).

Nothing here imports CuPy: where there is a CuPy array, it has been imported.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_on_gpu(array: object) -> bool:
    """Return whether an array is CuPy's."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def array_module(array: object) -> Any:
    """Return the module that works on an array: NumPy or CuPy."""
    return sys.modules["cupy"] if is_on_gpu(array) else np


def as_host(array: Any) -> Any:
    """Return an array in the host's memory, copied only if it is on a GPU."""
    return array.get() if is_on_gpu(array) else np.asarray(array)


def to_device_of(array: Any, other: object) -> Any:
    """Return an array in the memory of another one, copied only if it is elsewhere."""
    return array_module(other).asarray(array) if is_on_gpu(other) else as_host(array)


def address(array: Any) -> int:
    """Return the address of an array for compiled code; 0, the null pointer, for None."""
    if array is None:
        return 0
    return int(array.data.ptr if is_on_gpu(array) else array.ctypes.data)
