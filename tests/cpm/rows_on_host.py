"""The GPU's per-row arithmetic, compiled for the host."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qms22._cpm.cuda.memory import FitMemory
from qms22._cpm.sweeps import SolverOptions, cpm_rules, starting_point
from qms22._cpm.task import Task

SOURCE = Path(__file__).with_name("rows_on_host.cpp")
HEADERS = Path(__file__).parents[2] / "src" / "qms22" / "_cpm" / "cuda"


@cache
def library() -> ctypes.CDLL:
    """Compile rows.hpp with the sweeps around it, or skip the test."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler}) to build the GPU's arithmetic for the host with")
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "rows.so"
        flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
        files = [str(SOURCE), "-o", str(target)]
        subprocess.run([compiler, *flags, f"-I{HEADERS}", *files], check=True)
        return ctypes.CDLL(str(target))


def sweep_on_host(
    task: Task, options: SolverOptions, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit by the GPU's arithmetic; give A, b and the loss after each sweep."""
    A, b = starting_point(task.n_members, task.X.shape[1], options)
    memory = FitMemory.allocate(
        task,
        A,
        b,
        cpm_rules(task, options),
        options.dtype,
        n_blocks=1,
        most_sweeps=options.max_iter,
        xp=np,
        columns={},
    )
    sweep = getattr(library(), f"sweep_{options.dtype}")
    sweep(depth, ctypes.c_void_p(memory.record.ctypes.data), options.max_iter)
    coefficients = memory.coefficients * memory.unit
    n_made = int((memory.arrays["accepted"] > 0).sum()) + 1
    changes = memory.arrays["change"][: min(n_made, options.max_iter)]
    loss = (task.n_members - 1) * task.total_weight + np.cumsum(changes)
    return coefficients[..., :-1], coefficients[..., -1], loss
