"""Rows that are there more than once, or once more but for one cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.check import Check, RuleCheck, Said, Shower, Usual, share_of_rows, shown_cells
from qms22.checks.counting import find_places
from qms22.estimators.held_out import mix_bits
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
# for none), and among how many rows; as of `derived_name`.
COPIES = "\0copies"
DIFFERENT = "\0different"
N_ROWS = "\0rows"


@dataclass(frozen=True, eq=False)
class CopyCheck(Check):
    """A row that is there twice, also among the normal rows, or twice but for one cell.

    Where many normal rows are there more than once, as in narrow tables, repetition says nothing.
    Rows are compared in the columns `more`.
    """

    n_normal: int
    n_copied: int  # normal rows that are there more than once
    n_different: Ints  # normal rows that differ from another one in each column alone
    hashes: NDArray[np.uint64]  # of whole normal rows, ascending
    # Of normal rows without each column, ascending; empty if they are many.
    without: tuple[NDArray[np.uint64], ...]

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
        whole = row_hashes(rows, compared)
        without: tuple[NDArray[np.uint64], ...] = ()
        if _may_differ_in_one(n_normal, compared):
            without = tuple(np.sort(whole - each) for each in _cell_terms(rows, compared))
        known = n_normal, n_copied, n_different, np.sort(whole), without
        return cls((), *known, more=tuple(compared))

    def _codes(self, rows: Columns, *, own: bool) -> Ints:
        """Return in which column alone rows differ from others; after all columns in none.

        -1 stands for rows that are like no other.
        """
        is_copy, different = rows[COPIES].values > 1, rows[DIFFERENT].values.astype(np.intp)
        if not own:
            whole = row_hashes(rows, self.more)
            is_copy = is_copy | _are_in(whole, self.hashes)
            pairs = zip(self.without, _cell_terms(rows, self.more), strict=False)
            for at, (known, of_cells) in enumerate(pairs):
                different[(different < 0) & _are_in(whole - of_cells, known)] = at
        return np.where(is_copy, len(self.more), different)

    def differ_in(self, rows: Columns) -> Ints:
        """Return the number of the one column in which rows differ from others; -1 for none."""
        codes = self._codes(rows, own=False)
        return np.where(codes < len(self.more), codes, -1)

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd it is that rows are there again."""
        n, n_rows = self.n_normal, rows[N_ROWS].values
        # Of a row of the batch there may be a copy in both tables.
        factor = 1.0 if own else 1.0 + n_rows.max(initial=0.0) / n
        n_alike = np.append(self.n_different, self.n_copied)
        # A normal row and its copy are one case.
        others = np.maximum(n_alike - 2 * own, 0)
        surprises = -exact.log(np.minimum(factor * (1.0 + others) / (n + 1.0), 1.0))
        surprises[:-1][self.n_different > _MOST_REPEATED * n] = 0.0
        # As a level that no normal row has, where none is repeated.
        surprises[-1] += 0.0 if others[-1] else exact.log(n)
        return np.append(surprises, 0.0)[self._codes(rows, own=own)]

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return nothing: no cell is to blame."""
        return [""] * count_rows(rows)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how often the rows are there."""
        often = f"{share_of_rows(self.n_copied, self.n_normal)} are repeated"
        codes, counts = self._codes(rows, own=False).tolist(), rows[COPIES].values.tolist()
        once = Usual("rule", "each row once")
        for at, (code, count) in enumerate(zip(codes, counts, strict=True)):
            if count > 1:
                yield Said(f"the same row occurs {int(count):,} times; {often}", once)
            elif code == len(self.more):
                yield Said(f"a normal row is the same; {often}", once)
            else:
                name = self.more[code]
                cell = shown_cells(rows[name].take(slice(at, at + 1)), show)[0]
                others = share_of_rows(int(self.n_different[code]), self.n_normal)
                yield Said(f"the same as another row but for {name} ({cell}), as {others} are")


def derived_name(kind: str, *of: object) -> str:
    """Return the name of a derived column, which no column of a table has."""
    return "\0".join(["", kind, *map(str, of)])


