"""Rows that are there more than once, or once more but for one cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Check, Shower, count_text, share_of_rows, shown_cells
from qms22.checks.surprise import surprise_of_few
from qms22.tables.columns.cells import Cells, Columns, count_rows

# With a larger share of normal rows that are there more than once, repetition is usual.
_MOST_REPEATED = 0.01
# Of more normal rows only whole copies are looked for: it takes a number for each cell.
_MOST_CELLS = 500_000
# Fewer rows may have keys of their own by chance.
_LEAST_KEYS = 100
# Rows of fewer columns agree by chance in all but one.
_LEAST_COLUMNS = 4

# Columns that say how often a row is there, in which column alone it differs from another row (-1
# for none), and among how many rows; no column of a table has such a name.
COPIES = "\0copies"
DIFFERENT = "\0different"
N_ROWS = "\0rows"


@dataclass(frozen=True, eq=False)
class CopyCheck(Check):
    """A row that is there twice, also among the normal rows, or twice but for one cell.

    Where many normal rows are there more than once, as in narrow tables, repetition says nothing.

    Parameters
    ----------
    columns : tuple of str
        Empty: no cell is to blame.
    compared : tuple of str
        The columns in which rows agree.
    n_normal : int
    n_copied : int
        Normal rows that are there more than once.
    n_different : ndarray of int
        Normal rows that differ from another one in each column alone.
    hashes : ndarray of int, ascending
        Of whole normal rows.
    without : tuple of ndarray of int, ascending
        Of normal rows without each column; empty if they are many.
    """

    compared: tuple[str, ...]
    n_normal: int
    n_copied: int
    n_different: NDArray[np.intp]
    hashes: NDArray[np.uint64]
    without: tuple[NDArray[np.uint64], ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return self.compared

    @classmethod
    def learn(cls, rows: Columns, compared: Sequence[str]) -> CopyCheck | None:
        """Learn from the known-normal rows with their copies; None if many are repeated."""
        copies, different = rows[COPIES].values, rows[DIFFERENT].values
        n_normal, n_copied = len(copies), int(np.count_nonzero(copies > 1))
        if n_copied > _MOST_REPEATED * n_normal:
            return None
        n_different = np.bincount(
            different[different >= 0].astype(np.intp), minlength=len(compared)
        )
        of_cells = _cell_terms(rows, compared)
        whole = of_cells.sum(axis=0)
        without: tuple[NDArray[np.uint64], ...] = ()
        if of_cells.size <= _MOST_CELLS and len(compared) >= _LEAST_COLUMNS:
            without = tuple(np.sort(whole - each) for each in of_cells)
        return cls((), tuple(compared), n_normal, n_copied, n_different, np.sort(whole), without)

    def _shares(self, n_rows: float, *, own: bool) -> tuple[float, NDArray[np.float64]]:
        """Return the shares of rows that are copies, or differ in each column, by chance."""
        # Of a row of the batch there may be a copy in both tables.
        factor = 1.0 if own else 1.0 + n_rows / self.n_normal
        # A normal row and its copy are one case.
        others = max(self.n_copied - 2 * own, 0), np.maximum(self.n_different - 2 * own, 0)
        share = factor * (1.0 + others[0]) / (self.n_normal + 1.0)
        of_columns = factor * (1.0 + others[1]) / (self.n_normal + 1.0)
        return min(share, 1.0), np.minimum(of_columns, 1.0)

    def _found(self, rows: Columns, *, own: bool) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return which rows are copies, and in which column alone others differ; -1 for none."""
        copies, different = rows[COPIES].values > 1, rows[DIFFERENT].values.astype(np.intp)
        if own:
            return copies, np.where(copies, -1, different)
        of_cells = _cell_terms(rows, self.compared)
        whole = of_cells.sum(axis=0)
        copies = copies | _are_in(whole, self.hashes)
        for at, known in enumerate(self.without):
            is_new = different < 0
            different[is_new & _are_in(whole - of_cells[at], known)] = at
        return copies, np.where(copies, -1, different)

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd it is that rows are there again."""
        n_rows = float(rows[N_ROWS].values[0]) if len(rows[N_ROWS].values) else 0.0
        copies, different = self._found(rows, own=own)
        share, of_columns = self._shares(n_rows, own=own)
        # As a level that no normal row has, where none is repeated.
        bonus = np.log(self.n_normal) if self.n_copied - 2 * own <= 0 else 0.0
        surprises = np.where(copies, -np.log(share) + bonus, 0.0)
        usual = self.n_different > _MOST_REPEATED * self.n_normal
        of_columns = np.append(np.where(usual, 0.0, -np.log(of_columns)), 0.0)
        return np.maximum(surprises, of_columns[different])

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return nothing: no cell is to blame."""
        return [""] * count_rows(rows)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Say how often the rows are there."""
        copies, different = self._found(rows, own=False)
        often = share_of_rows(self.n_copied, self.n_normal)
        for at, (is_copy, column, count) in enumerate(
            zip(copies.tolist(), different.tolist(), rows[COPIES].values.tolist(), strict=True)
        ):
            if count > 1:
                times = count_text(int(count))
                yield f"the same row occurs {times} times; {often} are repeated"
            elif is_copy:
                yield f"a normal row is the same; {often} are repeated"
            else:
                name = self.compared[column]
                cell = shown_cells(rows[name].take(slice(at, at + 1)), show)[0]
                others = share_of_rows(int(self.n_different[column]), self.n_normal)
                yield f"the same as another row but for {name} ({cell}), as {others} are"


def key_name(name: str) -> str:
    """Return the name of a column of how often each key is there; no column has such a name."""
    return f"\0key\0{name}"


@dataclass(frozen=True)
class KeyCheck(Check):
    """A key that several rows of a table have, where each normal row has its own.

    Parameters
    ----------
    columns : tuple of str
    n_normal, n_repeated : int
        Normal rows, and those of them whose key another one has.
    """

    n_normal: int
    n_repeated: int

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return (*self.columns, key_name(self.columns[0]), COPIES, DIFFERENT)

    @classmethod
    def learn(cls, rows: Columns, name: str) -> KeyCheck | None:
        """Learn from the known-normal rows; None if many keys are repeated."""
        counts = rows[key_name(name)].values
        n_normal, n_repeated = int(np.count_nonzero(counts)), int(np.count_nonzero(counts > 1))
        is_key = n_normal >= _LEAST_KEYS and n_repeated <= _MOST_REPEATED * n_normal
        return cls((name,), n_normal, n_repeated) if is_key else None

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd it is that a key is there again."""
        # A normal row and that with its key are one case.
        surprise = surprise_of_few(max(self.n_repeated - 2 * own, 0), self.n_normal)
        # Of a row that is there again, or but for a cell, that says more.
        is_copy = (rows[COPIES].values > 1) | (rows[DIFFERENT].values >= 0)
        is_repeated = (rows[key_name(self.columns[0])].values > 1) & ~is_copy
        return np.where(is_repeated, surprise, 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Say how often the keys are there."""
        often = share_of_rows(self.n_repeated, self.n_normal)
        for count in rows[key_name(self.columns[0])].values.tolist():
            yield f" is there {count_text(int(count))} times; that of {often} is there again"


def count_keys(keys: Columns, *, is_part: bool) -> dict[str, Cells]:
    """Return how often the key of each row is there, 0 without one; 1 in a part of a table."""
    found = {}
    for name, cells in keys.items():
        counts = np.ones(len(cells.values)) if is_part else _count_equal(cell_hashes(cells))
        values = np.where(cells.has_value, counts, 0.0)
        found[key_name(name)] = Cells(key_name(name), "number", values)
    return found


def count_copies(
    rows: Columns, compared: Sequence[str], *, is_part: bool = False
) -> dict[str, Cells]:
    """Return how often rows are there, and in which column alone they differ from others.

    Parameters
    ----------
    rows : Columns
    compared : sequence of str
        The columns that are compared.
    is_part : bool
        Whether these are rows picked from a table: nobody knows how often they are in it.
    """
    present = [name for name in compared if name in rows]
    n_rows = len(next(iter(rows.values())).values) if rows else 0
    copies, different = np.ones(n_rows), np.full(n_rows, -1.0)
    if not is_part and present:
        of_cells = _cell_terms(rows, present)
        whole = of_cells.sum(axis=0)
        copies = _count_equal(whole).astype(np.float64)
        if of_cells.size <= _MOST_CELLS and len(present) >= _LEAST_COLUMNS:
            for at in range(len(present)):
                again = (_count_equal(whole - of_cells[at]) > 1) & (copies == 1)
                different[again & (different < 0)] = compared.index(present[at])
    numbers = {COPIES: copies, DIFFERENT: different, N_ROWS: np.full(n_rows, float(n_rows))}
    return {name: Cells(name, "number", values) for name, values in numbers.items()}


def row_hashes(rows: Columns, names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for each row; equal rows have the same."""
    hashes: NDArray[np.uint64] = _cell_terms(rows, names).sum(axis=0)
    return hashes


def _cell_terms(rows: Columns, names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for each cell, (n_columns, n_rows); rows have the sums of theirs."""
    terms = np.empty((len(names), len(rows[names[0]].values)), dtype=np.uint64)
    for at, name in enumerate(names):
        mixed = cell_hashes(rows[name]) + np.uint64(2 * at + 1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        terms[at] = mixed ^ (mixed >> np.uint64(31))
    return terms


def cell_hashes(cells: Cells) -> NDArray[np.uint64]:
    """Return a number for each cell of a column; equal cells have the same, in any table."""
    if cells.is_text:
        of_levels: NDArray[np.uint64] = cells.level_hashes[cells.values]
        return of_levels
    # One NaN for all of them, and 0 for -0.
    plain = np.where(np.isnan(cells.values), np.nan, cells.values + 0.0)
    values: NDArray[np.uint64] = plain.view(np.uint64)
    if cells.words is not None:
        values = np.where(cells.words >= 0, cells.level_hashes[cells.words], values)
    return values


def _count_equal(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return counts[places.ravel()]


def _are_in(hashes: NDArray[np.uint64], ascending: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(hashes), dtype=bool)
    places = np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == hashes
    return found
