"""Reasons: how far the score of a row drops when one feature is set to a typical value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches

from qms22._runtime.arrays import as_host
from qms22._runtime.validation import check_count, is_count

Groups = Mapping[str, Sequence[int]] | Sequence[Sequence[int]]

# Rows of which a changed copy is in memory at once.
_ROWS_PER_BATCH = 16_384


class Reason(NamedTuple):
    """How much one feature makes one row suspicious."""

    name: str  # of the feature
    drop: float  # how much lower η would be with the typical value
    value: float | tuple[float, ...]  # of the row; one number per column of a group
    typical: float | tuple[float, ...]  # of a typical normal row


@dataclass(frozen=True)
class Explanation:
    """Features that make rows suspicious, as returned by `QMS22.explain`.

    A *feature* is one column of the rows or one group of columns.

    Parameters
    ----------
    drop : ndarray of shape (n_rows, n_features)
        η of the row minus η of the same row with that one feature at its typical value. A feature
        with a positive drop makes the row more suspicious, one with a negative drop less.
    scores : ndarray of shape (n_rows,)
        η of the unchanged rows.
    values : ndarray of shape (n_rows, n_columns)
        The rows.
    typical : ndarray of shape (n_columns,)
        The typical values.
    names : tuple of str
        Names of the features.
    columns : tuple of str
        Names of the columns.
    groups : tuple of tuple of int
        Columns of each feature.
    """

    drop: NDArray[np.float64]
    scores: NDArray[np.float64]
    values: NDArray[np.float64]
    typical: NDArray[np.float64]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]

    def top(self, row: int, k: int = 10) -> list[Reason]:
        """Return the features that make a row suspicious, the most influential first.

        Parameters
        ----------
        row : int
            Position of the row.
        k : int, default=10
            How many, at most; only features with a positive drop.

        Returns
        -------
        list of Reason
            Tuples (name, drop, value, typical); at ties the earlier feature first.
        """
        return [
            Reason(
                self.names[feature],
                float(self.drop[row, feature]),
                _of_feature(self.values[row], self.groups[feature]),
                _of_feature(self.typical, self.groups[feature]),
            )
            for feature in self.order(row, k)
        ]

    def order(self, row: int, k: int = 10) -> list[int]:
        """Return the positions of the features of `top`, in its order.

        Parameters
        ----------
        row : int
            Position of the row.
        k : int, default=10
            How many, at most.

        Returns
        -------
        list of int
        """
        check_count("k", k, least=0)
        if not (is_count(row) and 0 <= row < len(self.drop)):
            raise ValueError(
                f"row must be a position from 0 to {len(self.drop) - 1}, as {len(self.drop)} rows "
                f"were explained; got {row!r}"
            )
        drops = self.drop[row]
        order = np.argsort(-drops, kind="stable")[:k].tolist()
        return [feature for feature in order if drops[feature] > 0]


@dataclass(frozen=True)
class TypicalValues:
    """Summaries of the columns of the known-normal rows."""

    medians: NDArray[np.float64]  # the lower one of two, so that it is a value that occurs
    shares: NDArray[np.float64]  # of ones in columns of zeros and ones; NaN for other columns

    @classmethod
    def learn(cls, normal: NDArray[np.float64]) -> TypicalValues:
        """Learn the typical values of the columns of known-normal rows."""
        middle = (len(normal) - 1) // 2
        # Column by column: a sorted copy of all rows would double the memory of a fit.
        medians = np.array([float(np.partition(column, middle)[middle]) for column in normal.T])
        is_binary = [bool(((column == 0.0) | (column == 1.0)).all()) for column in normal.T]
        ones = as_host(np.count_nonzero(normal, axis=0))
        return cls(medians, np.where(is_binary, ones / len(normal), np.nan))

    def row(self, groups: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return the medians, with the most frequent level in groups of one-hot columns.

        If no level has half of the rows, all medians are 0, which is no level. In one-hot columns
        the shares of ones are the frequencies of the levels; 1 minus their sum is the frequency
        of a level without a column (all 0).
        """
        typical = self.medians.copy()
        for columns in map(list, groups):
            shares = self.shares[columns]
            if len(columns) > 1 and shares.sum() <= 1 + 1e-9:  # NaN: not one-hot
                typical[columns] = 0.0
                most = int(shares.argmax())
                if shares[most] >= 1 - shares.sum():
                    typical[columns[most]] = 1.0
        return typical


