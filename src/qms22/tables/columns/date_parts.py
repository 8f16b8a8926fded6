"""Columns of the matrix that a date becomes: the days since the first one, and cyclic parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.tables.columns.cells import Cells
from qms22.tables.texts.date_text import DAY as DAY


def has_days(dates: Cells) -> bool:
    """Return whether a column has days, and not only times of the day."""
    return bool(np.nanmax(np.abs(dates.values), initial=0.0) >= 2 * DAY)


def days_between(earlier: Cells, later: Cells) -> NDArray[np.float64]:
    """Return the days from one date to another; NaN where one of them is missing."""
    days: NDArray[np.float64] = (later.values - earlier.values) / DAY
    return days


# Normal rows of less time, or fewer days, say nothing about the hours or weekdays of other rows.
_LEAST_DAYS = {"days": np.inf, "hour": 2, "weekday": 14}

# Other rows of less than this share of a cycle are all of some hours or weekdays. They are compared
# if these are the hours or weekdays of at least this share of the normal rows: of all that work.
_LEAST_CYCLE = 3 / 4
_LEAST_MET = 3 / 4


def part_name(name: str, part: str) -> str:
    """Return the name of a part of a date column: "days", "hour" or "weekday"."""
    return f"{name} ({part})"


def split_part(name: str) -> tuple[str, str]:
    """Return the column of which a name means a part, and the end of the name that says so.

    >>> split_part("sold (days)"), split_part("sold")
    (('sold', ' (days)'), ('sold', ''))
    """
    ends = (part_name("", part) for part in _LEAST_DAYS)
    end = next((end for end in ends if name.endswith(end)), "")
    return name.removesuffix(end), end


def part_of(output: str) -> str:
    """Return the name of the part of a date that a column of the matrix belongs to."""
    return output.replace(" sine)", ")").replace(" cosine)", ")")


def parts_about_time(
    name: str, values: NDArray[np.float64], later: NDArray[np.float64]
) -> list[str]:
    """Return the names of parts that only say when rows were made, if others are from later days.

    `name` is the column, `values` are its dates in the normal rows, and `later` those of other rows
    that are outside of these.
    """
    present = values[~np.isnan(values)]
    n_days = min(np.ptp(present) / DAY, len(np.unique(present // DAY)))
    return [
        part_name(name, part)
        for part, least in _LEAST_DAYS.items()
        if n_days < least or _is_part_of_cycle(part, values, later)
    ]


def _is_part_of_cycle(part: str, values: NDArray[np.float64], later: NDArray[np.float64]) -> bool:
    """Return whether rows are of a part of the day or week: of a Tuesday, or of one hour."""
    cycle = DAY if part == "hour" else 7 * DAY
    # Without the first and last rows: some of them may be of another time.
    first, last = np.quantile(later, [0.05, 0.95])
    if last - first >= _LEAST_CYCLE * cycle:
        return False
    known, met = (
        dates[~np.isnan(dates)] % cycle // (DAY / 24 if part == "hour" else DAY)
        for dates in (values, later)
    )
    return bool(np.isin(known, met).mean() < _LEAST_MET)


def date_outputs(name: str, values: NDArray[np.float64], family: str) -> tuple[str, ...]:
    """Return the names of the columns of the matrix for the dates of normal rows.

    The hour and the weekday are used if they vary. A month has no weekday, and a time of day has
    only hours. The family is as in `DateFormat`.
    """
    parts = [] if family == "time" else ["days"]
    if len(np.unique(values % DAY)) > 1:
        parts += ["hour sine", "hour cosine"]
    if family in ("date", "week") and len(np.unique(values // DAY % 7)) > 1:
        parts += ["weekday sine", "weekday cosine"]
    return tuple(part_name(name, part) for part in parts)


def date_part(output: str, values: NDArray[np.float64], first: float) -> NDArray[np.float64]:
    """Return a column of the matrix by its name.

    `output` is one of `date_outputs`, `values` are dates in microseconds since 1970, and days count
    from the date `first`.
    """
    part, _, wave = output[output.rindex("(") + 1 : -1].partition(" ")
    if part == "days":
        return (values - first) / DAY
    # Of the day, or of the week; 1970 began on a Thursday.
    turns = values % DAY / DAY if part == "hour" else (values // DAY + 3) % 7 / 7
    return exact.sine(2 * np.pi * turns + (np.pi / 2 if wave == "cosine" else 0.0))
