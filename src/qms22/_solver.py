"""From a task to its member functions: starting point, backend, sweeps, stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qms22._members import FLOOR_SHARE, MemberFunctions
from qms22._native import NativeSolver
from qms22._reference import ReferenceSolver
from qms22._task import CpmRules, Task
from qms22._validation import check_choice, check_count, is_number

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
    solver : {"native", "reference"}
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
        check_choice("solver", self.solver, ("native", "reference"))


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
    on_sweep: Callable[[int, float], None] | None = None,
) -> Solution:
    """Train the member functions of a task.

    Parameters
    ----------
    task : Task
    options : SolverOptions
    on_sweep : callable, optional
        Called after each sweep with the number of sweeps made and the loss. What it raises ends
        the fit, and so does Ctrl-C, within one sweep.
    """
    _check_range(task, options)
    backend = start(task, options)
    # At the start all member values are equal, so that every ratio is 1.
    loss = [(task.n_members - 1) * task.total_weight]
    for n_iter in range(1, options.max_iter + 1):
        change, accepted = backend.sweep()
        loss.append(loss[-1] + change)
        if on_sweep is not None:
            on_sweep(n_iter, loss[-1])
        if not accepted:
            break
    members = MemberFunctions(backend.A, backend.b, _floor(options))
    return Solution(members, np.array(loss), len(loss) - 1)


def start(task: Task, options: SolverOptions) -> CoordinatePerturbation:
    """Set the chosen backend up at the paper's starting point, before the first sweep."""
    A = np.zeros((task.n_members, options.n_components, task.X.shape[1]))
    b = np.zeros(A.shape[:2])
    b[:, 0] = options.init_b
    precision = "float64" if options.solver == "reference" else options.dtype
    rules = CpmRules(
        alpha=options.alpha,
        floor=_floor(options),
        tolerance=RELATIVE_TOLERANCE[precision] * task.total_weight,
        step_a=options.step_a,
        step_b=options.step_b,
    )
    if options.solver == "reference":
        return ReferenceSolver(task, A, b, rules)
    n_threads = min(options.n_threads, max(1, len(task.X) // ROWS_PER_THREAD))
    return NativeSolver(task, A, b, rules, precision, n_threads)


def _floor(options: SolverOptions) -> float:
    return FLOOR_SHARE * options.init_b**2


def _check_range(task: Task, options: SolverOptions) -> None:
    """Refuse settings under which member values could leave the range of the precision."""
    reach_of_x = float(np.maximum(task.X.max(axis=0), -task.X.min(axis=0)).sum())
    reach = options.max_iter * (options.step_a * reach_of_x + options.step_b) / options.init_b + 1.0
    largest = options.n_components * reach * reach
    if not largest <= _LARGEST_VALUE[options.dtype]:
        raise ValueError(
            f"features that reach {reach_of_x:.3g} in sum, with step_a={options.step_a:g}, "
            f"step_b={options.step_b:g}, init_b={options.init_b:g} and max_iter="
            f"{options.max_iter}, may overflow {options.dtype}; scale the features or take "
            "smaller steps or fewer sweeps"
        )
