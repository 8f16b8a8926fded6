"""Rows that are read, checked and converted to float64 only when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qms22._runtime.arrays import array_module, as_host, is_on_gpu
from qms22._runtime.chunks import draw_rows, row_chunks
from qms22._runtime.devices import to_device
from qms22._runtime.validation import all_finite, check_finite, check_rows


class LazyRows:
    """Rows of numbers that need not be in memory, such as a memory-mapped file; or CuPy's.

    Error messages call them by `name`. With `positions` they are those of the rows, in this order.
    """

    # Whether the rows are on other machines, which work on them by `map`.
    is_distributed = False

    def __init__(
        self, rows: Any, name: str = "X", positions: NDArray[np.intp] | None = None
    ) -> None:
        self._rows = rows
        self._name = name
        self._positions = positions

    @classmethod
    def of(cls, estimator: BaseEstimator, X: Any, *, name: str = "X", reset: bool = False) -> Self:
        """Wrap user input; see `check_rows` for the parameters.

        NumPy arrays of numbers are kept, as are lazy rows; other tables are checked and converted
        at once.
        """
        if isinstance(X, cls):
            validate_data(estimator, X.header, reset=reset, skip_check_array=True)
            return X
        if not _is_array_of_numbers(X):
            return cls(check_rows(estimator, X, name=name, reset=reset), name)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return cls(X, name)

    def __len__(self) -> int:
        return len(self._rows if self._positions is None else self._positions)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of features."""
        return len(self), self._rows.shape[1]

    @property
    def is_on_gpu(self) -> bool:
        """Whether the rows are CuPy's."""
        return is_on_gpu(self.read(slice(0)))

    def read(
        self, which: slice | NDArray[np.integer[Any]], device: str = "cpu"
    ) -> NDArray[np.float64]:
        """Return some rows as finite float64 values, copied only if necessary.

        With device "cuda" rows of the host are copied as they are, and converted and checked there.
        """
        part = self._rows[which if self._positions is None else self._positions[which]]
        if device == "cuda":
            # CuPy has no numbers in a foreign byte order.
            part = to_device(part.astype(part.dtype.newbyteorder("="), copy=False), device)
        rows: NDArray[np.float64] = array_module(part).asarray(part, dtype=np.float64)
        if not all_finite(rows):
            check_finite(self._rows, self._rows, self._name)
        return rows

    def draw(self, max_samples: int | None, rng: np.random.RandomState) -> NDArray[np.float64]:
        """Return rows drawn without replacement; see `draw_rows`."""
        positions = draw_rows(len(self), max_samples, rng)
        return self.read(slice(None) if len(positions) == len(self) else positions)

    @property
    def header(self) -> Any:
        """No rows, for the number and the names of the columns."""
        return self._rows[:0]

    def select(self, positions: NDArray[np.intp]) -> LazyRows:
        """Return some rows, to be read when they are needed."""
        if self._positions is not None:
            positions = self._positions[positions]
        return LazyRows(self._rows, self._name, positions)

    def map(self, function: Callable[[NDArray[np.float64]], Any]) -> list[Any]:
        """Apply a function to all rows, chunk by chunk, in the memory of the host."""
        return [function(as_host(self.read(part))) for part in row_chunks(self.shape)]


def _is_array_of_numbers(X: Any) -> bool:
    """Return whether all that can be wrong with rows are values that are not finite."""
    return (
        type(X) in (np.ndarray, np.memmap)
        and X.ndim == 2
        and X.size > 0
        and X.dtype.kind in "biuf"
        and X.dtype.itemsize <= 8
    )
