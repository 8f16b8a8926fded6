"""The implementations of CPM behind one interface, and the table to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qms22._cpm.cuda.backend import CudaBackend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.native import NativeSolver
from qms22._cpm.reference import ReferenceSolver
from qms22._cpm.solver_options import SolverOptions, check_range, cpm_rules
from qms22._cpm.sweeps import CpuSolver, Fit, Solution, SweepListener, run_sweeps
from qms22._cpm.task import Task
from qms22._runtime.chunks import row_chunks

# With fewer rows a trial takes microseconds, and threads would mostly wait for each other.
ROWS_PER_THREAD = 16_384


@dataclass(frozen=True)
class CpuBackend:
    """Fits on the host, one after the other; `start` makes their solvers."""

    start: Callable[[Fit, SolverOptions], CpuSolver]
    device: ClassVar[str] = "cpu"  # whose memory rows have to be in
    uses_threads: ClassVar[bool] = True  # several threads of this process are faster than one

    def solve(self, fits: Iterable[Fit], options: SolverOptions) -> list[Solution]:
        """Run fits to their end, each in at most ``options.n_threads`` threads."""
        return [run_sweeps(self.start(fit, options), fit, options) for fit in fits]

    def load(self, members: MemberFunctions) -> MemberFunctions:
        """Return the member functions; they are on the host already."""
        return members

    def row_chunks(self, shape: tuple[int, int], is_on_gpu: bool) -> list[slice]:
        """Cut rows into chunks that stay in a cache."""
        return row_chunks(shape)


def start_native(fit: Fit, options: SolverOptions) -> NativeSolver:
    """Set up the compiled kernel."""
    n_threads = min(options.n_threads, max(1, len(fit.task.X) // ROWS_PER_THREAD))
    rules = cpm_rules(fit.task, options)
    return NativeSolver(fit.task, fit.state.A, fit.state.b, rules, options.dtype, n_threads)


def start_reference(fit: Fit, options: SolverOptions) -> ReferenceSolver:
    """Set up the reference."""
    return ReferenceSolver(fit.task, fit.state.A, fit.state.b, cpm_rules(fit.task, options))


Backend = CpuBackend | CudaBackend

BACKENDS: dict[str, Backend] = {
    "native": CpuBackend(start_native),
    "reference": CpuBackend(start_reference),
    "cuda": CudaBackend(),
}


def choose_backend(device: str, solver: str = "native") -> Backend:
    """Return the backend for a device, "cpu" or "cuda", and for a solver on the CPU."""
    return BACKENDS["cuda" if device == "cuda" else solver]


def solve_all(fits: Iterable[Fit], options: SolverOptions) -> list[Solution]:
    """Train the member functions of several tasks; raise ValueError if values may overflow."""
    return choose_backend(options.device, options.solver).solve(_in_range(fits, options), options)


def solve(task: Task, options: SolverOptions, on_sweep: SweepListener | None = None) -> Solution:
    """Train the member functions of one task; see `Fit`."""
    return solve_all([Fit.of(task, options, on_sweep)], options)[0]


def _in_range(fits: Iterable[Fit], options: SolverOptions) -> Iterator[Fit]:
    for fit in fits:
        low, high = fit.task.X.min(axis=0), fit.task.X.max(axis=0)
        check_range(float(np.maximum(high, -low).sum()), options)
        yield fit
