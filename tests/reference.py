"""The coordinate perturbation method in plain NumPy, straight from its definition.

Slow and obvious: every other solver is tested against it. Every trial evaluates the terms of the
loss Φ that it can change, from the member function after the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.solver_options import RELATIVE_TOLERANCE, SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._cpm.task import Task


def dense_weights(task: Task) -> NDArray[np.float64]:
    """Return the weights c_i(x) as an array of shape (m, n)."""
    weights = task.group_weight[:, task.group]
    return weights if task.row_weight is None else weights * task.row_weight


def member_value(
    X: NDArray[np.float64], A: NDArray[np.float64], b: NDArray[np.float64], floor: float
) -> NDArray[np.float64]:
    """Compute f(x) = ‖A x − b‖² of every row, for one member; at least `floor`."""
    squared: NDArray[np.float64] = ((X @ A.T - b) ** 2).sum(axis=1)
    return np.maximum(squared, floor)


def loss(values: NDArray[np.float64], weights: NDArray[np.float64], alpha: float) -> float:
    """Compute Φ = Σ_x Σ_i c_i(x) Σ_{j≠i} max(α, f_i(x) / f_j(x)), from arrays of shape (m, n)."""
    total = 0.0
    for i in range(len(values)):
        for j in range(len(values)):
            if j != i:
                total += float(weights[i] @ np.maximum(alpha, values[i] / values[j]))
    return total


class ReferenceSolver:
    """CPM in float64, one sweep at a time.

    The columns of A_i are visited in `column_order`, by default ascending.
    """

    def __init__(
        self, fit: Fit, options: SolverOptions, column_order: Sequence[int] | None = None
    ) -> None:
        self.task = fit.task
        self.A, self.b = fit.state.members.A.copy(), fit.state.members.b.copy()
        self.options = options
        self.tolerance = RELATIVE_TOLERANCE["float64"] * fit.task.total_weight
        self.columns = range(self.A.shape[2]) if column_order is None else column_order
        self.weights = dense_weights(fit.task)
        self.values = np.array(
            [self._value(*member) for member in zip(self.A, self.b, strict=True)]
        )

    def sweep(self) -> tuple[float, int]:
        """Visit every entry once; return the change of the loss and the number of steps taken."""
        total_change, accepted = 0.0, 0
        n_members, n_components, _ = self.A.shape
        for i in range(n_members):
            for r in range(n_components):
                for c in [*self.columns, None]:
                    change = self._visit(i, r, c)
                    total_change += change
                    accepted += change != 0.0
        return total_change, accepted

    def _visit(self, i: int, r: int, c: int | None) -> float:
        """Try +step, then −step, on A_i[r, c], or on b_i[r] if c is None."""
        step = self.options.step_b if c is None else self.options.step_a
        for signed_step in (step, -step):
            A, b = self.A[i].copy(), self.b[i].copy()
            if c is None:
                b[r] += signed_step
            else:
                A[r, c] += signed_step
            candidate = self._value(A, b)
            change = float((self._terms(i, candidate) - self._terms(i, self.values[i])).sum())
            if change < -self.tolerance:
                self.A[i], self.b[i], self.values[i] = A, b, candidate
                return change
        return 0.0

    def _value(self, A: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return member_value(self.task.X, A, b, self.options.floor)

    def _terms(self, i: int, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute per row the terms of Φ that contain f_i, with u in its place."""
        terms = np.zeros_like(u)
        for j in range(len(self.values)):
            if j != i:
                terms += self.weights[i] * np.maximum(self.options.alpha, u / self.values[j])
                terms += self.weights[j] * np.maximum(self.options.alpha, self.values[j] / u)
        return terms