def group_columns(groups: Groups | None, n_columns: int) -> tuple[tuple[int, ...], ...]:
    """Check groups of columns, and return the columns of each."""
    named = _name_groups([f"x{i}" for i in range(n_columns)], () if groups is None else groups)
    return tuple(columns for _, columns in named)


def explain_rows(
    rows: NDArray[np.float64],
    columns: Sequence[str],
    groups: Groups | None,
    typical: TypicalValues | ArrayLike,
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Explanation:
    """Score rows, and score them again with each feature in turn at its typical value.

    `columns` are the names of the columns; a column in no group is a feature of its own.
    """
    features = _name_groups(columns, () if groups is None else groups)
    taken = set(chain.from_iterable(group for _, group in features))
    features += [(column, (i,)) for i, column in enumerate(columns) if i not in taken]
    features.sort(key=lambda feature: min(feature[1]))
    positions = tuple(group for _, group in features)
    if isinstance(typical, TypicalValues):
        usual = typical.row(positions)
    else:
        usual = _check_typical(typical, len(columns))
    scores = np.empty(len(rows))
    drop = np.empty((len(rows), len(features)))
    for part in gen_batches(len(rows), _ROWS_PER_BATCH):
        changed = rows[part].copy()
        scores[part] = score(changed)
        for feature, group in enumerate(map(list, positions)):
            changed[:, group] = usual[group]
            drop[part, feature] = scores[part] - score(changed)
            changed[:, group] = rows[part, group]
    names = tuple(name for name, _ in features)
    return Explanation(drop, scores, rows, usual, names, tuple(columns), positions)


def _check_typical(typical: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    try:
        row = np.array(typical, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"typical must be a row of numbers ({error})") from error
    if row.shape != (n_columns,):
        raise ValueError(
            f"typical must be one row of {n_columns} values, one per column; got shape {row.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(row))
    if bad.size:
        raise ValueError(f"typical holds {row[bad[0]]} at column {bad[0]}; it must be finite")
    return row


def _name_groups(columns: Sequence[str], groups: Groups) -> list[tuple[str, tuple[int, ...]]]:
    """Check groups of column positions; name those without a name by their columns."""
    is_named = isinstance(groups, Mapping)
    entries = groups.items() if isinstance(groups, Mapping) else enumerate(groups)
    owners: dict[int, str] = {}
    named = []
    for label, group in entries:
        name = f"group {label!r}"
        if not hasattr(group, "__len__"):
            raise ValueError(f"{name} of groups is {group!r}; it must be a sequence of columns")
        if len(group) == 0:
            raise ValueError(f"{name} of groups has no columns; leave it out")
        for column in group:
            if not (is_count(column) and 0 <= column < len(columns)):
                raise ValueError(
                    f"{name} of groups holds {column!r}, which is not a column position from 0 to "
                    f"{len(columns) - 1}"
                )
            if int(column) in owners:
                raise ValueError(
                    f"column {column} is twice in groups, in {owners[int(column)]} and in {name}; "
                    "a column belongs to one feature"
                )
            owners[int(column)] = name
        positions = tuple(map(int, group))
        label = str(label) if is_named else ", ".join(columns[i] for i in positions)
        named.append((label, positions))
    return named


def _of_feature(row: NDArray[np.float64], columns: tuple[int, ...]) -> float | tuple[float, ...]:
    if len(columns) == 1:
        return float(row[columns[0]])
    return tuple(row[list(columns)].tolist())
