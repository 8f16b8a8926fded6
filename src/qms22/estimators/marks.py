"""Rows that someone has looked at: marked as outliers or as normal.

Marked rows teach, and nothing else. They are neither searched nor compared with the batch: rows are
looked at because they are suspicious, so those found to be normal are no random draw from the
normal rows, and flags that rest on them would break their promise. This is why `fit` takes them
apart from X, whose rows are compared with the batch.

``benchmarks/marks_promise.py`` simulates what marks do to p-values and flags. With 99 known-normal
rows, 3 % of normal rows may get a p-value of at most 0.03. With right marks, of any batch, at most
2.2 % do; with six wrong ones of an earlier batch next to the same X 3.5 %, and if the nine most
suspicious rows leave X whatever they are 6 %: rows must not leave for their scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from qms22._runtime.arrays import array_module, as_host, to_device_of
from qms22._runtime.validation import check_rows

_NO_ROWS = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Marks:
    """Marked rows, on the host."""

    outliers: NDArray[np.float64] = field(default_factory=lambda: _NO_ROWS)
    normal: NDArray[np.float64] = field(default_factory=lambda: _NO_ROWS)

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
        checked = []
        for name, rows in (("outliers", outliers), ("marked_normal", normal)):
            checked.append(_check(detector, rows, name))
            if len(checked[-1]) and not has_batch:
                raise ValueError(
                    f"{name} needs a batch to search; pass it as "
                    f"fit(X, unlabeled=batch, {name}=rows)"
                )
        return cls(*checked)

    def add_outliers(self, batch: Any, n_copies: int = 1) -> Any:
        """Return rows of NumPy or CuPy, then each marked outlier `n_copies` times."""
        return _stack(batch, np.repeat(self.outliers, n_copies, axis=0))

    def add_normal(self, rows: Any) -> Any:
        """Return rows of NumPy or CuPy, then those marked as normal."""
        return _stack(rows, self.normal)


def _check(detector: BaseEstimator, rows: Any, name: str) -> NDArray[np.float64]:
    """Return marked rows as finite numbers; none and an empty table are the same."""
    if rows is None or len(rows) == 0:
        return _NO_ROWS
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
