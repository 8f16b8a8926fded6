"""Steps from row to row of an entity: counters that run back, meters that are silent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import Check, NumberCheck, Said, Shower, Usual, shown_cells
from qms22.checks.copies import cell_hashes
from qms22.checks.dates import unit_of_days
from qms22.checks.sequences.in_order import Derived, Orders
from qms22.checks.surprise import NumberReference, TailReference, surprise_of_few
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.columns.date_parts import DAY

# Fewer steps say nothing.
_LEAST_STEPS = 20
# A number that never falls within nearly all entities, and mostly rises, is a counter.
_NEARLY_ALL = 0.98
_RISING = 0.5
# A row that is so many times as long after the one before as normal rows are at most has a wrong
# date, or that one has.
_TOO_LONG = 10.0


@dataclass(frozen=True, eq=False)
class CounterSteps(Derived):
    """What a counter was before, and how many days ago, or rows without dates."""

    # The hash, the day and the number of the last known-normal rows of each entity, where there are
    # dates: the first rows of a later batch follow on them.
    last: tuple[NDArray[np.uint64], Floats, Floats] | None = None
    kinds: ClassVar = ("before", "passed")

    def rising(self, rows: Columns, orders: Orders) -> float:
        """Return the share of steps that do not go back; 0 if the number is no counter."""
        steps = orders(self.entity).steps(rows[self.name].values)
        steps = steps[~np.isnan(steps)]
        if len(steps) < _LEAST_STEPS or np.mean(steps > 0) < _RISING:
            return 0.0
        share = float(np.mean(steps >= 0))
        return share if share >= _NEARLY_ALL else 0.0

    def continued(self, rows: Columns) -> CounterSteps:
        """Return it with the last two of known-normal rows, one of which may be wrong."""
        if self.date not in rows:
            return self
        entities, days, values = self._counted(rows)
        order = _in_order(entities, days, values)
        entities = entities[order]
        is_last = np.append(entities[2:] != entities[:-2], [True, True])[: len(order)]
        last = order[is_last]
        return replace(self, last=(entities[is_last], days[last], values[last]))

    def _counted(self, rows: Columns) -> tuple[NDArray[np.uint64], Floats, Floats]:
        """Return the hash of the entity, the day and the number of rows."""
        n_rows = count_rows(rows)
        days = rows[self.date].values / DAY if self.date in rows else np.arange(float(n_rows))
        return cell_hashes(rows[self.entity]), days, rows[self.name].values

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Compare rows with the one before, or with that before a wrong one."""
        counted, n_last = self._counted(rows), 0
        if self.last is not None and self.date in rows and not are_normal:
            n_last = len(self.last[0])
            pairs = zip(self.last, counted, strict=True)
            entities, days, values = (np.concatenate(pair) for pair in pairs)
        else:
            entities, days, values = counted
        found = np.full((2, len(entities)), np.nan)
        order = _in_order(entities, days, values)
        entities, days, values = entities[order], days[order], values[order]

        def since(places: Ints) -> tuple[Floats, Floats]:
            is_before = (entities == entities[places]) & (days > days[places])
            return values - values[places], np.where(is_before, days - days[places], np.nan)

        one, two = (np.maximum(np.arange(len(order)) - back, 0) for back in (1, 2))
        (rise, passed), (rise_of_two, passed_of_two) = since(one), since(two)
        with np.errstate(over="ignore", invalid="ignore"):
            rates = (rise / passed)[~np.isnan(passed)]
            middle = np.median(rates) if len(rates) else 0.0
            excess, excess_of_two = rise - middle * passed, rise_of_two - middle * passed_of_two
        # A row after a wrong one follows from that before it; after a step for good none does.
        is_after_wrong = np.abs(excess_of_two) < np.abs(excess) / 2
        found[0, order] = values[np.where(is_after_wrong, two, one)]
        found[1, order] = np.where(is_after_wrong, passed_of_two, passed)
        return found[:, n_last:]

    def learn(self, rows: Columns) -> StepCheck | None:
        """Learn from known-normal rows; None if there are too few steps."""
        rises = self.rises(rows)
        reference, n_back = NumberReference.learn(rises), int(np.count_nonzero(rises < 0))
        more = (*self.keys, *filter(None, [self.date]))
        if reference is None:
            return None
        longest = float(np.nanmax(rows[self.keys[1]].values))
        return StepCheck(self.columns, reference, self, n_back, longest, more=more)

    def rises(self, rows: Columns) -> Floats:
        """Return how much the counter rose, per day where there are dates."""
        before, passed = (rows[key].values for key in self.keys)
        with np.errstate(over="ignore"):
            rises: Floats = (rows[self.name].values - before) / passed
        return rises


