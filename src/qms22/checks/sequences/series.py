"""Numbers that change little from row to row of an entity: the days of a state, of a sensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qms22._runtime import exact
from qms22.checks.arrays import Floats
from qms22.checks.check import Said, Shower, Usual, shown_cells
from qms22.checks.codings import Coding
from qms22.checks.groups import GroupCheck, Grouping
from qms22.checks.sequences.in_order import Derived, Orders
from qms22.tables.columns.cells import Columns, count_rows

# A panel has one row for each entity and time, but for a few, and so many rows of an entity.
_NEARLY_ALL = 0.95
_LEAST_ROWS = 8.0
# Rows before and after that a row is compared with, and how far away they are, in usual steps.
_STEPS = (-2, -1, 1, 2)
_REACH = 2.5
_LEAST_NEAR = 2
# One series alone has too few ends that say how far numbers are there from two on one side.
_LEAST_NEAR_OF_ONE = 3
# Numbers are a series if rows differ from those around them by so much less than from all others.
_SMOOTH = 0.6
# Logarithms begin at this quantile of the positive numbers.
_SMALL = 0.05


@dataclass(frozen=True)
class Series(Derived):
    """A number whose rows are compared with those before and after of the same entity."""

    reach: float  # rows further away are not compared, in microseconds
    small: float  # what is added before taking logarithms; 0 for plain numbers
    kinds: ClassVar = ("series",)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns without which there is nothing to derive."""
        return (*self.columns, self.date)

    def grouping(self, rows: Columns) -> Grouping:
        """Return the rows of each entity."""
        codings = (Coding.of_levels(rows[name]) for name in self.columns[1:])
        return Grouping.learn(tuple(codings), rows)

    def scaled(self, rows: Columns) -> Floats:
        """Return the numbers, or their logarithms."""
        values = rows[self.name].values
        return exact.log(np.maximum(values, 0.0) + self.small) if self.small else values

    def plain(self, scaled: float) -> float:
        """Return what a number was before it was scaled."""
        return float(exact.exp(min(scaled, 700.0)) - self.small) if self.small else scaled

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Return how far numbers are from the middle of those around them; NaN without these.

        Where one of those is wrong, a number is near another.
        """
        values = self.scaled(rows)
        return values - np.clip(values, *self.around(rows, orders))

    def around(self, rows: Columns, orders: Orders) -> Floats:
        """Return the least and the largest of the numbers around; of four, without these two."""
        in_order = orders(self.entity)
        order, entities = in_order
        values, times = self.scaled(rows)[order], rows[self.date].values[order]
        line = np.arange(len(order))
        near = np.full((len(order), len(_STEPS)), np.nan)
        for at, step in enumerate(_STEPS):
            there = line + step
            there = np.where((there < 0) | (there >= len(order)), 0, there)
            is_near = entities == entities[there]
            is_near &= np.abs(times - times[there]) <= self.reach
            near[is_near, at] = values[there[is_near]]
        near.sort(axis=1)  # NaN come last
        counts = np.count_nonzero(~np.isnan(near), axis=1)
        out = (counts == len(_STEPS)).astype(np.intp)
        ends = np.array([near[line, at] for at in (out, np.maximum(counts - 1 - out, 0))])
        least = _LEAST_NEAR if self.entity else _LEAST_NEAR_OF_ONE
        return in_order.put(np.where(counts >= least, ends, np.nan))

    def learn(self, rows: Columns) -> SeriesCheck | None:
        """Learn from known-normal rows, with the derived column."""
        learned = GroupCheck.learn(rows[self.keys[0]], self.grouping(rows), rows)
        if learned is None:
            return None
        of_series = {"columns": self.columns, "more": (self.date, *self.keys), "series": self}
        return SeriesCheck(**vars(learned[1]) | of_series)


def find_series(
    rows: Columns, entities: Sequence[str], numbers: Iterable[str], date: str, orders: Orders
) -> list[Series]:
    """Return the numbers of known-normal rows that are series, if the table is a panel.

    Each is one by the column with the most entities or without one, whichever is smoother: the door
    beside a sensor says nothing about it.
    """
    reaches: dict[int, tuple[str, float]] = {}
    n_rows = count_rows(rows)
    for entity in entities:
        n_levels = len(rows[entity].levels) if entity else 1
        if n_levels * _LEAST_ROWS > n_rows:
            continue
        steps = orders(entity).steps(rows[date].values)
        if np.count_nonzero(~(steps > 0)) <= (1 - _NEARLY_ALL) * n_rows:
            reach = _REACH * float(np.nanmedian(steps)) if len(steps) else 0.0
            reaches.setdefault(n_levels, (entity, reach))
    panels = [reaches[n_levels] for n_levels in {1, max(reaches, default=1)} & {*reaches}]
    found = []
    for name in numbers if panels else ():
        values = rows[name].values
        positive = values[values > 0]
        is_log = len(positive) and np.nanmean(values >= 0) >= 1 - (1 - _NEARLY_ALL) / 5
        small = float(np.quantile(positive, _SMALL)) if is_log else 0.0
        tried = [Series(name, entity, date, reach, small) for entity, reach in panels]
        smooth = [(_roughness(each, rows, orders), each) for each in tried]
        (_, is_smooth), series = min(smooth, key=lambda each: each[0][0])
        if is_smooth:
            found.append(series)
    return found


def _roughness(series: Series, rows: Columns, orders: Orders) -> tuple[float, bool]:
    """Return how far numbers are from those around, and whether that is less than from others."""
    scaled = series.scaled(rows)
    differences = np.abs(scaled - np.mean(series.around(rows, orders), axis=0))
    there = ~np.isnan(differences)
    if not there.any():
        return np.inf, False
    groups = series.grouping(rows).numbers(rows)[there]
    order = np.lexsort((scaled[there], groups))
    starts = np.flatnonzero(np.append(True, np.diff(groups[order]) > 0))
    sizes = np.diff(np.append(starts, len(order)))
    medians = scaled[there][order][starts + sizes // 2]
    far = np.abs(scaled[there][order] - np.repeat(medians, sizes))
    middle = float(np.median(differences[there]))
    return middle, middle <= _SMOOTH * float(np.median(far))


@dataclass(frozen=True, eq=False)
class SeriesCheck(GroupCheck):
    """A number unlike those before and after of the same entity, by the column of differences."""

    series: Series

    def numbers(self, rows: Columns, *, own: bool = False) -> Floats:
        """Return how far numbers are off for their entities; NaN where too little is known."""
        return super().numbers({**rows, self.columns[0]: rows[self.more[-1]]}, own=own)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return what the numbers around are, and how far normal ones are off."""
        name, *by = self.columns
        around = self.series.scaled(rows) - rows[self.more[-1]].values
        of_rows = [""] * count_rows(rows)
        for each in by:
            of_rows = [f" of {cell}" for cell in shown_cells(rows[each], show)]
        for of, near in zip(of_rows, around.tolist(), strict=True):
            if np.isnan(near):
                yield Said("")
                continue
            about = float(f"{self.series.plain(near):.4g}")
            usual = Usual.of_values("value", rows[name], (about,), show)
            yield Said(f"; the rows before and after{of} have about {usual.text}", usual)
