"""CUDA kernels: their source files, their compilation on first use, and their structs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.devices import need_cupy


def struct(*fields: tuple[Any, Mapping[str, Any]]) -> NDArray[np.void]:
    """Return a struct as C++ lays it out: in order the type of some fields, and their values."""
    layout = [(name, kind) for kind, values in fields for name in values]
    values = tuple(value for _, values in fields for value in values.values())
    return np.array(values, dtype=np.dtype(layout, align=True))


@cache
def source_text(package: str, *names: str) -> str:
    """Join source files of a package into one text: NVRTC compiles a string."""
    texts = (resources.files(package).joinpath(name).read_text("utf-8") for name in names)
    lines = (line for text in texts for line in text.splitlines())
    return "\n".join(line for line in lines if not line.startswith(("#pragma once", '#include "')))


@cache
def compile_kernel(
    source: str, name: str, options: tuple[str, ...], is_cooperative: bool, device: int
) -> Any:
    """Compile a kernel; CuPy caches the machine code on disk."""
    cupy = need_cupy()
    with cupy.cuda.Device(device):
        module = cupy.RawModule(
            code=source,
            options=("-std=c++17", *options),
            enable_cooperative_groups=is_cooperative,
        )
        return module.get_function(name)
