"""The GPU's per-row arithmetic, compiled for the host."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qms22._cpm.cuda.memory import FitMemory
from qms22._cpm.cuda.solver import Start, SweepResult
from qms22._cpm.options import SolverOptions, cpm_rules, starting_point
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


class HostFits:
    """Stands in for `CudaFits`: the same memory layout and arithmetic, without a GPU."""

    def __init__(
        self, starts: Sequence[Start], precision: str, most_sweeps: int = 1, depth: int = 2
    ) -> None:
        self._sweep = getattr(library(), f"sweep_{precision}")
        self._depth = depth
        columns: dict[int, Any] = {}
        self._fits = [
            FitMemory.allocate(
                start.task,
                start.A,
                start.b,
                start.rules,
                precision,
                n_blocks=1,
                most_sweeps=most_sweeps,
                xp=np,
                columns=columns,
            )
            for start in starts
        ]

    def run(self, n_sweeps: int) -> list[list[SweepResult]]:
        """Make sweeps; return their results, by fit and by sweep."""
        made = []
        for fit in self._fits:
            fit.arrays["change"][:] = fit.arrays["accepted"][:] = 0
            self._sweep(self._depth, ctypes.c_void_p(fit.record.ctypes.data), n_sweeps)
            changes, accepted = (fit.arrays[name].tolist() for name in ("change", "accepted"))
            n_made = min(sum(n > 0 for n in accepted) + 1, n_sweeps)
            made.append(list(zip(changes, accepted, strict=True))[:n_made])
        return made

    def members(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return A and b of a fit."""
        both = self._fits[number].coefficients * self._fits[number].unit
        return both[..., :-1], both[..., -1]


def sweep_on_host(
    task: Task, options: SolverOptions, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit by the GPU's arithmetic; return A, b and the loss after each sweep."""
    A, b = starting_point(task.n_members, task.X.shape[1], options)
    start = Start(task, A, b, cpm_rules(task, options))
    fits = HostFits([start], options.dtype, options.max_iter, depth)
    changes = [change for change, _ in fits.run(options.max_iter)[0]]
    return *fits.members(0), (task.n_members - 1) * task.total_weight + np.cumsum(changes)
