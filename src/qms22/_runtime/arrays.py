"""Arrays in the host's memory (NumPy) or in a GPU's (CuPy), handled alike.

Nothing here imports CuPy: an array of it comes from someone who did.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_on_gpu(array: object) -> bool:
    """Whether an array is CuPy's."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def array_module(array: object) -> Any:
    """Give the module that works on an array where it is: NumPy or CuPy."""
    return sys.modules["cupy"] if is_on_gpu(array) else np


def as_host(array: Any) -> Any:
    """Give an array in the host's memory, copied where it has to be."""
    return array.get() if is_on_gpu(array) else np.asarray(array)


def to_device_of(array: Any, other: object) -> Any:
    """Give an array where another one is, copied where it has to be."""
    return array_module(other).asarray(array) if is_on_gpu(other) else as_host(array)
