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

import numpy as np
import pytest

from qms22._cpm.cuda.backend import SweepResult
from qms22._cpm.cuda.fit_memory import allocate_fits
from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
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
        self, fits: Sequence[Fit], options: SolverOptions, most_sweeps: int = 1, depth: int = 2
    ) -> None:
        self._sweep = getattr(library(), f"sweep_{options.dtype}")
        self._depth, self._floor = depth, options.floor
        self._fits = allocate_fits(fits, options, 1, most_sweeps, np)

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

    def members(self, number: int) -> MemberFunctions:
        """Return the member functions of a fit so far."""
        fit = self._fits[number]
        return MemberFunctions.of(fit.coefficients * fit.unit, self._floor)


def sweep_on_host(
    task: Task, options: SolverOptions, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit by the GPU's arithmetic; return A, b and the loss after each sweep."""
    fit = Fit.of(task, options)
    fits = HostFits([fit], options, options.max_iter, depth)
    changes = [change for change, _ in fits.run(options.max_iter)[0]]
    members = fits.members(0)
    return members.A, members.b, fit.state.loss + np.cumsum(changes)
