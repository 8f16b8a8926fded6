"""Labelled rows without missing values, and the matrix they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Numbers, or texts as Python strings. NaN and None are missing.
Feature: TypeAlias = NDArray[np.float64] | NDArray[np.object_]

_MISSING_TEXTS = ("", "?", "<null>")


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


def read_columns(frame: Any, where: str) -> dict[str, Feature]:
    """Return the columns of a data frame as numbers or texts; `where` names it in messages."""
    return {str(name): _read_column(frame[name], f"column {name!r} of {where}") for name in frame}


def missing_cells(column: Feature) -> NDArray[np.bool_]:
    """Return which cells of a column are missing."""
    # Only NaN differs from itself.
    return np.array([cell is None or cell != cell for cell in column.tolist()], dtype=np.bool_)


def complete_rows(
    columns: Mapping[str, Feature], is_outlier: NDArray[np.bool_], path: str
) -> LabeledRows:
    """Return the rows without missing values; raise ValueError if there are none.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The features.
    is_outlier : ndarray of shape (n,), bool
    path : str
        The name of the file in messages.
    """
    missing = {name: missing_cells(column) for name, column in columns.items()}
    complete = ~np.logical_or.reduce(list(missing.values()))
    if not complete.any():
        worst = max(missing, key=lambda name: missing[name].sum())
        raise ValueError(
            f"all {len(is_outlier)} rows of {path} have missing values ({missing[worst].sum()} of "
            f"them in column {worst!r}); impute them or remove the column"
        )
    kept = tuple(column[complete] for column in columns.values())
    return LabeledRows(kept, is_outlier[complete])


def is_number_column(column: Feature) -> bool:
    """Return whether a column holds numbers, not texts."""
    return column.dtype == np.float64


def _read_column(series: Any, where: str) -> Feature:
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(series.dtype):  # booleans are numbers, too
        numbers: NDArray[np.float64] = series.to_numpy(np.float64, na_value=np.nan)
        infinite = np.flatnonzero(np.isinf(numbers))
        if infinite.size:
            raise ValueError(
                f"{where} has {infinite.size} infinite values (first at row {infinite[0]}); "
                "correct or remove them"
            )
        return numbers
    values = series.astype(object).where(series.notna(), None)
    return np.array([_text(value, where) for value in values], dtype=np.object_)


def _text(value: object, where: str) -> str | None:
    """Return a text, a date or a category without blanks around it; None if it is missing."""
    if value is None:
        return None
    if isinstance(value, date):
        return str(value).removesuffix(":00").removesuffix(" 00:00")
    if not isinstance(value, str | int | float):
        raise ValueError(
            f"{where} holds values that are neither numbers, texts nor dates; convert or remove it"
        )
    text = str(value).strip()
    return None if text.lower() in _MISSING_TEXTS else text


def _parse_numbers(column: Feature) -> Feature:
    if is_number_column(column):
        return column
    try:
        return np.array([_parse_number(text) for text in column])
    except ValueError:
        return column


def _parse_number(text: str) -> float:
    """Return the number that a text writes; raise ValueError if it is not a finite number."""
    number = float(text)
    # Python also reads "1_0", "inf", "nan" and the digits of other scripts.
    if not np.isfinite(number) or "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a finite number")
    return number
