"""Rows that someone has looked at: marked as outliers or as normal.

Marked rows teach, and nothing else. They are neither searched nor compared with the batch: rows are
looked at because they are suspicious, so those found to be normal are no random draw from the
normal rows, and flags that rest on them would break their promise. This is why `fit` takes them
apart from X, whose rows may be held out.

What this means for p-values and flags (``benchmarks/marks_promise.py`` has the simulations):

- Proved: if marks depend neither on the batch nor on X, for example because they are of an earlier
  batch that was searched with other known-normal rows. Given the marks and the rows that are not
  held out, scores are a symmetric function of the mixture of batch and held-out rows, and the
  marks do not change that its normal rows are exchangeable. Marks may even be wrong.
- Checked: marks of an earlier batch that was searched with the same X. Which rows were looked at
  depends on X, and so on rows that are held out. In simulations with 90 known-normal rows, 30 of
  them held out, a normal row gets the least p-value, 1/31, in 2.9 % of cases if marks are true,
  where 3.2 % are allowed. If six normal rows are wrongly marked as outliers, it does in about 4 %
  (standard error 0.5 %).
- Checked: marks of the same batch, of its most suspicious rows. The normal rows that are left are
  less suspicious than most, and p-values err on the safe side: 0.5 to 1.8 % of normal rows get the
  least one.
- Checked: the most suspicious rows of X were looked at, and the outliers among them have left X and
  are marked. All normal rows of X stay, and may be held out. In simulations with six outliers among
  the 90 rows of X, 2.9 % of normal rows get the least p-value (standard error 0.3 %), where 3.2 %
  are allowed, and 8 % of flags are false at level 0.2. If the nine most suspicious rows leave
  whatever they are, it is 8.4 % and 28 %: rows must not leave for their scores.

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
                    f"{name} helps to search a batch, and there is none; pass the batch as "
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