@dataclass(frozen=True, eq=False)
class KeyCheck(RuleCheck):
    """A key that several rows of a table have, where each normal row but few has its own."""

    at_once = 2

    @classmethod
    def learn(cls, rows: Columns, name: str) -> KeyCheck | None:
        """Learn from the known-normal rows; None if many keys are repeated."""
        key = derived_name("key", name)
        n, n_repeated = (int(np.count_nonzero(rows[key].values > least)) for least in (0, 1))
        is_key = n >= _LEAST_KEYS and n_repeated <= _MOST_REPEATED * n
        return cls((name,), n_repeated, n, more=(key, COPIES, DIFFERENT)) if is_key else None

    def breaks(self, rows: Columns) -> Bools:
        """Return which rows have a key again."""
        counts, copies, different = (rows[name].values for name in self.more)
        # Of a row that is there again, or but for a cell, that says more.
        is_again: Bools = (counts > 1) & (copies == 1) & (different < 0)
        return is_again

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how often the keys are there."""
        often = share_of_rows(self.n_broken, self.n)
        for count in rows[self.more[0]].values.tolist():
            text = f" is there {int(count):,} times; that of {often} is there again"
            yield Said(text, Usual("rule", "each value once"))


def count_keys(keys: Columns, *, is_part: bool) -> dict[str, Cells]:
    """Return how often the key of each row is there, 0 without one; 1 in a part of a table."""
    found = {}
    for name, cells in keys.items():
        counts = np.ones(len(cells.values)) if is_part else _count_equal(cell_hashes(cells))
        found[derived_name("key", name)] = np.where(cells.has_value, counts, 0.0)
    return number_columns(found)


def count_copies(
    rows: Columns, compared: Sequence[str], *, is_part: bool = False
) -> dict[str, Cells]:
    """Return how often rows are there, and in which of some columns alone they differ from others.

    With `is_part` these are rows picked from a table: nobody knows how often they are in it.
    """
    present = [name for name in compared if name in rows]
    n_rows = count_rows(rows)
    copies, different = np.ones(n_rows), np.full(n_rows, -1.0)
    if not is_part and present:
        whole = row_hashes(rows, present)
        copies = _count_equal(whole).astype(np.float64)
        if _may_differ_in_one(n_rows, present):
            for name, of_cells in zip(present, _cell_terms(rows, present), strict=True):
                again = (_count_equal(whole - of_cells) > 1) & (copies == 1)
                different[again & (different < 0)] = compared.index(name)
    in_all = np.full(n_rows, float(n_rows))
    return number_columns({COPIES: copies, DIFFERENT: different, N_ROWS: in_all})


def number_columns(numbers: Mapping[str, Floats]) -> dict[str, Cells]:
    """Return columns of numbers by their names."""
    return {name: Cells(name, "number", values) for name, values in numbers.items()}


def _may_differ_in_one(n_rows: int, names: Sequence[str]) -> bool:
    """Whether rows are looked for that differ in one cell alone."""
    return n_rows * len(names) <= _MOST_CELLS and len(names) >= _LEAST_COLUMNS


def row_hashes(rows: Columns, names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for each row; equal rows have the same."""
    hashes = np.zeros(len(rows[names[0]].values), dtype=np.uint64)
    for of_cells in _cell_terms(rows, names):
        hashes += of_cells
    return hashes


def _cell_terms(rows: Columns, names: Sequence[str]) -> Iterator[NDArray[np.uint64]]:
    """Return a number for each cell, column by column; rows have the sums of theirs."""
    for at, name in enumerate(names):
        yield mix_bits(cell_hashes(rows[name]) + np.uint64(2 * at + 1))


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


def _count_equal(hashes: NDArray[np.uint64]) -> Ints:
    """Return how many rows have the number of each row."""
    ascending = np.sort(hashes)
    if (ascending[1:] != ascending[:-1]).all():  # which is quick to see
        return np.ones(len(hashes), dtype=np.intp)
    _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return counts[places.ravel()]


def _are_in(hashes: NDArray[np.uint64], ascending: NDArray[np.uint64]) -> Bools:
    return find_places(ascending, hashes) < len(ascending)
