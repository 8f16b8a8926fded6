"""A fit as data: its task, and its state between two sweeps and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.task import Task


@dataclass(frozen=True)
class FitState:
    """A fit between two sweeps, or at its end: the next sweep depends on nothing else."""

    members: MemberFunctions
    losses: list[float]  # Φ at the start and after each sweep
    accepted: int  # steps that the last sweep took

    @classmethod
    def initial(cls, task: Task, options: SolverOptions) -> FitState:
        """Return the paper's starting point."""
        A = np.zeros((task.n_members, options.n_components, task.X.shape[1]))
        b = np.zeros(A.shape[:2])
        b[:, 0] = options.init_b
        # All member values are equal there, so that every ratio is 1.
        losses = [(task.n_members - 1) * task.total_weight]
        return cls(MemberFunctions(A, b, options.floor), losses, accepted=0)

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
        members = self.state.members
        return len(self.task.X) * (members.A.size + members.b.size)
