"""A fit as data: its task, its state between two sweeps, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.task import Task


@dataclass(frozen=True)
class FitState:
    """A fit between two sweeps: the next sweep depends on nothing else."""

    A: NDArray[np.float64]  # of shape (m, q, p)
    b: NDArray[np.float64]  # of shape (m, q)
    losses: list[float]  # Φ at the start and after each sweep; grows with the fit
    accepted: int  # steps that the last sweep took

    @classmethod
    def initial(cls, task: Task, options: SolverOptions) -> FitState:
        """Return the paper's starting point."""
        A = np.zeros((task.n_members, options.n_components, task.X.shape[1]))
        b = np.zeros(A.shape[:2])
        b[:, 0] = options.init_b
        # All member values are equal there, so that every ratio is 1.
        return cls(A, b, [(task.n_members - 1) * task.total_weight], accepted=0)

    @property
    def n_iter(self) -> int:
        """Sweeps made."""
        return len(self.losses) - 1

    @property
    def loss(self) -> float:
        """Φ after the last sweep."""
        return self.losses[-1]

    @property
    def can_improve(self) -> bool:
        """Whether a sweep could take a step; after one that took none, no later one would."""
        return self.n_iter == 0 or self.accepted > 0


@dataclass(frozen=True)
class Solution:
    """The result of a fit."""

    members: MemberFunctions
    loss: NDArray[np.float64]  # Φ at the start and after each sweep
    n_iter: int  # sweeps made; with fewer than `max_iter` the last one found nothing to improve

    @classmethod
    def of(cls, state: FitState, options: SolverOptions) -> Solution:
        """Return the result of a fit from its last state."""
        members = MemberFunctions(state.A, state.b, options.floor)
        return cls(members, np.array(state.losses), state.n_iter)


# Called after every sweep with the state of the fit and the seconds that the sweep took.
SweepListener = Callable[[FitState, float], None]


@dataclass(frozen=True)
class Fit:
    """A task to solve.

    An exception from the listener ends the fit, and so does Ctrl-C.
    """

    task: Task
    state: FitState  # where to start
    on_sweep: SweepListener | None = None

    @classmethod
    def of(
        cls,
        task: Task,
        options: SolverOptions,
        on_sweep: SweepListener | None = None,
        state: FitState | None = None,
    ) -> Fit:
        """Start at the paper's starting point or, to the same result, where a fit was stopped."""
        return cls(task, state or FitState.initial(task, options), on_sweep)

    @property
    def n_row_trials(self) -> int:
        """Rows times entries: the work of a sweep."""
        return len(self.task.X) * (self.state.A.size + self.state.b.size)
