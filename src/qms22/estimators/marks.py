"""Rows that someone has looked at: marked as outliers or as normal.

Marked rows teach, and nothing else. They are neither searched nor compared with the batch: rows are
looked at because they are suspicious, so those found to be normal are no random draw from the
normal rows, and flags that rest on them would break their promise. This is why `fit` takes them
apart from X, whose rows are compared with the batch.

What this means for p-values and flags, in simulations of ``benchmarks/marks_promise.py`` with 99
known-normal rows, where 3 % of normal rows may get a p-value of at most 0.03:

- Marks of an earlier batch that was searched with other known-normal rows: 2.2 % do, whether the
  marks are right or wrong. Such marks depend neither on the batch nor on X.
- Marks of an earlier batch that was searched with the same X, on which it depends which rows were
  looked at: 2.2 % if marks are true, 3.5 % if six normal rows are wrongly marked as outliers
  (standard error 0.3 %).
- Marks of the same batch, of its most suspicious rows: 0.3 %. The normal rows that are left are
  less suspicious than most, and p-values err on the safe side.
- The most suspicious rows of X were looked at, and the outliers among them have left X and are
  marked: with six outliers among the 99 rows 1.4 %, and 12 % of flags are false at level 0.2. If
  the nine most suspicious rows leave whatever they are, it is 6 % and 37 %: rows must not leave for
  their scores.

At level 0.2 some row of a batch without outliers was flagged in at most 8 % of the simulations with
marks on batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from qms22._runtime.arrays import array_module, as_host, to_device_of
from qms22._runtime.validation import check_rows


def _no_rows() -> NDArray[np.float64]:
    return np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Marks:
    """Marked rows, on the host.

    Parameters
    ----------
    outliers : ndarray of shape (n_outliers, n_features)
    normal : ndarray of shape (n_normal, n_features)
    """

    outliers: NDArray[np.float64] = field(default_factory=_no_rows)
    normal: NDArray[np.float64] = field(default_factory=_no_rows)

    @classmethod
    def of(
        cls,
        detector: BaseEstimator,
        outliers: ArrayLike | None,
        normal: ArrayLike | None,
        *,
        has_batch: bool,
    ) -> Marks:
        """Check the marked rows that a user gave to `fit`, whose X has been checked."""
        given = {"outliers": outliers, "marked_normal": normal}
        checked = {name: _check(detector, rows, name) for name, rows in given.items()}
        for name, rows in checked.items():
            if len(rows) and not has_batch:
                raise ValueError(
                    f"{name} needs a batch to search; pass it as "
                    f"fit(X, unlabeled=batch, {name}=rows)"
                )
        return cls(*checked.values())

    def add_outliers(self, batch: Any, n_copies: int = 1) -> Any:
        """Return rows of NumPy or CuPy, then each marked outlier as often as told."""
        return _stack(batch, np.repeat(self.outliers, n_copies, axis=0))

    def add_normal(self, normal: Any, scale: Callable[[Any], Any] | None = None) -> Any:
        """Return rows of NumPy or CuPy, then those marked as normal, scaled if `normal` is."""
        if scale is None or not len(self.normal):
            return _stack(normal, self.normal)
        return _stack(normal, scale(self.normal))


NO_MARKS = Marks()


def _check(detector: BaseEstimator, rows: Any, name: str) -> NDArray[np.float64]:
    """Return marked rows as finite numbers; none and an empty table are the same."""
    if rows is None or len(rows) == 0:
        return _no_rows()
    shape = np.shape(rows)
    if len(shape) == 2 and shape[1] != detector.n_features_in_:
        raise ValueError(
            f"{name} has {shape[1]} columns and X has {detector.n_features_in_}; give marked rows "
            "with the columns of X"
        )
    checked: NDArray[np.float64] = as_host(check_rows(detector, rows, name=name))
    return checked


def _stack(rows: Any, marked: NDArray[np.float64]) -> Any:
    if not len(marked):
        return rows
    return array_module(rows).concatenate([rows, to_device_of(marked, rows)])
