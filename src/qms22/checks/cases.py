"""What is one case: rows that say the same thing again, and what is new in all of a later batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.check import Check
from qms22.checks.copies import row_hashes
from qms22.checks.counting import LEAST_COMMON, LEAST_COMMON_SHARE, LEAST_RECURRING
from qms22.checks.single import LEAST_ENTITIES, LevelCheck, ValueCheck, may_get_others
from qms22.tables.columns.cells import Cells, Columns, count_rows
from qms22.tables.columns.kinds import level_counts

# Rows of a batch, in order of time, are looked at in so many parts. A level that is new, and in
# several of them, stays: slips are few, and a new doctor works every day.
_N_PARTS = 10
_LEAST_PARTS = 5
# A level of many has this share of the rows besides; numbers, of which there are more, need not.
_LEAST_SHARE = 0.01
# Prices rise by some percent.
_SMALL_RISE = 0.1


def repeated_cases(
    rows: Columns,
    columns: Sequence[str],
    entities: Collection[str],
    *,
    is_alone: bool,
    most: int | None = None,
) -> Bools:
    """Return which rows, all odd in one check, are of a case with a row before them.

    Rows of a case are odd in the same cells and of the same entity: the wrong country of a customer
    is in all its rows. Several rows in which the same cells do not go together are one, too, such
    as a discount that is new for some articles, or a rate of exchange, unless a check looks at
    cells one by one (`is_alone`). Without columns to blame, each row is a case. Where
    at most so many (`most`) normal rows are counted together, in a run or an hour, that many with
    the same cells are a case.
    """
    found = np.zeros(count_rows(rows), dtype=bool)
    if not columns:
        return found
    if most is not None:
        nth, n_equal = _count_before(row_hashes(rows, columns))
        found[:] = ((nth + 1) % most != 0) & ((n_equal >= most) | (nth > 0))
        return found
    for entity in entities:
        if entity in rows:
            nth, _ = _count_before(row_hashes(rows, [*columns, entity]))
            found |= rows[entity].has_value & (nth > 0)
    if not is_alone:
        nth, n_equal = _count_before(row_hashes(rows, columns))
        found |= (nth > 0) & (n_equal >= LEAST_RECURRING)
    return found


def _count_before(keys: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Return how many equal keys there are before each, and how many in all."""
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(numbers, kind="stable")
    nth = np.empty(len(keys), dtype=np.intp)
    nth[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return nth, counts[numbers]


@dataclass(frozen=True, eq=False)
class Staying:
    """Levels and numbers that no known-normal row has, and a batch in order of time has all along.

    By column: levels of those that have few, and numbers.
    """

    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[str, Floats] = field(default_factory=dict)
    # For each of the levels, the columns that are odd in half of its rows or more: a new article is
    # heavier than all others. The same for common levels of other columns: a route has another
    # timetable. Where a level is one of the series of a table, such as a sensor, these are only the
    # numbers that do not fit the other columns: a sensor may be wrong all the time.
    unlike: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def learn(cls, checks: Sequence[Check], batch: Columns) -> Staying:
        """Learn what is new in a later batch, in order of time, next to what checks have seen."""
        found = cls()
        known: dict[str, tuple[str, ...]] = {}
        for check in checks:
            if not isinstance(check, LevelCheck | ValueCheck) or check.columns[0] not in batch:
                continue
            name, cells = check.columns[0], batch[check.columns[0]]
            if isinstance(check, LevelCheck) and cells.is_text:
                if len(check.coding.levels) < LEAST_ENTITIES:
                    known[name] = check.coding.levels
            elif cells.form == "number":
                if isinstance(check, LevelCheck):
                    new = staying_values(check.coding.values, cells.values)
                else:
                    low, high = check.reference.ascending[[0, -1]].tolist()
                    new = staying_rises(low, high, cells.values)
                found.values[name] = np.union1d(found.values.get(name, []), new)
        found.levels.update(staying_levels(known, batch))
        return found

    def comparing(
        self,
        batch: Columns,
        is_odd: Bools,
        blamed: Sequence[str],
        n_numbers: int,
        series: Collection[str],
    ) -> Staying:
        """Learn what is odd in most rows of levels.

        `blamed` has the column of each check; the last ones compare so many numbers with the other
        columns. The levels of the columns `series` have a series each.
        """
        unlike = {}
        for name, cells in batch.items():
            new = self.levels.get(name, ())
            is_common = level_counts(cells) >= LEAST_COMMON if cells.is_text else np.empty(0)
            common = compress(cells.levels, is_common) if len(is_common) < LEAST_ENTITIES else ()
            for level in dict.fromkeys([*new, *common]):
                is_most = is_odd[cells.is_among((level,))].mean(axis=0) >= 0.5
                is_most[: len(blamed) - n_numbers] &= level in new or name not in series
                if is_most.any():
                    unlike[name, level] = tuple(sorted({*compress(blamed, is_most)}))
        return replace(self, unlike=unlike)

    def among(self, cells: Cells) -> Bools:
        """Return which cells have one of them."""
        if cells.is_text:
            return cells.is_among(self.levels.get(cells.name, ()))
        return np.isin(cells.values, self.values.get(cells.name, ()))


def staying_levels(
    known: Mapping[str, Sequence[str]], batch: Columns
) -> dict[str, tuple[str, ...]]:
    """Return the levels that no known row has, and that a batch in order of time has all along.

    So are levels that come together, such as the name and the account of a new supplier: some rows
    have them, and no others. Slips do not agree across columns. Columns of few levels, such as a
    status, get others in many rows only, and constants none.

    Parameters
    ----------
    known : mapping of str to sequence of str
        Levels by column.
    batch : Columns
    """
    found: dict[str, list[int]] = {}
    together: dict[bytes, list[tuple[str, int]]] = {}
    for name, levels in known.items():
        cells, are_many = batch[name], may_get_others(levels)
        is_new = np.append(cells.level_places(levels) < 0, False)
        places = np.flatnonzero(is_new[cells.values] & (len(levels) > 1))
        codes = cells.values[places]
        share = _LEAST_SHARE if are_many else LEAST_COMMON_SHARE
        found[name] = _staying(codes, places, len(cells.values), share * len(cells.values))
        recurring = np.bincount(codes) >= LEAST_RECURRING if are_many else ()
        for code in np.flatnonzero(recurring).tolist():
            together.setdefault(places[codes == code].tobytes(), []).append((name, code))
    for levels_of_rows in together.values():
        for name, code in levels_of_rows if len(levels_of_rows) > 1 else ():
            found[name] = sorted({*found[name], code})
    return {name: tuple(batch[name].levels[at] for at in codes) for name, codes in found.items()}


def staying_values(known: Floats, batch: Floats) -> Floats:
    """Return the numbers that no known row has, and that a batch in order of time has all along.

    Of a price list that has changed each number may be in few places. Those among the known ones
    that recur are all there if they are so together.
    """
    places = np.flatnonzero(~np.isnan(batch) & ~np.isin(batch, known))
    values, codes, counts = np.unique(batch[places], return_inverse=True, return_counts=True)
    staying = _staying(codes, places, len(batch), 0.0)
    if len(known):
        is_listed = (counts >= LEAST_RECURRING) & (values > known[0]) & (values < known[-1])
        together = places[is_listed[codes]]
        if _staying(np.zeros_like(together), together, len(batch), 0.0):
            staying = sorted({*staying, *np.flatnonzero(is_listed).tolist()})
    return values[staying]


def staying_rises(low: float, high: float, batch: Floats) -> Floats:
    """Return the numbers a little beyond all known ones that a batch has all along: new prices."""
    above = (batch > high) & (batch - high <= _SMALL_RISE * abs(high))
    below = (batch < low) & (low - batch <= _SMALL_RISE * abs(low))
    return staying_values(np.empty(0), np.where(above | below, batch, np.nan))


def _staying(codes: Ints, places: Ints, n_rows: int, least: float) -> list[int]:
    """Return the codes that enough rows have, in several parts of the batch."""
    parts = np.unique(np.column_stack([codes, _N_PARTS * places // n_rows]), axis=0)
    n_codes = int(codes.max(initial=-1)) + 1
    n_parts = np.bincount(parts[:, 0], minlength=n_codes)
    is_staying = (n_parts >= _LEAST_PARTS) & (np.bincount(codes, minlength=n_codes) >= least)
    return np.flatnonzero(is_staying).tolist()
