"""A business and the errors that are planted in its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

# Kinds of errors in one batch.
N_KINDS = 14
FAMILIES = ("time", "kind", "text", "together", "rule", "value")

Row: TypeAlias = pd.Series
# New cells of one row.
Change: TypeAlias = Callable[[Row, np.random.Generator], dict[str, object]]
Where: TypeAlias = Callable[[pd.DataFrame], pd.Series]
# New cells by row, in rows that are free. A row without new cells takes part, and is not an error.
Spread: TypeAlias = Callable[
    [pd.DataFrame, np.ndarray, np.random.Generator], dict[int, dict[str, object]]
]


@dataclass(frozen=True)
class Error:
    """One kind of error: its family, a name, and how it changes a batch."""

    family: str
    kind: str
    spread: Spread


@dataclass(frozen=True)
class Business:
    """A table, and the errors to plant.

    Parameters
    ----------
    name : str
    draw : callable
        Returns the rows of a seed and period: 0 is the normal period, 1 the month after.
    errors : sequence of Error
    formats : mapping of str to str
        How numbers and times are written, as of `format`.
    block : callable, optional
        Returns a key for each row; rows with the same key go to the same table. Without it, rows
        are split one by one.
    """

    name: str
    draw: Callable[[int, int], pd.DataFrame]
    errors: Sequence[Error]
    formats: Mapping[str, str] = field(default_factory=dict)
    block: Callable[[pd.DataFrame], pd.Series] | None = None

    def normal(self, seed: int) -> pd.DataFrame:
        """Return known-normal rows."""
        rows = self.draw(seed, 0)
        return rows[~self._is_held_out(rows, seed)].reset_index(drop=True)

    def batch(self, seed: int, period: int) -> pd.DataFrame:
        """Return rows without errors: of a later period, or for 0 others of the normal period."""
        rows = self.draw(seed, period)
        if not period:
            rows = rows[self._is_held_out(rows, seed)]
        return rows.reset_index(drop=True)

    def written(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return all cells as texts."""
        return pd.DataFrame(
            {name: [_write(x, self.formats.get(name, "")) for x in rows[name]] for name in rows}
        )

    def _is_held_out(self, rows: pd.DataFrame, seed: int) -> np.ndarray:
        keys = pd.factorize(self.block(rows) if self.block else rows.index)[0]
        n_keys = keys.max() + 1
        chosen = np.random.default_rng([seed, 998]).permutation(n_keys)[: max(1, n_keys // 4)]
        return np.isin(keys, chosen)


@dataclass(frozen=True)
class Planted:
    """A batch with errors, as texts.

    Parameters
    ----------
    batch, before : DataFrame
    errors : dict of int to Error
        By row.
    bystanders : frozenset of int
        Rows that an error involves and did not change, such as the first of two equal transfers.
    """

    batch: pd.DataFrame
    before: pd.DataFrame
    errors: dict[int, Error]
    bystanders: frozenset[int]

    def changes(self, row: int) -> str:
        """Return the changed cells of a row, before and after."""
        old, new = self.before.loc[row], self.batch.loc[row]
        return "; ".join(
            f"{name}: {old[name] or '(empty)'} → {new[name] or '(empty)'}"
            for name in old.index
            if old[name] != new[name]
        )


def plant(business: Business, rows: pd.DataFrame, seed: int, period: int) -> Planted:
    """Plant errors of a business in the rows of a batch: most kinds, others in another batch."""
    rng = np.random.default_rng([seed, period, 997])
    kinds = [business.errors[i] for i in rng.permutation(len(business.errors))[:N_KINDS]]
    changed, is_free = rows.astype(object), np.ones(len(rows), dtype=bool)
    owners: dict[int, Error] = {}
    # The errors with many rows need room.
    for error in sorted(kinds, key=lambda error: error.family != "together"):
        for row, cells in error.spread(rows, is_free, rng).items():
            is_free[row] = False
            owners[row] = error
            for name, value in cells.items():
                changed.at[row, name] = value
    before, after = business.written(rows), business.written(changed)
    differs = (before != after).any(axis=1).to_numpy()
    errors = {row: error for row, error in sorted(owners.items()) if differs[row]}
    return Planted(after, before, errors, frozenset(owners) - frozenset(errors))


def each(family: str, kind: str, change: Change, where: Where | None = None, n: int = 3) -> Error:
    """Return an error that changes single rows: n of those, or 2."""

    def spread(
        rows: pd.DataFrame, is_free: np.ndarray, rng: np.random.Generator
    ) -> dict[int, dict[str, object]]:
        candidates = np.flatnonzero(_fits(rows, is_free, where))
        chosen = rng.permutation(candidates)[: rng.integers(2, n + 1)]
        return {int(row): change(rows.loc[row], rng) for row in chosen}

    return Error(family, kind, spread)


def duplicate(kind: str, keep: Sequence[str], where: Where | None = None) -> Error:
    """Return an error that writes rows a second time; cells of `keep` are another row's."""

    def spread(
        rows: pd.DataFrame, is_free: np.ndarray, rng: np.random.Generator
    ) -> dict[int, dict[str, object]]:
        fits = _fits(rows, is_free, where) & np.append(is_free[1:], False)
        changes: dict[int, dict[str, object]] = {}
        for row in map(int, rng.permutation(np.flatnonzero(fits))):
            if not {row, row + 1} & set(changes):
                changes[row] = {}
                changes[row + 1] = rows.loc[row].drop(list(keep)).to_dict()
            if len(changes) == 6:
                break
        return changes

    return Error("together", kind, spread)


def stuck(
    kind: str, by: str, columns: Sequence[str], n: int = 8, where: Where | None = None
) -> Error:
    """Return an error that repeats values in a run of rows of one entity."""

    def spread(
        rows: pd.DataFrame, is_free: np.ndarray, rng: np.random.Generator
    ) -> dict[int, dict[str, object]]:
        fits = _fits(rows, is_free, where) & filled(*columns)(rows).to_numpy()
        counts = rows.loc[fits, by].value_counts()
        entity = rng.choice(sorted(counts.index[counts >= n]))
        own = rows.index[fits & (rows[by] == entity)]
        begin = rng.integers(len(own) - n + 1)
        value = rows.loc[own[begin], list(columns)].to_dict()
        run = own[begin : begin + n]
        return {int(row): value if i else {} for i, row in enumerate(run)}

    return Error("together", kind, spread)


def gathered(
    kind: str,
    columns: Sequence[str],
    cells: Change,
    n: int = 7,
    time: str = "",
    where: Where | None = None,
) -> Error:
    """Return an error that gives rows close in the table to one entity.

    Parameters
    ----------
    kind : str
    columns : sequence of str
        The entity's cells, which the first row gives to the others.
    cells : callable
        Further new cells of a row.
    n : int
    time : str
        If given, rows follow the first one's time in this column within 25 minutes.
    where : callable, optional
        Which rows it can be.
    """

    def spread(
        rows: pd.DataFrame, is_free: np.ndarray, rng: np.random.Generator
    ) -> dict[int, dict[str, object]]:
        candidates = np.flatnonzero(_fits(rows, is_free, where))
        begin = rng.integers(len(candidates) - n + 1)
        chosen = candidates[begin : begin + n]
        first = rows.loc[chosen[0]]
        changes = {}
        for row in map(int, chosen):
            changes[row] = {**first[list(columns)], **cells(rows.loc[row], rng)}
            if time:
                wait = pd.Timedelta(seconds=float(rng.uniform(0, 1500)))
                changes[row][time] = (first[time] + wait).floor("s")
        return changes

    return Error("together", kind, spread)


def nothing(row: Row, rng: np.random.Generator) -> dict[str, object]:
    return {}


def times(column: str, *factors: float, decimals: int = 2) -> Change:
    """Multiply a number by one of the factors."""
    return lambda row, rng: {column: round(row[column] * float(rng.choice(factors)), decimals)}


def put(column: str, *values: object) -> Change:
    """Replace a cell by one of the values."""
    return lambda row, rng: {column: values[rng.integers(len(values))]}


def between(column: str, low: float, high: float, decimals: int = 2) -> Change:
    """Replace a number by one of a range."""
    return lambda row, rng: {column: round(float(rng.uniform(low, high)), decimals)}


def add(column: str, low: float, high: float, decimals: int = 2) -> Change:
    return lambda row, rng: {column: round(row[column] + float(rng.uniform(low, high)), decimals)}


def negative(column: str) -> Change:
    return lambda row, rng: {column: -row[column]}


def empty(column: str) -> Change:
    return put(column, None)


def swap(first: str, second: str) -> Change:
    return lambda row, rng: {first: row[second], second: row[first]}


def days_after(column: str, other: str, low: int, high: int) -> Change:
    """Set a date to so many days after another; negative numbers mean before."""

    def change(row: Row, rng: np.random.Generator) -> dict[str, object]:
        return {column: row[other] + pd.Timedelta(days=int(rng.integers(low, high + 1)))}

    return change


def in_year(column: str, *years: int) -> Change:
    """Set a date to another year."""

    def change(row: Row, rng: np.random.Generator) -> dict[str, object]:
        return {
            column: row[column].replace(year=int(rng.choice(years)), day=min(row[column].day, 28))
        }

    return change


def at_hour(column: str, *hours: int) -> Change:
    return lambda row, rng: {column: row[column].replace(hour=int(rng.choice(hours)))}


def text(column: str, edit: Callable[[str], str]) -> Change:
    """Edit a cell as a text."""
    return lambda row, rng: {column: edit(str(row[column]))}


def typo(column: str) -> Change:
    """Drop, double or exchange letters inside a word."""

    def change(row: Row, rng: np.random.Generator) -> dict[str, object]:
        word = str(row[column])
        edits = set()
        for i in range(1, len(word) - 1):
            edits |= {word[:i] + word[i + 1 :], word[:i] + word[i] + word[i:]}
            edits.add(word[:i] + word[i + 1] + word[i] + word[i + 2 :])
        options = sorted(edits - {word})
        return {column: options[rng.integers(len(options))]}

    return change


def wrong_digit(column: str, first: int = 0) -> Change:
    """Change one digit, at the given position or later."""

    def change(row: Row, rng: np.random.Generator) -> dict[str, object]:
        cell = str(row[column])
        place = int(rng.choice([i for i, c in enumerate(cell) if c.isdigit() and i >= first]))
        digit = str((int(cell[place]) + rng.integers(1, 10)) % 10)
        return {column: cell[:place] + digit + cell[place + 1 :]}

    return change


def mojibake(column: str) -> Change:
    """Read the UTF-8 of a cell as Windows does."""
    return text(column, lambda cell: cell.encode().decode("cp1252", errors="replace"))


def accented(column: str) -> Where:
    """Return rows that `mojibake` changes."""
    return lambda rows: ~rows[column].fillna("").astype(str).map(str.isascii)


def both(*changes: Change) -> Change:
    """Make several changes of one row."""

    def change(row: Row, rng: np.random.Generator) -> dict[str, object]:
        return {name: value for part in changes for name, value in part(row, rng).items()}

    return change


def equals(column: str, *values: object) -> Where:
    return lambda rows: rows[column].isin(values)


def filled(*columns: str) -> Where:
    return lambda rows: rows[list(columns)].notna().all(axis=1)


def _write(value: Any, spec: str) -> str:
    if value is None or value is pd.NaT or value != value:
        return ""
    return value if isinstance(value, str) else format(value, spec)


def _fits(rows: pd.DataFrame, is_free: np.ndarray, where: Where | None) -> np.ndarray:
    return is_free & (where(rows).to_numpy(dtype=bool) if where else True)
