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

_ROWS_PER_BATCH = 16_384


class Reason(NamedTuple):
    """Why one feature makes one row suspicious.

    Parameters
    ----------
    name : str
        The feature.
    drop : float
        How much lower η would be with the typical value.
    value, typical : float or tuple of float
        What the row has, and what normal rows typically have; one number per column of a group.
    """

    name: str
    drop: float
    value: float | tuple[float, ...]
    typical: float | tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """Which features make rows suspicious, as `QMS22.explain` returns it.

    A *feature* is one column of the rows or one group of columns.

    Parameters
    ----------
    drop : ndarray of shape (n_rows, n_features)
        η of the row minus η of the same row with that one feature at its typical value. Positive:
        the feature makes the row more suspicious. Negative: it makes it less so.
    scores : ndarray of shape (n_rows,)
        η of the rows as they are.
    values : ndarray of shape (n_rows, n_columns)
        The rows.
    typical : ndarray of shape (n_columns,)
        The typical values they were set to.
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
        """Give the features that make a row suspicious, the most influential first.

        Parameters
        ----------
        row : int
            Position of the row.
        k : int, default=10
            How many, at most; features whose drop is not positive are left out.

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
        """Give the positions of the features that `top` names, in its order.

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
    """What the known-normal rows have in their columns, kept without keeping the rows.

    Parameters
    ----------
    medians : ndarray of shape (p,)
        Of an even number of rows the lower one: a value that occurs, and 0 or 1 where all are.
    shares : ndarray of shape (p,)
        Share of ones in columns of zeros and ones; NaN for other columns.
    """

    medians: NDArray[np.float64]
    shares: NDArray[np.float64]

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
        """Give the medians, but the most frequent level where a group is one-hot.

        Of three levels none may reach a half, and then the medians are all 0, a level that does
        not exist. In one-hot columns the shares of ones are the frequencies of the levels, and
        what is missing to 1 is that of a level without a column (all 0).
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


@dataclass(frozen=True)
class Features:
    """Columns put together to features.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns.
    groups : tuple of tuple of int
        Columns of each feature, in the order of their first columns.
    names : tuple of str
        Names of the features.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @classmethod
    def gather(cls, columns: Sequence[str], groups: Groups | None) -> Features:
        """Check the groups; every column in none of them is a feature of its own."""
        named = _name_groups(columns, () if groups is None else groups)
        taken = set(chain.from_iterable(group for _, group in named))
        named += [(column, (i,)) for i, column in enumerate(columns) if i not in taken]
        features = sorted(named, key=lambda feature: min(feature[1]))
        return cls(
            tuple(columns),
            tuple(group for _, group in features),
            tuple(name for name, _ in features),
        )


def score_drops(
    scaled: NDArray[np.float64],
    typical: NDArray[np.float64],
    groups: Sequence[Sequence[int]],
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Score rows, and score them anew with each feature in turn at its typical value.

    Parameters
    ----------
    scaled : ndarray of shape (n, p)
        Rows as the member functions take them.
    typical : ndarray of shape (p,)
        A typical row, scaled alike.
    groups : sequence of sequence of int
        Columns of each feature.
    score : callable
        From rows to η.

    Returns
    -------
    scores : ndarray of shape (n,)
    drop : ndarray of shape (n, n_features)
    """
    scores = np.empty(len(scaled))
    drop = np.empty((len(scaled), len(groups)))
    for rows in gen_batches(len(scaled), _ROWS_PER_BATCH):
        changed = scaled[rows].copy()
        scores[rows] = score(changed)
        for feature, columns in enumerate(map(list, groups)):
            changed[:, columns] = typical[columns]
            drop[rows, feature] = scores[rows] - score(changed)
            changed[:, columns] = scaled[rows, columns]
    return scores, drop


def check_typical(typical: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    """Require one finite number for each column."""
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
    """Check groups of column positions, and name those that have no name by their columns."""
    is_named = isinstance(groups, Mapping)
    entries = groups.items() if isinstance(groups, Mapping) else enumerate(groups)
    owners: dict[int, str] = {}
    named = []
    for label, group in entries:
        name = f"group {label!r}"
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
