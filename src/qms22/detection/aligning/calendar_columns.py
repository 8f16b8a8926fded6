"""Columns that say when a row was made: years, months, days, weekdays, hours and counters."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells

# What a column counts: the least and largest number there is, and last words of its name.
_UNITS = {
    "year": (1900, 2100, "year yr jahr annee ano"),
    "quarter": (1, 4, "quarter qtr quartal trimestre"),
    "month": (1, 12, "month monat mois mes"),
    "week": (0, 53, "week wk woche kw semaine semana isoweek weekofyear"),
    "day of the year": (1, 366, "dayofyear doy yearday yday"),
    "day": (1, 31, "day tag jour dia mday dayofmonth"),
    "weekday": (0, 7, "weekday wday dow dayofweek wochentag"),
    "hour": (0, 24, "hour stunde heure hora"),
}
_PARTS = {word: part for part, (_, _, words) in _UNITS.items() for word in words.split()}
# Parts that a later batch may repeat and that say more than when it was made: odd hours.
_RECURRING = frozenset({"weekday", "hour"})
_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Numbers that rise or stay in nearly all steps from row to row are counters.
_LEAST_RISING = 0.95


def says_when(cells: Cells) -> bool:
    """Return whether a column has parts of dates, as whole numbers or in words such as "Mon".

    Its name says so, and its range or the number of its levels.
    """
    if cells.is_text:
        part = _part_of_name(cells.name)
        return part is not None and len(cells.levels) <= _UNITS[part][1]
    return _part(cells) is not None


def says_which_time(cells: Cells) -> bool:
    """Return whether a column of numbers has others in a later batch: months, but no hours."""
    return _part(cells) not in {None, *_RECURRING}


def _part(cells: Cells) -> str | None:
    """Return the part of a date that a column has; None if it is another column."""
    values = cells.values[cells.has_value] if cells.form == "number" else np.empty(0)
    part = _part_of_name(cells.name)
    if part is None or not len(values):
        return None
    low, high, _ = _UNITS[part]
    is_in_range = values.min() >= low and values.max() <= high
    return part if is_in_range and (values == np.rint(values)).all() else None


def _part_of_name(name: str) -> str | None:
    """Return the part that a name means: "order_month" is a month, "day_of_month" is a day."""
    words = [word.lower() for word in _NAME.findall(name)]
    if "of" in words[1:-1]:
        at = words.index("of", 1)
        joined = words[at - 1] + "of" + words[-1]
        return _PARTS.get(joined) or _PARTS.get(words[at - 1])
    return _PARTS.get(words[-1]) if words else None


def is_counter(values: NDArray[np.float64]) -> bool:
    """Return whether numbers rise from row to row, as order numbers do."""
    steps = np.diff(values[~np.isnan(values)])
    return bool((steps > 0).any() and np.mean(steps >= 0) >= _LEAST_RISING)
