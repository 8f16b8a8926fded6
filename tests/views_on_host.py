"""The GPU's kernels of views, compiled for the host."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qms22.estimators.cuda import view_kernels as views

SOURCE = Path(__file__).with_name("views_on_host.cpp")


@cache
def library() -> ctypes.CDLL:
    """Compile views.cu with loops over blocks around it, or skip the test."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler}) to build the GPU's arithmetic for the host with")
    headers = Path(views.__file__).parent
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "views.so"
        flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
        # The pragma to unroll is for CUDA's compiler.
        flags.append("-Wno-unknown-pragmas")
        files = [str(SOURCE), "-o", str(target)]
        subprocess.run([compiler, *flags, f"-I{headers}", *files], check=True)
        return ctypes.CDLL(str(target))


def launch_on_host(
    name: str, n_rows: int, arguments: tuple[Any, ...], shared_bytes: int = 0
) -> None:
    """Stand in for `views._launch`: the same kernels and memory layout, without a GPU."""
    assert 0 <= shared_bytes <= 32 * 1024  # what views_on_host.cpp has
    assert arguments[-1].shape[-1] == n_rows
    kept = [np.asarray(argument) for argument in arguments]  # also numbers have an address
    passed = [
        ctypes.c_longlong(int(argument))
        if isinstance(argument, np.integer)
        else ctypes.c_void_p(array.ctypes.data)
        for argument, array in zip(arguments, kept, strict=True)
    ]
    getattr(library(), f"run_{name}")(ctypes.c_longlong(n_rows), *passed)
