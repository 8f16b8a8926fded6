"""Checks of dates: time of day, weekday, days between two of them, and dates that cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from qms22._runtime import exact
from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import Check, NumberCheck, Said, Shower, Usual, share_of_rows, shown_cells
from qms22.checks.surprise import LevelReference, NumberReference, gaps_on_clock
from qms22.tables.columns.cells import Cells, Columns, show_value
from qms22.tables.columns.date_parts import DAY, days_between

_MINUTE = 60e6
# Fewer days than this are shown as hours, and fewer hours than this as minutes.
_FEW_DAYS = 2.0
_FEW_HOURS = 2.0
# Minutes from a time to those that are near to it, and that make a difference.
_NEAR = 30.0
_LEAST_GAP = 10.0
_FEW = 9  # so many rows near to a time are few: where there are more, they do not make it odd
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# A normal table of fewer days may lack a weekday by chance.
_LEAST_DAYS = 28
# A batch may be of another time than the normal rows. So many times what these cover, and so many
# days, may lie between them.
_MOST_SPANS = 5.0
_LEAST_SPAN = 366 * DAY


@dataclass(frozen=True)
class TimeOfDayCheck(Check):
    """A time of day at which nothing happens among normal rows."""

    minutes: Floats
    counts: Ints
    reference: NumberReference

    @classmethod
    def learn(cls, cells: Cells) -> TimeOfDayCheck | None:
        """Learn from the known-normal rows; return None if all have the same time."""
        minutes, counts = np.unique(_minutes(cells.values[cells.has_value]), return_counts=True)
        if len(minutes) < 3:
            return None
        gaps = gaps_on_clock(minutes, _near_times(minutes, counts), own=True)
        reference = NumberReference.learn(np.repeat(gaps, counts), least_unit=_LEAST_GAP)
        if reference is None:
            return None
        return cls((cells.name,), minutes, counts, reference)

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how far the times are from those of normal rows."""
        times = _near_times(self.minutes, self.counts)
        values = rows[self.columns[0]].values
        gaps = gaps_on_clock(_minutes(values), times, own=own)
        # Only far from others is odd, not near to them. Midnight to the microsecond is a date whose
        # time nobody has written down.
        is_far = (gaps > np.median(self.reference.ascending)) & (values % DAY != 0)
        return np.where(is_far, self.reference.surprise(gaps, own=own), 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return the times between which no normal row is."""
        for minute in _minutes(rows[self.columns[0]].values).tolist():
            yield Said("") if math.isnan(minute) else self._comparison(minute)

    def _comparison(self, minute: float) -> Said:
        n = int(self.counts.sum())
        distance = np.abs((self.minutes - minute + 720.0) % 1440.0 - 720.0)
        for reach, where in ((_NEAR, "within half an hour of"), (0.0, "at")):
            n_near = int(self.counts[distance <= reach].sum())
            if 0 < n_near <= _FEW:
                return Said(f"; {share_of_rows(n_near, n)} are {where} that time of day")
        after = int(np.searchsorted(self.minutes, minute)) % len(self.minutes)
        before, later = _clock(self.minutes[after - 1]), _clock(self.minutes[after])
        usual = Usual("range", f"{later} to {before}", (later, before))
        return Said(f"; none of {n:,} normal rows is between {before} and {later}", usual)


@dataclass(frozen=True)
class WeekdayCheck(Check):
    """A weekday on which nothing happens among normal rows."""

    reference: LevelReference

    @classmethod
    def learn(cls, cells: Cells) -> WeekdayCheck | None:
        """Learn from the known-normal rows; return None if they are of too few days."""
        present = cells.values[~np.isnan(cells.values)]
        if len(np.unique(present // DAY)) < _LEAST_DAYS:
            return None
        counts = np.bincount(_weekdays(present), minlength=7)
        return cls((cells.name,), LevelReference(counts))

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd the weekdays are."""
        days = _weekdays(rows[self.columns[0]].values)
        return np.where(days < 0, 0.0, self.reference.surprise(days, own=own))

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows are of these weekdays."""
        counts, n = self.reference.counts, self.reference.n
        for day in _weekdays(rows[self.columns[0]].values).tolist():
            often = share_of_rows(int(counts[day]), n)
            usual = Usual.of_levels(counts, int(counts[day]), _WEEKDAYS.__getitem__)
            yield Said("") if day < 0 else Said(f" is a {_WEEKDAYS[day]}, as in {often}", usual)


@dataclass(frozen=True)
class AbsurdDateCheck(Check):
    """A date of another age, where the batch is of another time than the normal rows.

    `first` and `last` are the ends of the dates that may be; n normal rows have one.
    """

    first: float
    last: float
    n: int

    @classmethod
    def learn(cls, cells: Cells) -> AbsurdDateCheck | None:
        """Learn from the known-normal rows; return None if none has a date."""
        present = cells.values[cells.has_value]
        if not len(present):
            return None
        low, high = float(present.min()), float(present.max())
        reach = max(_MOST_SPANS * (high - low), _LEAST_SPAN)
        return cls((cells.name,), low - reach, high + reach, len(present))

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how far dates are outside."""
        values = rows[self.columns[0]].values
        beyond = np.maximum(self.first - values, values - self.last) / _LEAST_SPAN
        # As odd as a level that no normal row has, in a column with one level.
        return np.where(beyond > 0, 2.0 * exact.log(self.n + 1.0), 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words that the dates are of another age."""
        cells = rows[self.columns[0]]
        usual = Usual.of_values("range", cells, (self.first, self.last), show)
        text = f" is years away from all {self.n:,} normal rows"
        return [Said(text, usual)] * len(cells.values)


@dataclass(frozen=True, eq=False)
class IntervalCheck(NumberCheck):
    """Days between two dates of a row that are too many, too few, or of the wrong sign.

    Its columns are the later date and the earlier one, in the order of the table; its reference has
    the days from the earlier column to the later one.
    """

    low: float  # 98 % of the normal rows are between these ends
    high: float
    tenths: tuple[float, float]  # 80 % of them are between these
    moments: tuple[float, float]  # the medians of both dates
    # By how many days a batch is later in the later date only: so much older are its rows, as
    # people are from one year to the next.
    aged: float = 0.0

    @classmethod
    def learn(cls, earlier: Cells, later: Cells) -> IntervalCheck | None:
        """Learn from the known-normal rows; return None if there are too few with both dates."""
        days = days_between(earlier, later)
        if np.isnan(days).all():
            return None
        low, tenth, other, high = np.nanquantile(days, [0.01, 0.1, 0.9, 0.99]).tolist()
        are_few = max(abs(low), abs(high)) < _FEW_DAYS
        reference = NumberReference.learn(days, least_unit=_MINUTE / DAY if are_few else 1.0)
        if reference is None:
            return None
        moments = float(np.nanmedian(later.values)), float(np.nanmedian(earlier.values))
        names = later.name, earlier.name
        return cls(names, reference, low, high, (tenth, other), moments)

    def numbers(self, rows: Columns, *, own: bool = False) -> Floats:
        """Return the days between the dates."""
        days = days_between(rows[self.columns[1]], rows[self.columns[0]])
        if own or not self.aged:
            return days
        middle = sum(self.tenths) / 2
        older = np.where(days > middle, np.maximum(days - self.aged, middle), days)
        return np.where(days < middle, np.minimum(days + self.aged, middle), older)

    def aligned(self, batch: Columns) -> Self:
        """Return the check for a batch of another time."""
        moved = [
            (float(np.nanmedian(batch[name].values)) - moment) / DAY
            for name, moment in zip(self.columns, self.moments, strict=True)
            if batch[name].has_value.any()
        ]
        aged = abs(sum(moved[:1]) - sum(moved[1:]))
        days = self.numbers(batch, own=True)
        if aged and not np.isnan(days).all():
            # New rows, which are not old, move the medians less than age does.
            low, high = np.nanquantile(days, [0.1, 0.9]).tolist()
            aged = max(aged, self.tenths[0] - low, high - self.tenths[1])
        return super(IntervalCheck, replace(self, aged=aged)).aligned(batch)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return the days between the dates, or the hours if they are few, and what is usual."""
        others = shown_cells(rows[self.columns[1]], show)
        for other, days in zip(others, self.numbers(rows, own=True).tolist(), strict=True):
            here, usual = self._compared(days)
            text = f" is {here} {other}; in 98 % of normal rows it is {usual}"
            yield Said(text, Usual("rule", usual))

    def _compared(self, between: float) -> tuple[str, str]:
        """Return a number of days as text, and the usual ones."""
        all_days = (between, self.low, self.high)
        unit, factor = unit_of_days(max(map(abs, all_days)))
        here, low, high = (_short(factor * abs(days)) for days in all_days)
        when, of_low, of_high = ("before" if days < 0 else "after" for days in all_days)
        if of_low != of_high:
            usual = f"{low} {unit} {of_low} to {high} {unit} {of_high}"
        elif self.low or self.high:
            ends = dict.fromkeys((low, high) if of_low == "after" else (high, low))
            usual = f"{' to '.join(ends)} {unit} {of_low}"
        else:
            usual = "the same"
        return f"{here} {unit} {when}", usual


def unit_of_days(longest: float) -> tuple[str, float]:
    """Return the unit in which to show days up to the longest, and how many of it a day has.

    >>> unit_of_days(40.0), unit_of_days(1.5), unit_of_days(0.03)
    (('days', 1.0), ('hours', 24.0), ('minutes', 1440.0))
    """
    if longest >= _FEW_DAYS:
        return "days", 1.0
    return ("hours", 24.0) if 24.0 * longest >= _FEW_HOURS else ("minutes", 1440.0)


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.1f}".removesuffix(".0")


def _minutes(stamps: Floats) -> Floats:
    return np.floor(stamps % DAY / _MINUTE)


def _near_times(minutes: Floats, counts: Ints) -> Floats:
    """Return minutes as often as they are there, up to the number that `gaps_on_clock` looks at."""
    return np.repeat(minutes, np.minimum(counts, 4))


def _weekdays(stamps: Floats) -> Ints:
    """Return days from Monday on, -1 for no date; 1970 began on a Thursday."""
    return np.nan_to_num((stamps // DAY + 3) % 7, nan=-1.0).astype(np.intp)


def _clock(minute: float) -> str:
    return show_value("date", float(minute) * _MINUTE)[11:16] or "00:00"
