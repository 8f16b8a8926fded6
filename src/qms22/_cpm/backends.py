"""The implementations of CPM behind one interface, and the table to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from qms22._cpm.cuda.backend import CudaBackend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.native import solve_natively
from qms22._cpm.solver_options import SolverOptions, check_range
from qms22._cpm.sweeps import Fit, FitState, SweepListener
from qms22._cpm.task import Task
from qms22._runtime.chunks import row_chunks


class CpuBackend:
    """Fits and scores on the host, one after the other."""

    device: ClassVar[str] = "cpu"  # whose memory rows have to be in
    uses_threads: ClassVar[bool] = True  # several threads of this process are faster than one

    def solve(self, fits: Iterable[Fit], options: SolverOptions) -> list[FitState]:
        """Run fits to their end, each in at most ``options.n_threads`` threads."""
        return [solve_natively(fit, options) for fit in fits]

    def load(self, members: MemberFunctions) -> MemberFunctions:
        """Return the member functions; they are on the host already."""
        return members

    def row_chunks(self, shape: tuple[int, int], is_on_gpu: bool) -> list[slice]:
        """Cut rows into chunks that stay in a cache."""
        return row_chunks(shape)


Backend = CpuBackend | CudaBackend

# By device.
BACKENDS: dict[str, Backend] = {"cpu": CpuBackend(), "cuda": CudaBackend()}


def solve_all(fits: Iterable[Fit], options: SolverOptions) -> list[FitState]:
    """Train the member functions of several tasks; raise ValueError if values may overflow."""
    return BACKENDS[options.device].solve(_in_range(fits, options), options)


def solve(task: Task, options: SolverOptions, on_sweep: SweepListener | None = None) -> FitState:
    """Train the member functions of one task; see `Fit`."""
    return solve_all([Fit.of(task, options, on_sweep)], options)[0]


def _in_range(fits: Iterable[Fit], options: SolverOptions) -> Iterator[Fit]:
    for fit in fits:
        low, high = fit.task.X.min(axis=0), fit.task.X.max(axis=0)
        check_range(float(np.maximum(high, -low).sum()), options)
        yield fit
