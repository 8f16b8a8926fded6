"""From a task to its member functions: starting point, backend, sweeps, stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.members import FLOOR_SHARE, MemberFunctions
from qms22._cpm.native import NativeSolver
from qms22._cpm.reference import ReferenceSolver
from qms22._cpm.task import CpmRules, Task
from qms22._runtime.validation import check_choice, check_count, is_number

# A step is kept when it lowers the loss by more than this share of the total weight. Real gains
# are larger by orders of magnitude; rounding at exact ties (at the start every ratio is 1) is
# smaller by orders of magnitude.
RELATIVE_TOLERANCE = {"float64": 1e-13, "float32": 1e-8}

# The kernel multiplies three member values, and they must not overflow then.
_LARGEST_VALUE = {"float64": 1e100, "float32": 1e12}

# Below this a trial takes microseconds, and threads would spend their time meeting.
ROWS_PER_THREAD = 16_384


@dataclass(frozen=True)
class SolverOptions:
    """The settings of CPM; the defaults are the paper's.

    Parameters
    ----------
    n_components : int
        Rows of A_i, q.
    alpha : float
        Threshold in the loss, in [0, 1).
    max_iter : int
        Sweeps, at most.
    step_a, step_b : float
        Distance to the nearby entry in A_i and b_i.
    init_b : float
        First entry of every b_i at the start; all else starts at 0.
    dtype : {"float64", "float32"}
        Precision of the native solver.
    device : {"cpu", "cuda"}
        Where to sweep.
    solver : {"native", "reference"}
        On the CPU: the compiled kernel, or the slow NumPy reference.
    n_threads : int
        Threads of the native solver, at most; the result does not depend on them.
    """

    n_components: int = 10
    alpha: float = 0.5
    max_iter: int = 60
    step_a: float = 1.0
    step_b: float = 255.0
    init_b: float = 25500.0
    dtype: str = "float64"
    device: str = "cpu"
    solver: str = "native"
    n_threads: int = 1

    def __post_init__(self) -> None:
        check_count("n_components", self.n_components)
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)
        for name in ("step_a", "step_b", "init_b"):
            value = getattr(self, name)
            if not (is_number(value) and 0 < value < math.inf):
                raise ValueError(f"{name} must be a positive finite number; got {value!r}")
        if not (is_number(self.alpha) and 0 <= self.alpha < 1):
            raise ValueError(f"alpha must be a number in [0, 1); got {self.alpha!r}")
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_choice("device", self.device, ("cpu", "cuda"))
        check_choice("solver", self.solver, ("native", "reference"))
        if self.device == "cuda" and self.solver == "reference":
            raise ValueError("solver='reference' runs on the CPU; take device='cpu' with it")


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Parameters
    ----------
    members : MemberFunctions
    loss : ndarray of shape (n_iter + 1,)
        Φ at the start and after each sweep.
    n_iter : int
        Sweeps made. Fewer than asked for means that the last one found nothing to improve, so
        that no later one would.
    """

    members: MemberFunctions
    loss: NDArray[np.float64]
    n_iter: int


@dataclass(frozen=True)
class FitState:
    """Where a fit stands between two sweeps: the next one depends on nothing else.

    Parameters
    ----------
    A, b : ndarray of shape (m, q, p) and (m, q)
    losses : list of float
        Φ at the start and after each sweep; grows with the fit.
    accepted : int
        Steps that the last sweep took; after one that took none, no later one would.
    """

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    losses: list[float]
    accepted: int

    @property
    def n_iter(self) -> int:
        """Sweeps made."""
        return len(self.losses) - 1

    @property
    def loss(self) -> float:
        """Φ after the last sweep."""
        return self.losses[-1]


# Told of every sweep: where the fit stands, and how many seconds the sweep took.
SweepListener = Callable[[FitState, float], None]


class CoordinatePerturbation(Protocol):
    """What a backend offers: one sweep at a time over coefficients it holds."""

    @property
    def A(self) -> NDArray[np.float64]: ...

    @property
    def b(self) -> NDArray[np.float64]: ...

    def sweep(self) -> tuple[float, int]:
        """Return the change of the loss and the number of steps taken."""
        ...


def solve(
    task: Task,
    options: SolverOptions,
    on_sweep: SweepListener | None = None,
    state: FitState | None = None,
) -> Solution:
    """Train the member functions of a task.

    Parameters
    ----------
    task : Task
    options : SolverOptions
    on_sweep : callable, optional
        Called after each sweep. What it raises ends the fit, and so does Ctrl-C, within one sweep.
    state : FitState, optional
        Where an earlier fit stood, to go on from there. The result is the same as without a break.
    """
    _check_reach(task, options)
    return run_sweeps(start(task, options, state), task, options, on_sweep, state)


