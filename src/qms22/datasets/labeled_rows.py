"""Labelled rows without missing values, and the matrix they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells
from qms22.tables.texts.words import parse_number

# Numbers, or texts as Python strings.
Feature: TypeAlias = NDArray[np.float64] | NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Labelled rows without missing values.

    Parameters
    ----------
    columns : tuple of ndarray
        Each of float64 numbers, or of texts as objects.
    is_outlier : ndarray of shape (n,), bool
    """

    columns: tuple[Feature, ...]
    is_outlier: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.is_outlier)

    def followed_by(self, other: LabeledRows) -> LabeledRows:
        """Return these rows, then those of another part of the same data."""
        pairs: Iterator[tuple[Any, Any]] = zip(self.columns, other.columns, strict=True)
        return LabeledRows(
            tuple(np.concatenate(pair) for pair in pairs),
            np.concatenate([self.is_outlier, other.is_outlier]),
        )

    def parse_numbers(self) -> LabeledRows:
        """Return the rows with text columns that hold only numbers as numbers.

        A nominal column such as {0, 1} is a number this way, as in the paper. Join the parts of a
        fold first: a part may lack the one level that is not a number.
        """
        return replace(self, columns=tuple(_parse_numbers(column) for column in self.columns))

    def encode(self, features: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return a matrix: a number column unchanged, a text column as one 0/1 column per level.

        Parameters
        ----------
        features : sequence of str
            Names of the columns.

        Returns
        -------
        names : tuple of str
            Names of the columns of the matrix, such as "Sex=F" for a level.
        matrix : ndarray of shape (n, len(names))
            The levels of a column in sorted order.
        """
        names: list[str] = []
        blocks: list[NDArray[np.float64]] = []
        for feature, column in zip(features, self.columns, strict=True):
            if is_number_column(column):
                names.append(feature)
                blocks.append(column[:, np.newaxis].astype(np.float64))
                continue
            levels, codes = np.unique(column, return_inverse=True)
            names += [f"{feature}={level}" for level in levels]
            blocks.append((codes[:, np.newaxis] == np.arange(len(levels))).astype(np.float64))
        return tuple(names), np.hstack(blocks)


def complete_rows(
    columns: Sequence[Cells], is_outlier: NDArray[np.bool_], path: str
) -> LabeledRows:
    """Return the rows without missing values; raise ValueError if there are none.

    Parameters
    ----------
    columns : sequence of Cells
        The features.
    is_outlier : ndarray of shape (n,), bool
    path : str
        The name of the file in messages.
    """
    n_missing = [int(cells.missing.sum()) for cells in columns]
    complete = ~np.logical_or.reduce([cells.missing for cells in columns])
    if not complete.any():
        worst = int(np.argmax(n_missing))
        raise ValueError(
            f"all {len(is_outlier)} rows of {path} have missing values ({n_missing[worst]} of them "
            f"in column {columns[worst].name!r}); impute them or remove the column"
        )
    return LabeledRows(tuple(cells.to_array()[complete] for cells in columns), is_outlier[complete])


def is_number_column(column: Feature) -> bool:
    """Return whether a column holds numbers, not texts."""
    return column.dtype == np.float64


def _parse_numbers(column: Feature) -> Feature:
    if is_number_column(column):
        return column
    try:
        return np.array([parse_number(text) for text in column])
    except ValueError:
        return column
