"""Columns as a file holds them, and the matrix they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Numbers, or text as Python strings. NaN and None stand for missing values.
Column: TypeAlias = NDArray[np.float64] | NDArray[np.object_]

# How files write that a value is missing, in lower case.
MISSING = frozenset({"", "?", "<null>"})


@dataclass(frozen=True, eq=False)
class Table:
    """What a reader takes from a file: named columns, one of which is the label.

    Parameters
    ----------
    path : str
        The file, for messages.
    names : tuple of str
    columns : tuple of Column
        Numbers where the file says so, text otherwise.
    label : str
        Name of the label column.
    lines : sequence of int or None
        The line of each row in a text file, from 1.
    """

    path: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    label: str
    lines: Sequence[int] | None = None

    def place(self, row: int) -> str:
        """Say where a row stands, as in "glass1.dat, line 17"."""
        return f"{self.path}, " + (
            f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        )

    @property
    def labels(self) -> Column:
        """The label column."""
        return self.columns[self.names.index(self.label)]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the other columns."""
        at = self.names.index(self.label)
        return self.names[:at] + self.names[at + 1 :]

    def rows(self, is_outlier: NDArray[np.bool_]) -> Rows:
        """Give the rows without missing values; at least one has to remain."""
        at = self.names.index(self.label)
        columns = self.columns[:at] + self.columns[at + 1 :]
        n_missing = [int(is_missing(column).sum()) for column in columns]
        rows = Rows(columns, is_outlier)
        if any(n_missing):
            complete = ~np.logical_or.reduce([is_missing(column) for column in columns])
            rows = rows.take(np.flatnonzero(complete))
        if not len(rows):
            worst = int(np.argmax(n_missing))
            raise ValueError(
                f"all {len(is_outlier)} rows of {self.path} have missing values "
                f"({n_missing[worst]} of them in column {self.features[worst]!r}); impute them or "
                "remove the column"
            )
        return rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Labeled rows without missing values.

    Parameters
    ----------
    columns : tuple of Column
    is_outlier : ndarray of shape (n,), bool
    """

    columns: tuple[Column, ...]
    is_outlier: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.is_outlier)

    def take(self, positions: NDArray[np.intp]) -> Rows:
        """Give the rows at these positions."""
        return self._each(lambda column: column[positions], self.is_outlier[positions])

    def followed_by(self, other: Rows) -> Rows:
        """Give these rows, then those of another part of the same data."""
        pairs: Iterator[tuple[Any, Any]] = zip(self.columns, other.columns, strict=True)
        return Rows(
            tuple(np.concatenate(pair) for pair in pairs),
            np.concatenate([self.is_outlier, other.is_outlier]),
        )

    def settle(self) -> Rows:
        """Turn text columns that hold nothing but numbers into numbers.

        A nominal column such as {0, 1} stays a number this way, as in the paper. The parts of a
        fold have to be joined before: a part may happen to lack the one level that is no number.
        """
        return self._each(_settle, self.is_outlier)

    def _each(self, change: Callable[[Any], Column], is_outlier: NDArray[np.bool_]) -> Rows:
        return Rows(tuple(change(column) for column in self.columns), is_outlier)


def is_missing(column: Column) -> NDArray[np.bool_]:
    """Tell which values of a column are missing."""
    if is_number_column(column):
        return np.isnan(column)
    return np.equal(column, None).astype(np.bool_)  # type: ignore[call-overload,no-any-return]


def is_number_column(column: Column) -> bool:
    """Whether a column holds numbers, not text."""
    return column.dtype == np.float64


def text_column(texts: Sequence[str]) -> NDArray[np.object_]:
    """Make a column of texts without the blanks around them."""
    column = np.empty(len(texts), dtype=np.object_)
    stripped = (text.strip() for text in texts)
    column[:] = [None if text.lower() in MISSING else text for text in stripped]
    return column


def encode(
    features: tuple[str, ...], columns: tuple[Column, ...]
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Make a matrix: a number column as it is, a text column as one 0/1 column per level.

    Parameters
    ----------
    features : tuple of str
    columns : tuple of Column
        Settled columns without missing values.

    Returns
    -------
    names : tuple of str
        One for each column of the matrix; "Sex=F" for a level.
    matrix : ndarray of shape (n, len(names))
        The levels of a column in sorted order.
    """
    names: list[str] = []
    blocks: list[NDArray[np.float64]] = []
    for feature, column in zip(features, columns, strict=True):
        if is_number_column(column):
            names.append(feature)
            blocks.append(column[:, np.newaxis].astype(np.float64))
            continue
        levels, codes = np.unique(column, return_inverse=True)
        names += [f"{feature}={level}" for level in levels]
        blocks.append((codes[:, np.newaxis] == np.arange(len(levels))).astype(np.float64))
    return tuple(names), np.hstack(blocks)


def _settle(column: Column) -> Column:
    if is_number_column(column):
        return column
    try:
        numbers = np.array([float(text) for text in column])
    except ValueError:
        return column
    # Python reads "1_0" and "inf" as numbers; whoever writes them as levels means text.
    if not np.isfinite(numbers).all() or any("_" in text for text in column):
        return column
    return numbers