def solve_together(
    tasks: Sequence[Task],
    options: SolverOptions,
    on_sweeps: Callable[[int], None] | None = None,
) -> list[Solution]:
    """Train the member functions of several tasks on a GPU: small ones at the same time.

    Parameters
    ----------
    tasks : sequence of Task
    options : SolverOptions
        With device "cuda".
    on_sweeps : callable, optional
        Called now and then with the number of sweeps made so far, of all tasks. What it raises
        ends the fits.
    """
    from qms22._cpm.cuda.solver import Start, fit_all

    for task in tasks:
        _check_reach(task, options)
    starts = [
        Start(
            task,
            *starting_point(task.n_members, task.X.shape[1], options),
            cpm_rules(task, options),
        )
        for task in tasks
    ]
    solutions = []
    fits = fit_all(starts, options.dtype, options.max_iter, on_sweeps)
    for task, fit in zip(tasks, fits, strict=True):
        loss = np.cumsum([(task.n_members - 1) * task.total_weight, *fit.changes])
        members = MemberFunctions(fit.A, fit.b, _floor(options))
        solutions.append(Solution(members, loss, len(fit.changes)))
    return solutions


def run_sweeps(
    backend: CoordinatePerturbation,
    task: Task,
    options: SolverOptions,
    on_sweep: SweepListener | None = None,
    state: FitState | None = None,
) -> Solution:
    """Drive a backend that stands at the starting point, or at `state`; see `solve`."""
    # At the start all member values are equal, so that every ratio is 1.
    losses = [*state.losses] if state else [(task.n_members - 1) * task.total_weight]
    can_improve = state is None or state.accepted > 0
    while can_improve and len(losses) <= options.max_iter:
        begin = time.perf_counter()
        change, accepted = backend.sweep()
        seconds = time.perf_counter() - begin
        can_improve = accepted > 0
        losses.append(losses[-1] + change)
        if on_sweep is not None:
            on_sweep(FitState(backend.A, backend.b, losses, accepted), seconds)
    members = MemberFunctions(backend.A, backend.b, _floor(options))
    return Solution(members, np.array(losses), len(losses) - 1)


def start(
    task: Task, options: SolverOptions, state: FitState | None = None
) -> CoordinatePerturbation:
    """Set the chosen backend up at the paper's starting point, or where an earlier fit stood."""
    if state is None:
        A, b = starting_point(task.n_members, task.X.shape[1], options)
    else:
        A, b = state.A, state.b
    rules = cpm_rules(task, options)
    if options.device == "cuda":
        from qms22._cpm.cuda.solver import CudaSolver

        return CudaSolver(task, A, b, rules, options.dtype)
    if options.solver == "reference":
        return ReferenceSolver(task, A, b, rules)
    n_threads = min(options.n_threads, max(1, len(task.X) // ROWS_PER_THREAD))
    return NativeSolver(task, A, b, rules, options.dtype, n_threads)


def starting_point(
    n_members: int, n_features: int, options: SolverOptions
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the paper's A and b before the first sweep."""
    A = np.zeros((n_members, options.n_components, n_features))
    b = np.zeros(A.shape[:2])
    b[:, 0] = options.init_b
    return A, b


def cpm_rules(task: Task, options: SolverOptions) -> CpmRules:
    """Give the numbers by which a backend decides."""
    precision = "float64" if options.solver == "reference" else options.dtype
    return CpmRules(
        alpha=options.alpha,
        floor=_floor(options),
        tolerance=RELATIVE_TOLERANCE[precision] * task.total_weight,
        step_a=options.step_a,
        step_b=options.step_b,
    )


def _floor(options: SolverOptions) -> float:
    return FLOOR_SHARE * options.init_b**2


def _check_reach(task: Task, options: SolverOptions) -> None:
    low, high = task.X.min(axis=0), task.X.max(axis=0)
    check_range(float(np.maximum(high, -low).sum()), options)


def check_range(reach_of_x: float, options: SolverOptions) -> None:
    """Refuse settings under which member values could leave the range of the precision.

    Parameters
    ----------
    reach_of_x : float
        Largest absolute values of the scaled columns, in sum.
    options : SolverOptions
    """
    reach = options.max_iter * (options.step_a * reach_of_x + options.step_b) / options.init_b + 1.0
    largest = options.n_components * reach * reach
    if not largest <= _LARGEST_VALUE[options.dtype]:
        raise ValueError(
            f"features that reach {reach_of_x:.3g} in sum, with step_a={options.step_a:g}, "
            f"step_b={options.step_b:g}, init_b={options.init_b:g} and max_iter="
            f"{options.max_iter}, may overflow {options.dtype}; scale the features or take "
            "smaller steps or fewer sweeps"
        )
