"""Member functions f_i(x) = ‖A_i x − b_i‖²: the fitted model as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from qms22 import _core
from qms22._runtime.build import forced_instruction_set

# Member values below this share of the starting value init_b² are raised to it: ratios with a value
# of 0 have no meaning, and values of this size cannot be told from 0 in float32.
FLOOR_SHARE = 2.0**-40

# Rows whose values are in memory at once: they stay in a cache.
_ROWS_PER_BATCH = 8_192


@dataclass(frozen=True)
class MemberFunctions:
    """The m member functions of a QMS task."""

    A: NDArray[np.float64]  # of shape (m, q, p)
    b: NDArray[np.float64]  # of shape (m, q)
    floor: float  # the smallest value a member function takes; see `FLOOR_SHARE`

    @classmethod
    def of(cls, both: NDArray[np.float64], floor: float) -> MemberFunctions:
        """Return the members whose A and b are side by side, in an array of shape (m, q, p + 1)."""
        A, b = np.ascontiguousarray(both[..., :-1]), np.ascontiguousarray(both[..., -1])
        return cls(A, b, floor)

    def values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute f_i(x) of scaled NumPy rows: an array of shape (n, m)."""
        return _core.member_values(
            X, self.A, self.b, floor=self.floor, isa=forced_instruction_set()
        )

    def outlier_scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute η(x) = Σ_{i≥2} max(0, (f_i(x) − f_1(x)) / f_1(x)); higher is more suspicious."""
        scores = np.empty(len(X))
        for rows in gen_batches(len(X), _ROWS_PER_BATCH):
            first, *others = self.values(X[rows]).T
            # One after the other: a sum over so few columns takes longer in one call.
            scores[rows] = sum(np.maximum((other - first) / first, 0.0) for other in others)
        return scores
