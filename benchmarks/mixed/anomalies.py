"""Anomalies of a dozen kinds: functions that change normal rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

# Changes a table of normal rows, and may draw random numbers.
Change: TypeAlias = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


class Injected(NamedTuple):
    """A batch with anomalies.

    Parameters
    ----------
    batch : DataFrame
    is_anomaly : ndarray of bool of shape (n_rows,)
    is_changed : ndarray of bool of shape (n_rows, n_columns)
        The cells of anomalies that are not what they were.
    """

    batch: pd.DataFrame
    is_anomaly: np.ndarray
    is_changed: np.ndarray


# The kinds that every table has.
KINDS = (
    "spike",
    "wrong sign",
    "impossible value",
    "broken product",
    "swapped columns",
    "clustered fraud",
    "new level",
    "shifted subgroup",
    "odd hours",
    "missing cells",
    "repeated rows",
    "broken constant",
)


def spike(**sizes: float) -> Change:
    """Add a number of about the given size to one of the columns, another in each row."""

    def change(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        chosen = rng.choice(list(sizes), len(rows))
        for column, size in sizes.items():
            added = size * rng.uniform(0.7, 1.3, len(rows))
            # A missing value becomes the spike itself.
            spiked = rows[column].fillna(0.0) + added
            rows[column] = rows[column].where(chosen != column, spiked)
        return rows

    return change


def wrong_sign(column: str) -> Change:
    """Change the sign of a column."""
    return lambda rows, rng: rows.assign(**{column: -rows[column]})


def impossible(column: str, values: Sequence[float]) -> Change:
    """Replace a column by values that cannot be, such as 0 or 999."""
    return lambda rows, rng: rows.assign(**{column: rng.choice(values, len(rows))})


def broken_product(column: str) -> Change:
    """Multiply a column that follows from others by a factor, up or down."""

    def change(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        factors = rng.uniform(1.5, 2.5, len(rows)) ** rng.choice([-1, 1], len(rows))
        return rows.assign(**{column: rows[column] * factors})

    return change


def swapped(first: str, second: str) -> Change:
    """Exchange the values of two columns."""
    return lambda rows, rng: rows.assign(**{first: rows[second], second: rows[first]})


def clustered(**values: float | str) -> Change:
    """Set all rows to the same few values; numbers differ by 2 %."""

    def change(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        for column, value in values.items():
            if not isinstance(value, str):
                rows[column] = value * rng.normal(1, 0.02, len(rows))
            else:
                rows[column] = value
        return rows

    return change


def new_level(column: str, level: str) -> Change:
    """Set a category to a level that normal rows never have."""
    return lambda rows, rng: rows.assign(**{column: level})


def shifted(column: str, by: float, where: str, level: str) -> Change:
    """Shift a number in one subgroup, where its values are no longer usual."""

    def change(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        return rows.assign(**{where: level, column: rows[column] + by})

    return change


def odd_hours(column: str, hours: Sequence[int]) -> Change:
    """Move a time to hours of the same day in which nothing happens."""

    def change(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        minutes = 60 * rng.choice(hours, len(rows)) + rng.integers(60, size=len(rows))
        days = rows[column].dt.normalize()
        return rows.assign(**{column: days + pd.to_timedelta(minutes, unit="min")})

    return change


def missing(*columns: str) -> Change:
    """Remove the values of some columns."""
    return lambda rows, rng: rows.assign(**dict.fromkeys(columns, None))


def repeated() -> Change:
    """Repeat the first row."""
    return lambda rows, rng: rows.iloc[np.zeros(len(rows), dtype=int)]


def inject(
    batch: pd.DataFrame, change: Change, n_changed: int, rng: np.random.Generator
) -> Injected:
    """Change the last rows of a batch, then shuffle it."""
    normal, rows = batch.iloc[:-n_changed], batch.iloc[-n_changed:].reset_index(drop=True)
    changed = change(rows.copy(), rng).astype(batch.dtypes).reset_index(drop=True)
    is_same = (changed == rows) | (changed.isna() & rows.isna())
    is_changed = np.zeros(batch.shape, dtype=bool)
    is_changed[len(normal) :] = ~is_same.to_numpy()
    order = rng.permutation(len(batch))
    mixed = pd.concat([normal, changed], ignore_index=True).iloc[order].reset_index(drop=True)
    return Injected(mixed, order >= len(normal), is_changed[order])
