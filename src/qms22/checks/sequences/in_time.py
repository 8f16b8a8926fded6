"""Rows after each other: by which date, of which entities, and what they say about each other."""

from __future__ import annotations

from collections import Counter

import numpy as np

from qms22.checks.arrays import Ints
from qms22.checks.sequences.in_order import Derived, orders_of
from qms22.checks.sequences.limits import NearLimits, varies_widely
from qms22.checks.sequences.repetition import Bursts, Runs, Standstill
from qms22.checks.sequences.series import find_series
from qms22.checks.sequences.steps import CounterSteps, Gaps
from qms22.checks.single import LEAST_ENTITIES
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.columns.date_parts import has_days

# Hours within which rows of an entity are counted.
_WINDOWS = (1, 24)
# Columns by which rows may belong together: those with the most levels, and those with the fewest.
_MOST_ENTITIES = 5
_LEAST_ROWS = 3.0
# Rows at once are counted of entities; where nearly all rows have their own, there is nothing to
# count.
_MOST_CROWDS = 0.9
# Of longer tables it takes long to look at rows after each other.
MOST_ROWS = 200_000
# Rows are in order of a date that is so much correlated with their places, in ranks.
_IN_ORDER = 0.9
# Numbers with fewer values are equal in rows after each other by chance.
_LEAST_VALUES = 20


def time_column(rows: Columns) -> str:
    """Return the date by which rows are in order: no time of day, and rising where one does.

    Days of hire rise with the numbers of staff in each month, but not from month to month.
    """
    found = [("", (0.0, False, 0))]
    for name, cells in rows.items():
        values = cells.values[cells.has_value] if cells.form == "date" else np.empty(0)
        if len(values) > 1 and has_days(cells):
            rising = round(float(np.mean(np.diff(values) >= 0)), 1)
            different, ranks = np.unique(values, return_inverse=True)
            related = len(different) > 1 and np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
            found.append((name, (rising, bool(related >= _IN_ORDER), len(different))))
    return max(found, key=lambda each: each[1])[0]


def time_order(rows: Columns) -> Ints:
    """Return rows by their date; as they are if there is none."""
    name = time_column(rows)
    return np.argsort(rows[name].values, kind="stable") if name else np.arange(count_rows(rows))


def time_distance(normal: Columns, batch: Columns) -> float:
    """Return how far a batch is from normal rows in time, in units of half of their time."""
    name = time_column(normal)
    if not name or name not in batch or batch[name].form != "date":
        return 0.0
    times, later = (table[name].values[table[name].has_value] for table in (normal, batch))
    if not len(times) or not len(later):
        return 0.0
    first, middle, last = np.quantile(times, [0.01, 0.5, 0.99])
    return float(abs(np.median(later) - middle) / max((last - first) / 2, 1.0))


def is_of_another_time(normal: Columns, batch: Columns) -> bool:
    """Return whether the middle of a batch is outside the time of the normal rows."""
    return time_distance(normal, batch) > 1.0


def find_sequences(
    rows: Columns, by: str | None = None, time: str | None = None
) -> tuple[Derived, ...]:
    """Return what known-normal rows say about each other, where tables are not too long.

    `by` and `time` are the columns of entities and of dates that the user has named.
    """
    n_rows, date = count_rows(rows), time or time_column(rows)
    if n_rows > MOST_ROWS:
        return ()
    orders = orders_of(rows, date)
    n_levels = {name: len(cells.levels) for name, cells in rows.items() if cells.is_text}
    levels = {name: n for name, n in n_levels.items() if 1 < n <= n_rows / _LEAST_ROWS}
    by_size = sorted(levels, key=levels.__getitem__)
    some = dict.fromkeys(by_size[:_MOST_ENTITIES] + by_size[-_MOST_ENTITIES:])
    entities = tuple(some) if by is None else (by,)
    many = (n for n, k in n_levels.items() if LEAST_ENTITIES <= k <= _MOST_CROWDS * n_rows)
    crowds = dict.fromkeys([*many, *([] if by is None else entities)])
    numbers = [
        name
        for name, cells in rows.items()
        if cells.form == "number" and len(np.unique(cells.values[cells.has_value])) >= _LEAST_VALUES
    ]
    counters = {}
    for name in numbers:
        tried = [CounterSteps(name, entity, date) for entity in entities]
        rising = ((each.rising(rows, orders), each.entity) for each in tried)
        share, entity = max(rising, default=(0.0, ""))
        if share > 0:
            counters[name] = CounterSteps(name, entity, date).continued(rows)
    others = [name for name in numbers if name not in counters]
    found: list[Derived | None] = [
        NearLimits(name, entity, date)
        for name in others
        for entity in entities
        if varies_widely(rows[name].values, rows[entity].values)
    ]
    # Without dates nobody knows what comes after what.
    if date in rows:
        found += [Gaps.find(rows, entity, date, orders) for entity in entities]
        found += [Runs(name, entity, date) for entity in ("", *entities) for name in others]
        found += [Bursts(date, entity, date, hours) for entity in crowds for hours in _WINDOWS]
    found += counters.values()
    if date in rows:
        series = find_series(rows, ("", *entities), others, date, orders)
        # Most numbers of an instrument are series; those of a customer are not.
        n_series = Counter(each.entity for each in series)
        panels = [entity for entity, n in n_series.items() if 2 * n > len(others)]
        stand = (Standstill.find(rows, others, entity, date) for entity in panels)
        found += [*series, *stand]
    return tuple(each for each in found if each is not None)
