"""Fits on the CPU, by the compiled kernel."""

from __future__ import annotations

import time

from qms22 import _core
from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import CpmRules, SolverOptions
from qms22._cpm.sweeps import Fit, FitState
from qms22._runtime.build import forced_instruction_set

# With fewer rows a trial takes microseconds, and threads would mostly wait for each other.
ROWS_PER_THREAD = 16_384


class NativeSolver:
    """One fit, which makes one sweep at a time from its state on.

    Rows are split over threads, on which the result does not depend. `core` is the compiled solver.
    """

    def __init__(self, fit: Fit, options: SolverOptions) -> None:
        task, rules = fit.task, CpmRules.of(fit.task, options)
        self._start, self._unit = fit.state.members, rules.unit
        self.core = _core.Solver(
            task.X,
            task.group,
            task.group_weight,
            task.row_weight,
            self._start.A / rules.unit,
            self._start.b / rules.unit,
            alpha=rules.alpha,
            floor=rules.floor,
            tolerance=rules.tolerance,
            step_a=rules.step_a,
            step_b=rules.step_b,
            single_precision=options.dtype == "float32",
            n_threads=min(options.n_threads, max(1, len(task.X) // ROWS_PER_THREAD)),
            isa=forced_instruction_set(),
        )

    def sweep(self) -> tuple[float, int]:
        """Visit every entry once; return the change of the loss and the number of steps taken."""
        return self.core.sweep()

    @property
    def members(self) -> MemberFunctions:
        """The member functions so far."""
        both = self.core.coefficients.reshape(*self._start.b.shape, -1) * self._unit
        return MemberFunctions.of(both, self._start.floor)


def solve_natively(fit: Fit, options: SolverOptions) -> FitState:
    """Sweep until nothing improves, or `max_iter` times."""
    solver, state = NativeSolver(fit, options), fit.state
    while state.can_improve and state.n_iter < options.max_iter:
        begin = time.perf_counter()
        change, accepted = solver.sweep()
        seconds = time.perf_counter() - begin
        state = FitState(solver.members, [*state.losses, state.loss + change], accepted)
        if fit.on_sweep is not None:
            fit.on_sweep(state, seconds)
    return state
