"""Checks of one cell: its value, its level, and whether it is there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np

from qms22._runtime import exact
from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.check import (
    MOST_LISTED,
    Check,
    NumberCheck,
    Said,
    Shower,
    Usual,
    never_seen,
    share_of_rows,
)
from qms22.checks.codings import Coding
from qms22.checks.counting import LEAST_RECURRING, are_again, are_more
from qms22.checks.surprise import LevelReference, NumberReference
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.columns.kinds import level_counts

# Numbers with at most so many values, each of them in so many rows on average, are looked at as
# levels too: 65 between the set points 60 and 70 is none of them.
_MOST_VALUES = 50
_ROWS_PER_VALUE = 20
_ROWS_TRIED = 1000
# Columns with so many levels are of entities: customers, articles.
LEAST_ENTITIES = 20
# A column with fewer levels, such as a state, has all that there are; one with more, such as the
# doctors of a clinic, may get another. So may one of codes, such as the plates of lorries.
_LEAST_STAFF = 8
_CODE = re.compile(r"(?:.*?\d){3}")
# Shares of normal rows that are named, the largest that fits.
_SHARES = (0.999, 0.99, 0.95, 0.9, 0.75, 0.5)
_NEARLY_ALL = 1  # the place of the share that counts as usual, at both ends
# Values of a column in which fewer normal rows have one are odd.
_RARE_VALUES = 0.01


def may_get_others(levels: Sequence[str]) -> bool:
    """Return whether a later batch may have other levels, as of staff, articles and lorries."""
    return len(levels) >= _LEAST_STAFF or (len(levels) > 1 and all(map(_CODE.match, levels)))


@dataclass(frozen=True, eq=False)
class ValueCheck(NumberCheck):
    """A number or a date far from the others, or beyond all of them."""

    quantiles: Floats

    @classmethod
    def learn(cls, cells: Cells) -> ValueCheck | None:
        """Learn from the known-normal rows; return None if there are too few values."""
        reference = NumberReference.learn(cells.values)
        if reference is None:
            return None
        present = cells.values[~np.isnan(cells.values)]
        shares = (*(1 - share for share in _SHARES), *_SHARES)
        return cls((cells.name,), reference, np.quantile(present, shares, method="nearest"))

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows have as high or as low values."""
        cells = rows[self.columns[0]]
        ends = self.quantiles[[_NEARLY_ALL, len(_SHARES) + _NEARLY_ALL]].tolist()
        usual = Usual.of_values("range", cells, ends, show)
        for value in cells.values.tolist():
            # Of a row without odd cells, a missing one may be the first.
            yield Said("" if math.isnan(value) else f"; {self._comparison(value, show)}", usual)

    def _comparison(self, value: float, show: Shower) -> str:
        name, ascending = self.columns[0], self.reference.ascending
        is_high = value > ascending[len(ascending) // 2]
        sign, most, beyond = (1, "at most", "above") if is_high else (-1, "at least", "below")
        end = float(ascending[-1 if is_high else 0])
        limits = np.split(self.quantiles, 2)[int(is_high)].tolist()
        if sign * value > sign * end:
            of_rows = f"of {self.reference.n:,} normal rows"
            extreme = f"none is {beyond} {show(name, end)}"
            if self.reference.n < 100 or show(name, limits[1]) == show(name, end):
                return f"{of_rows} {extreme}"
            return f"99 % {of_rows} are {most} {show(name, limits[1])}, {extreme}"
        for share, limit in zip(_SHARES, limits, strict=True):
            if sign * value > sign * limit:
                return f"{100 * share:g} % of normal rows are {most} {show(name, limit)}"
        return f"half of the normal rows are {most} {show(name, value)}"


@dataclass(frozen=True)
class LevelCheck(Check):
    """A level of a category that is rare or was never seen; also a constant that is broken.

    Numbers with few values are levels, too.
    """

    coding: Coding  # the levels or values of normal rows
    reference: LevelReference  # how many normal rows have each, those with a missing cell first
    # Levels with several rows of the batch that normal rows hardly have.
    recurring: tuple[str, ...] = ()

    @classmethod
    def learn(cls, cells: Cells, order: Ints) -> LevelCheck | None:
        """Learn from the known-normal rows; return None for numbers with many values.

        `order` has the rows in order of time.
        """
        # Some rows tell that there are many values, which is quick.
        if not cells.is_text and len(np.unique(cells.values[:_ROWS_TRIED])) > _MOST_VALUES + 1:
            return None
        coding = Coding.of_levels(cells)
        counts = np.bincount(coding.codes({cells.name: cells}), minlength=coding.n_codes)
        if cells.is_text:
            new = count_new(cells.values[order])
            return cls((cells.name,), coding, LevelReference(counts, new))
        most = min(_MOST_VALUES, counts[1:].sum() / _ROWS_PER_VALUE)
        are_few = 0 < len(coding.values) <= max(most, 1)
        return cls((cells.name,), coding, LevelReference(counts)) if are_few else None

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd levels are."""
        cells, values = rows[self.columns[0]], self.coding.values
        found = self.reference.surprise(self.coding.codes(rows), own=own)
        if cells.is_text:
            return found if own else np.where(cells.is_among(self.recurring), 0.0, found)
        if len(values) < 2:
            return np.where(np.isnan(cells.values), 0.0, found)
        # How far a number is beyond all others says more than that it was never seen.
        is_inside = (cells.values >= values[0]) & (cells.values <= values[-1])
        return np.where(is_inside, found, 0.0)

    def aligned(self, batch: Columns) -> LevelCheck:
        """Return the check for a batch that may have new customers: levels with several rows.

        Slips differ from each other. In a column of few levels a new one is odd all the same. What
        normal rows have about as often is compared as among these.
        """
        cells = batch[self.columns[0]]
        if not cells.is_text or len(self.coding.levels) < LEAST_ENTITIES:
            return self
        places = cells.level_places(self.coding.levels)
        n_known = np.where(places < 0, 0, self.reference.counts[places + 1])
        counts = level_counts(cells)
        is_more = are_more(counts, int(counts.sum()), n_known, self.reference.n)
        is_new = (counts >= LEAST_RECURRING) & is_more
        return replace(self, recurring=tuple(compress(cells.levels, is_new)))

    def repeats_new(self, cells: Cells) -> Bools:
        """Return which cells have a level that no normal row has, and that a cell before has."""
        return are_again(cells.values) & cells.has_value & ~cells.is_among(self.coding.levels)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows have the levels."""
        counts, n = self.reference.counts, self.reference.n
        there = np.flatnonzero(counts)[: MOST_LISTED + 1].tolist()
        levels = [self.coding.show_code(code, show) for code in there]
        unseen = never_seen(n, levels)
        if len(there) == 1:
            unseen = f"all {n:,} normal rows have {levels[0]}"
        usual: dict[int, Usual | None] = {}
        for code in self.coding.codes(rows).tolist():
            count = 0 if code < 0 else int(counts[code])
            if count not in usual:
                show_code = partial(self.coding.show_code, show=show)
                usual[count] = Usual.of_levels(counts, count, show_code)
            text = f", as in {share_of_rows(count, n)}" if count else f"; {unseen}"
            yield Said(text, usual[count])


@dataclass(frozen=True)
class PresenceCheck(Check):
    """A cell that is empty, or a word in a column of numbers or dates, or a value where none is.

    The first two counts are those of values and of missing cells.
    """

    words: tuple[str, ...]
    reference: LevelReference

    @classmethod
    def learn(cls, cells: Cells) -> PresenceCheck:
        """Learn from the known-normal rows."""
        words = tuple(cells.levels) if cells.words is not None else ()
        counts = np.bincount(_presence(cells, words), minlength=2 + len(words))
        return cls((cells.name,), words, LevelReference(counts))

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd missing cells and words are, and values if hardly any row has one."""
        codes = _presence(rows[self.columns[0]], self.words)
        are_values_usual = self.reference.counts[0] > _RARE_VALUES * self.reference.n
        if are_values_usual and not codes.any():
            return np.zeros(len(codes))
        found = self.reference.surprise(codes, own=own)
        return np.where(codes == 0, 0.0, found) if are_values_usual else found

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows lack a value, or have the words."""
        cells, counts, n = rows[self.columns[0]], self.reference.counts, self.reference.n
        kind = {"date": "a date", "boolean": "true or false"}.get(cells.form, "a number")
        unseen = f"; normal rows have {kind if counts[0] else 'no value'}"
        usual = Usual("form", kind if counts[0] > counts[1] else "no value")
        for code in _presence(cells, self.words).tolist():
            text = unseen if code < 0 else f", as in {share_of_rows(int(counts[code]), n)}"
            yield Said(text, usual)


def _presence(cells: Cells, words: tuple[str, ...]) -> Ints:
    """Return 0 for values, 1 for missing cells, numbers of words from 2, -1 for new words."""
    codes: Ints = (~cells.has_value).astype(np.intp)
    if cells.words is None:
        return codes
    places = np.append(cells.level_places(words), -1)[cells.words]
    return np.where(cells.words < 0, codes, np.where(places < 0, -1, places + 2))


def count_new(codes: Ints) -> int:
    """Return how many rows, in order of time, would have a level that is new; 0 if chance would.

    The last third of the rows is compared with those before. In random order a level of c rows is
    new there if all of them are in it, with a probability of 3 to the power of −c.
    """
    n_last = len(codes) // 3
    first, last = codes[: len(codes) - n_last], codes[len(codes) - n_last :]
    n_new = int(np.count_nonzero(~np.isin(last, first)))
    sizes = np.unique(codes, return_counts=True)[1]
    by_chance = float(np.sum(sizes * exact.exp(-exact.log(3.0) * sizes)))
    return 3 * n_new if n_new > by_chance + 3 * math.sqrt(by_chance) + 3 else 0
