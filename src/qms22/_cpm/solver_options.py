"""The settings of CPM, and what follows from them: rules, and the range of values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qms22._cpm.members import FLOOR_SHARE
from qms22._cpm.task import Task
from qms22._runtime.validation import check_choice, check_count, is_number

# A step is kept when it lowers the loss by more than this share of the total weight. Real gains
# are larger by orders of magnitude; rounding at exact ties (at the start every ratio is 1) is
# smaller by orders of magnitude.
RELATIVE_TOLERANCE = {"float64": 1e-13, "float32": 1e-8}

# Squares of init_b and member values of many times that size must stay in the range of floats.
_LARGEST_INIT_B = 1e100

# The kernel multiplies three member values, and the product must not overflow.
_LARGEST_VALUE = {"float64": 1e100, "float32": 1e12}


@dataclass(frozen=True)
class SolverOptions:
    """The settings of CPM; the defaults are the paper's. `QMS22` explains them."""

    n_components: int = 10
    alpha: float = 0.5
    max_iter: int = 60
    step_a: float = 1.0
    step_b: float = 255.0
    init_b: float = 25500.0
    dtype: str = "float64"
    device: str = "cpu"
    n_threads: int = 1  # on the CPU, at most; the result does not depend on them

    def __post_init__(self) -> None:
        check_count("n_components", self.n_components)
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)
        for name in ("step_a", "step_b", "init_b"):
            value = getattr(self, name)
            if not (is_number(value) and 0 < value < math.inf):
                raise ValueError(f"{name} must be a positive finite number; got {value!r}")
        if not 1 / _LARGEST_INIT_B <= self.init_b <= _LARGEST_INIT_B:
            raise ValueError(
                f"init_b must be from {1 / _LARGEST_INIT_B:g} to {_LARGEST_INIT_B:g}; "
                f"got {self.init_b!r}"
            )
        if not (is_number(self.alpha) and 0 <= self.alpha < 1):
            raise ValueError(f"alpha must be a number in [0, 1); got {self.alpha!r}")
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_choice("device", self.device, ("cpu", "cuda"))

    @property
    def floor(self) -> float:
        """The smallest value of a member function."""
        return FLOOR_SHARE * self.init_b**2


@dataclass(frozen=True)
class CpmRules:
    """Steps and thresholds of the compiled kernels, in a unit in which member values start near 1.

    The loss depends on ratios of member values alone. Dividing A, b and their steps by a power of
    two near init_b changes no bit of them and keeps float32 in range.
    """

    unit: float  # what A and b are divided by
    alpha: float  # smaller ratios of member values are raised to this
    floor: float  # smaller member values are raised to this
    tolerance: float  # a step is kept when it lowers the loss by more than this
    step_a: float  # distance to the nearby entry in A_i
    step_b: float  # and in b_i

    @classmethod
    def of(cls, task: Task, options: SolverOptions) -> CpmRules:
        """Return the rules for a task."""
        unit = math.ldexp(1.0, round(math.log2(options.init_b)))
        return cls(
            unit,
            options.alpha,
            options.floor / unit**2,
            RELATIVE_TOLERANCE[options.dtype] * task.total_weight,
            options.step_a / unit,
            options.step_b / unit,
        )


def check_range(reach_of_x: float, options: SolverOptions) -> None:
    """Raise ValueError if member values could leave the range of the precision.

    `reach_of_x` is the sum of the largest absolute values of the scaled columns.
    """
    reach = options.max_iter * (options.step_a * reach_of_x + options.step_b) / options.init_b + 1.0
    largest = options.n_components * reach * reach
    if not largest <= _LARGEST_VALUE[options.dtype]:
        raise ValueError(
            f"features that reach {reach_of_x:.3g} in sum, with step_a={options.step_a:g}, "
            f"step_b={options.step_b:g}, init_b={options.init_b:g} and max_iter="
            f"{options.max_iter}, may overflow {options.dtype}; scale the features or use "
            "smaller steps or fewer sweeps"
        )
