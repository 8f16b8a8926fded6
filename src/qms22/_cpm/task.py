"""The QMS task as data: rows, and their weights inside the member sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Task:
    """Rows in groups of constant weight, so that no (m, n) matrix of weights is stored.

    The weight of row x inside member set i is

        c_i(x) = group_weight[i, group[x]] * row_weight[x]

    and 0 means that x is not in the set.
    """

    X: NDArray[np.float64]  # scaled rows, of shape (n, p)
    group: NDArray[np.int32]  # of each row
    group_weight: NDArray[np.float64]  # inside each member set, of shape (m, n_groups)
    row_weight: NDArray[np.float64] | None = None  # None means 1 everywhere

    @property
    def n_members(self) -> int:
        """Number of member sets, m."""
        return int(self.group_weight.shape[0])

    @property
    def total_weight(self) -> float:
        """Sum of all weights over rows and member sets."""
        rows_in_group = np.bincount(
            self.group, weights=self.row_weight, minlength=self.group_weight.shape[1]
        )
        return float(self.group_weight.sum(axis=0) @ rows_in_group)


def detection_task(
    X: NDArray[np.float64],
    n_unlabeled: int,
    n_members: int,
    rng: np.random.RandomState,
) -> Task:
    """Build the task of QMS22: Ω1 = S ∪ T against overlapping subsets of T.

    T is shuffled and cut into m − 1 parts of nearly equal size V_2, …, V_m, and Ω_i = T − V_i. Rows
    weigh |Ω2| / |Ω1| in the first member set and 1 in the others. With m = 2 the only subset is T.

    X has the rows of S, then those of T.
    """
    n_normal, n_parts = len(X) - n_unlabeled, n_members - 1
    part_sizes = [len(part) for part in np.array_split(np.arange(n_normal), n_parts)]
    # Group 0 is S; group i is the part left out of member set i, counted from 0.
    part = np.repeat(np.arange(1, n_members, dtype=np.int32), part_sizes)
    group = np.zeros(len(X), dtype=np.int32)
    group[n_unlabeled:] = rng.permutation(part)

    group_weight = np.ones((n_members, n_members))
    group_weight[1:, 0] = 0.0
    n_second = n_normal
    if n_parts > 1:
        np.fill_diagonal(group_weight, 0.0)
        n_second -= part_sizes[0]
    group_weight[0] = n_second / len(X)
    return Task(X, group, group_weight)


def classification_task(
    X: NDArray[np.float64],
    y: NDArray[np.int32],
    n_classes: int,
    sample_weight: NDArray[np.float64] | None = None,
) -> Task:
    """Build the task of QMS: member set i holds the rows of class i.

    Only ratios of weights matter; they are divided by the largest, so that none overflows.
    """
    if sample_weight is not None:
        sample_weight = sample_weight / sample_weight.max()
    return Task(X, y, np.eye(n_classes), sample_weight)
