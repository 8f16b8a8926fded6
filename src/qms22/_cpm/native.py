"""The compiled kernel, behind the interface of the reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qms22 import _core
from qms22._cpm.members import FLOOR_SHARE
from qms22._cpm.task import CpmRules, Task
from qms22._runtime.build import forced_instruction_set


class NativeSolver:
    """The compiled kernel, in a unit in which member values start near 1.

    The loss depends on ratios of member values alone. Dividing A, b and their steps by a power of
    two near init_b changes no bit of them and keeps float32 in range. A and b are where to start;
    rows are split over threads, on which the result does not depend.
    """

    def __init__(
        self,
        task: Task,
        A: NDArray[np.float64],
        b: NDArray[np.float64],
        rules: CpmRules,
        precision: str,
        n_threads: int,
    ) -> None:
        self._shape = A.shape
        self._unit = unit_of(rules)
        rules = in_unit(rules, self._unit)
        self._solver = _core.Solver(
            task.X,
            task.group,
            task.group_weight,
            task.row_weight,
            A / self._unit,
            b / self._unit,
            alpha=rules.alpha,
            floor=rules.floor,
            tolerance=rules.tolerance,
            step_a=rules.step_a,
            step_b=rules.step_b,
            single_precision=precision == "float32",
            n_threads=n_threads,
            isa=forced_instruction_set(),
        )

    def sweep(self) -> tuple[float, int]:
        """Visit every entry once; return the change of the loss and the number of steps taken."""
        return self._solver.sweep()

    @property
    def slow_share(self) -> float:
        """Share of row-trials that crossed a breakpoint and took O(m) time."""
        return self._solver.slow_row_trials / max(1, self._solver.row_trials)

    @property
    def A(self) -> NDArray[np.float64]:
        """Coefficients of shape (m, q, p)."""
        return np.ascontiguousarray(self._coefficients[..., :-1])

    @property
    def b(self) -> NDArray[np.float64]:
        """Offsets of shape (m, q)."""
        return np.ascontiguousarray(self._coefficients[..., -1])

    @property
    def _coefficients(self) -> NDArray[np.float64]:
        n_members, n_components, n_features = self._shape
        flat = self._solver.coefficients * self._unit
        return flat.reshape(n_members, n_components, n_features + 1)


def unit_of(rules: CpmRules) -> float:
    """Return a power of two near init_b; it does not depend on the state of a fit."""
    return power_of_two_near(math.sqrt(rules.floor / FLOOR_SHARE))


def in_unit(rules: CpmRules, unit: float) -> CpmRules:
    """Return the rules for coefficients that were divided by `unit`, a power of two."""
    return replace(
        rules,
        floor=rules.floor / unit**2,
        step_a=rules.step_a / unit,
        step_b=rules.step_b / unit,
    )


def power_of_two_near(value: float) -> float:
    """Return a power of two within a factor of √2 of a positive value."""
    return math.ldexp(1.0, round(math.log2(value)))
