"""Checks of one cell: its value, its level, and whether it is there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import (
    MOST_LISTED,
    Shower,
    count_text,
    never_seen,
    share_of_rows,
    shown_cells,
)
from qms22.checks.surprise import LevelReference, NumberReference
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.words import number_text

# Numbers with at most so many values, each of them in so many rows on average, are looked at as
# levels too: 65 between the set points 60 and 70 is none of them.
_MOST_VALUES = 50
_ROWS_PER_VALUE = 20
_ROWS_TRIED = 1000

# Columns with so many levels are of entities: customers, articles. A new one has so many rows.
LEAST_ENTITIES = 20
LEAST_RECURRING = 3

# Shares of normal rows that are named, the largest that fits.
_SHARES = (0.999, 0.99, 0.95, 0.9, 0.75, 0.5)

# Values of a column in which fewer normal rows have one are odd.
_RARE_VALUES = 0.01


@dataclass(frozen=True)
class ColumnCheck:
    """A check of cells of the columns that it blames."""

    columns: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return self.columns


@dataclass(frozen=True, eq=False)
class NumberCheck(ColumnCheck):
    """A check of a number of each row, of which too high and too low ones are odd.

    Parameters
    ----------
    columns : tuple of str
    reference : NumberReference
        The numbers of normal rows.
    """

    reference: NumberReference

    def numbers(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Return the number of each row; NaN stands for none."""
        return rows[self.columns[0]].values

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd the numbers are."""
        return self.reference.surprise(self.numbers(rows, own=own), own=own)

    def aligned(self, batch: Columns) -> Self:
        """Return the check for a batch that may have moved as a whole."""
        return replace(self, reference=self.reference.aligned(self.numbers(batch)))


@dataclass(frozen=True, eq=False)
class ValueCheck(NumberCheck):
    """A number or a date far from the others, or beyond all of them."""

    quantiles: NDArray[np.float64]

    @classmethod
    def learn(cls, cells: Cells) -> ValueCheck | None:
        """Learn from the known-normal rows; return None if there are too few values."""
        reference = NumberReference.learn(cells.values)
        if reference is None:
            return None
        present = cells.values[~np.isnan(cells.values)]
        shares = (*(1 - share for share in _SHARES), *_SHARES)
        return cls((cells.name,), reference, np.quantile(present, shares, method="nearest"))

    def describe(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Say how many normal rows have as high or as low values."""
        cells = rows[self.columns[0]]
        begins = shown_cells(cells, places, show)
        values = cells.values[places].tolist()
        return [
            # Of a row without odd cells, a missing one may be the first.
            begin if math.isnan(value) else f"{begin}; {self._comparison(value, show)}"
            for begin, value in zip(begins, values, strict=True)
        ]

    def _comparison(self, value: float, show: Shower) -> str:
        name, ascending, n = self.columns[0], self.reference.ascending, self.reference.n
        is_high = value > ascending[len(ascending) // 2]
        end = float(ascending[-1] if is_high else ascending[0])
        most = "at most" if is_high else "at least"
        if (value > end) if is_high else (value < end):
            extreme = f"none is {'above' if is_high else 'below'} {show(name, end)}"
            if n < 100:
                return f"of {n} normal rows {extreme}"
            limit = float(self.quantiles[len(_SHARES) + 1] if is_high else self.quantiles[1])
            if show(name, limit) == show(name, end):
                return f"of {count_text(n)} normal rows {extreme}"
            return f"99 % of {count_text(n)} normal rows are {most} {show(name, limit)}, {extreme}"
        for at, share in enumerate(_SHARES):
            limit = float(self.quantiles[len(_SHARES) + at] if is_high else self.quantiles[at])
            if (value > limit) if is_high else (value < limit):
                return f"{100 * share:g} % of normal rows are {most} {show(name, limit)}"
        return f"half of the normal rows are {most} {show(name, value)}"


@dataclass(frozen=True)
class LevelCheck(ColumnCheck):
    """A level of a category that is rare or was never seen; also a constant that is broken.

    The first level is that of missing cells. Numbers with few values are levels, too.
    """

    levels: tuple[str, ...]
    values: NDArray[np.float64]
    reference: LevelReference
    recurring: tuple[str, ...] = ()

    @classmethod
    def learn(cls, cells: Cells, order: NDArray[np.intp]) -> LevelCheck | None:
        """Learn from the known-normal rows; return None for numbers with many values.

        Parameters
        ----------
        cells : Cells
        order : ndarray of int
            The rows in order of time.
        """
        if cells.is_text:
            counts = np.bincount(cells.values + 1, minlength=len(cells.levels) + 1)
            reference = LevelReference(counts, count_new(cells.values[order]))
            return cls((cells.name,), tuple(cells.levels), np.empty(0), reference)
        gaps = np.isnan(cells.values)
        present = cells.values[~gaps]
        # Some rows tell that there are many values, which is quick.
        if len(np.unique(present[:_ROWS_TRIED])) > _MOST_VALUES:
            return None
        values, counts = np.unique(present, return_counts=True)
        if not len(values) or (
            len(values) > 1
            and (len(values) > _MOST_VALUES or len(values) * _ROWS_PER_VALUE > counts.sum())
        ):
            return None
        n_missing = np.count_nonzero(gaps)
        return cls((cells.name,), (), values, LevelReference(np.append(n_missing, counts)))

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd levels are."""
        cells = rows[self.columns[0]]
        found = self.reference.surprise(self.codes(cells), own=own)
        if cells.is_text:
            if not self.recurring or own:
                return found
            recurring = frozenset(self.recurring)
            is_usual = [level in recurring for level in cells.levels]
            return np.where(np.append(is_usual, False)[cells.values], 0.0, found)
        if len(self.values) < 2:
            return np.where(np.isnan(cells.values), 0.0, found)
        # How far a number is beyond all others says more than that it was never seen.
        is_inside = (cells.values >= self.values[0]) & (cells.values <= self.values[-1])
        return np.where(is_inside, found, 0.0)

    def aligned(self, batch: Columns) -> LevelCheck:
        """Return the check for a batch that may have new customers: levels with several rows.

        Slips differ from each other. In a column of few levels a new one is odd all the same.
        """
        cells = batch[self.columns[0]]
        if not cells.is_text or len(self.levels) < LEAST_ENTITIES:
            return self
        rows = np.bincount(cells.values[cells.values >= 0], minlength=len(cells.levels))
        several = np.flatnonzero(rows >= LEAST_RECURRING).tolist()
        return replace(self, recurring=tuple(cells.levels[at] for at in several))

    def codes(self, cells: Cells) -> NDArray[np.intp]:
        """Return the numbers of levels; -1 for those that no normal row has."""
        if self.levels and not cells.is_text:
            cells = to_levels(cells)
        if cells.is_text:
            levels = self.levels or [number_text(value) for value in self.values.tolist()]
            places = cells.level_places(levels)
            numbers = np.append(np.where(places < 0, -1, places + 1), 0)
            of_texts: NDArray[np.intp] = numbers[cells.values]
            return of_texts
        # One more value, which none is equal to: all cells of normal rows may be missing.
        values = np.append(self.values, np.nan)
        places = np.searchsorted(self.values, cells.values)
        codes = np.where(values[places] == cells.values, places + 1, -1)
        return np.where(np.isnan(cells.values), 0, codes)

    def describe(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Say how many normal rows have the levels."""
        cells = rows[self.columns[0]]
        begins = shown_cells(cells, places, show)
        codes = self.codes(cells)[places].tolist()
        counts, n = self.reference.counts, self.reference.n
        there = np.flatnonzero(counts)
        levels = [self._level(int(at), show) for at in there[: MOST_LISTED + 1]]
        unseen = never_seen(n, levels)
        if len(there) == 1:
            unseen = f"all {count_text(n)} normal rows have {levels[0]}"
        return [
            f"{begin}; {unseen}"
            if code < 0 or counts[code] == 0
            else f"{begin}, as in {share_of_rows(int(counts[code]), n)}"
            for begin, code in zip(begins, codes, strict=True)
        ]

    def _level(self, code: int, show: Shower) -> str:
        if code == 0:
            return "no value"
        if self.levels:
            return self.levels[code - 1]
        return show(self.columns[0], float(self.values[code - 1]))


@dataclass(frozen=True)
class PresenceCheck(ColumnCheck):
    """A cell that is empty, or a word in a column of numbers or dates, or a value where none is.

    The first two counts are those of values and of missing cells.
    """

    words: tuple[str, ...]
    reference: LevelReference

    @classmethod
    def learn(cls, cells: Cells) -> PresenceCheck:
        """Learn from the known-normal rows."""
        words = tuple(cells.levels) if cells.words is not None else ()
        check = cls((cells.name,), words, LevelReference(np.empty(0, dtype=np.intp)))
        counts = np.bincount(check.codes(cells), minlength=2 + len(words))
        return cls((cells.name,), words, LevelReference(counts))

    def codes(self, cells: Cells) -> NDArray[np.intp]:
        """Return 0 for values, 1 for missing cells, numbers of words from 2, -1 for new words."""
        codes: NDArray[np.intp] = (~cells.has_value).astype(np.intp)
        if cells.words is None:
            return codes
        known = {word: at + 2 for at, word in enumerate(self.words)}
        numbers = [known.get(word, -1) for word in cells.levels]
        of_words = np.array([*numbers, -1], dtype=np.intp)[cells.words]
        return np.where(cells.words >= 0, of_words, codes)

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd missing cells and words are, and values if hardly any row has one."""
        codes = self.codes(rows[self.columns[0]])
        are_values_usual = self.reference.counts[0] > _RARE_VALUES * self.reference.n
        if are_values_usual and not codes.any():
            return np.zeros(len(codes))
        found = self.reference.surprise(codes, own=own)
        return np.where(codes == 0, 0.0, found) if are_values_usual else found

    def describe(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Say how many normal rows are without a value, or have the words."""
        cells = rows[self.columns[0]]
        codes = self.codes(cells)[places].tolist()
        counts, n = self.reference.counts, self.reference.n
        kind = {"date": "a date", "boolean": "true or false"}.get(cells.form, "a number")
        kind = kind if counts[0] else "no value"
        return [
            f"{begin}; normal rows have {kind}"
            if code < 0
            else f"{begin}, as in {share_of_rows(int(counts[code]), n)}"
            for begin, code in zip(shown_cells(cells, places, show), codes, strict=True)
        ]


def count_new(codes: NDArray[np.intp]) -> int:
    """Return how many rows, in order of time, would have a level that is new; 0 if chance would.

    The last third of the rows is compared with those before. In random order a level of c rows is
    new there if all of them are in it, with a probability of 3 to the power of −c.
    """
    n_last = len(codes) // 3
    first, last = codes[: len(codes) - n_last], codes[len(codes) - n_last :]
    n_new = int(np.count_nonzero(~np.isin(last, first)))
    sizes = np.unique(codes, return_counts=True)[1]
    by_chance = float(np.sum(sizes * np.exp(-math.log(3.0) * sizes)))
    return 3 * n_new if n_new > by_chance + 3 * math.sqrt(by_chance) + 3 else 0