def _in_order(entities: NDArray[np.uint64], days: Floats, values: Floats) -> Ints:
    """Return the rows with a number by entity and day."""
    there = np.flatnonzero(np.isfinite(values + days))
    return there[np.lexsort((days[there], entities[there]))]


@dataclass(frozen=True, eq=False)
class StepCheck(NumberCheck):
    """A counter that runs back, or rises more or less than usual.

    It blames the counter, and the column that says which rows belong together.
    """

    counted: CounterSteps
    n_back: int  # normal rows with less than the row before
    longest: float  # the most days, or rows without dates, between two normal rows

    def numbers(self, rows: Columns, *, own: bool = False) -> Floats:
        """Return how much the counter rose, per day where there are dates."""
        return self.counted.rises(rows)

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd the steps are; where none goes back, a small one back is as well."""
        back = surprise_of_few(self.n_back - own, self.reference.n)
        surprise = super().surprise(rows, own=own)
        surprise = np.maximum(surprise, np.where(self.numbers(rows) < 0, back, 0.0))
        passed = rows[self.counted.keys[1]].values
        return np.where(passed > _TOO_LONG * self.longest, 0.0, surprise)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how fast the counter has changed, and how fast it usually does."""
        name, entity = self.columns
        low, high = (show(name, float(self.reference.ascending[at])) for at in (0, -1))
        keys = (rows[key].values.tolist() for key in self.counted.keys)
        lists = shown_cells(rows[entity], show), self.numbers(rows).tolist(), *keys
        has_dates = bool(self.counted.date)
        pace = " a day" if has_dates else ""
        usual = Usual("rule", f"rises by {low} to {high}{pace}")
        for of, step, before, days in zip(*lists, strict=True):
            if math.isnan(step):
                yield Said("")
                continue
            unit, factor = unit_of_days(days)
            when = "the day" if days == 1 else f"{factor * days:,.0f} {unit}"
            since = f"from {show(name, before)} ({of}, {when if has_dates else 'the row'} before)"
            rises = f" rises by {show(name, step)}{pace} {since}; {low} to {high} in normal rows"
            yield Said(f" runs back {since}" if step < 0 else rises, usual)


@dataclass(frozen=True)
class Gaps(Derived):
    """At how many times before each row others have rows, and its entity has none."""

    step: float = 0.0  # the usual time from row to row
    kinds: ClassVar = ("gap",)

    @classmethod
    def find(cls, rows: Columns, entity: str, date: str, orders: Orders) -> Gaps | None:
        """Return the gaps of entities that have a row at nearly every time; None for others."""
        steps = orders(entity).steps(rows[date].values)
        steps = steps[~np.isnan(steps)]
        gaps = cls(date, entity, date, float(np.median(steps)) if len(steps) >= _LEAST_STEPS else 0)
        is_regular = gaps.step > 0 and np.mean(gaps.numbers(rows, orders)) <= 1 - _NEARLY_ALL
        return gaps if is_regular else None

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Count times; a single one may be a row that is late."""
        order, entities = orders(self.entity)
        dates = rows[self.date].values[order]
        times = np.unique(dates // self.step, return_inverse=True)[1].ravel()
        gaps = np.append(0.0, np.where(np.diff(entities) > 0, 0, np.diff(times) - 1))[: len(order)]
        gaps[(gaps <= 1) | np.isnan(dates)] = 0.0
        return orders(self.entity).put(gaps)

    def learn(self, rows: Columns) -> GapCheck:
        """Learn from known-normal rows."""
        reference = TailReference.learn(rows[self.keys[0]].values)
        return GapCheck(self.columns, reference, more=self.keys)


@dataclass(frozen=True, eq=False)
class GapCheck(Check):
    """A row of an entity after times at which others have rows, and it has none: a silent meter.

    It blames the date, and the column of the entity.
    """

    reference: TailReference  # the gaps of normal rows

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd the gaps are."""
        gaps = rows[self.more[0]].values
        return np.where(gaps > 0, self.reference.surprise(gaps, own=own), 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how many times others have rows before, and the longest gap of normal rows."""
        most = f"{self.reference.ascending[-1]:,.0f}"
        entities = shown_cells(rows[self.columns[1]], show)
        for gap, of in zip(rows[self.more[0]].values.tolist(), entities, strict=True):
            text = f"; before it {of} lacks {gap:,.0f} rows that others have"
            yield Said(f"{text}, at most {most} in normal rows", Usual("value", most, (0.0,)))
