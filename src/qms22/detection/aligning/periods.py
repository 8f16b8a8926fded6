"""Columns that only say when the rows of a batch were made: dates, periods and counters.

A later date, month or order number is no reason to suspect a row.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from qms22.checks.single import LEAST_ENTITIES
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.date_parts import DAY, part_name, part_of, parts_about_time
from qms22.tables.columns.kinds import MOST_SINGLE, says_identifier, single_share
from qms22.tables.columns.plan import ColumnPlan

# The share of the batch that has to be outside the normal values. Measurements can be whole numbers
# too, and half of a batch can be anomalies: only if nearly all rows are outside, a column of whole
# numbers or levels is taken for a period or a counter.
_MOST_DATES = 1 / 2
_NEARLY_ALL = 0.9
# A gap between the days of normal rows is longer than a week, since weekends and holidays are none,
# and than three times those that are longer than nearly all others.
_LEAST_GAP = 7.0
_LONG_GAP = 3.0
# In a smaller batch, all rows may well be anomalies.
_LEAST_ROWS = 10

_DATE_NOTE = "most of the batch is outside the normal dates"
_LATER_NOTE = "the batch is from another time; only what does not age is compared"
_NUMBER_NOTE = (
    "nearly all of the batch is outside the normal range: looks like a period or a counter; ignored"
)
_LEVEL_NOTE = (
    "nearly all of the batch has levels that no normal row has: looks like a period; ignored"
)
CASES_NOTE = "names that each batch has others of; only how they are written is compared"
_CALENDAR_NOTE = "says when a row was made, and the batch is from another time; ignored"
_WORD_NOTE = "nearly all of the batch has texts of another kind; ignored"
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
# Numbers of rows are spread evenly but for such a share; of measurements most are in the middle.
_MOST_UNEVEN = 0.1


def find_periods(
    encoder: TabularEncoder, normal: Mapping[str, Cells], rows: Mapping[str, Cells]
) -> dict[str, str]:
    """Return the columns to leave out because they only say when rows were made, with a note.

    - a date, if most rows are before or after all normal ones, or in a gap between them. Its hour
      and weekday are still used if normal rows cover some days or weeks, and the others the hours
      or weekdays of most of them: those of a Tuesday are no anomalies;
    - years, quarters, months, weeks and days as whole numbers, by their names, if most rows are
      outside the normal dates, or outside the normal range of one of these columns;
    - whole numbers, if nearly all rows are above or nearly all below all normal ones: a month, a
      year, a counter. Numbers with decimals are measurements and stay;
    - a category whose levels recur, if nearly all rows have levels that no normal row has. If
      these are many, they are no periods, but name patients or orders: the note is `CASES_NOTE`.

    Whole numbers and categories stay if there are few rows, or if no other column would be left.
    A column of numbers or dates in which nearly all rows have words that no normal row has cannot
    be compared, and is left out as well.
    """
    dates: dict[str, str] = {}
    others: dict[str, str] = {}
    for name in encoder.groups_:
        plan = encoder._plans_by_name[name]
        if _is_later(plan, normal[name], rows[name]):
            dates |= _dates_to_leave_out(plan, normal[name], rows[name])
        elif (note := _note_of_unlike(plan, normal[name], rows[name])) and (
            note != CASES_NOTE or name not in (encoder.kinds or {})
        ):
            others[name] = note
    if dates:
        # Other dates of a later batch are later, too: they are compared by what does not age.
        for name in encoder.groups_:
            plan, days = encoder._plans_by_name[name], part_name(name, "days")
            if days in plan.outputs and not dates.keys() & {name, days}:
                has_rest = bool(plan.without_parts([days]).outputs)
                dates |= {days: _LATER_NOTE} if has_rest else {name: f"{_LATER_NOTE}; ignored"}
    others |= _calendar_columns(encoder, normal, rows, is_later=bool(dates))
    is_any_left = bool(encoder.groups_.keys() - dates.keys() - others.keys())
    return {**dates, **others} if is_any_left else dates


def _calendar_columns(
    encoder: TabularEncoder,
    normal: Mapping[str, Cells],
    rows: Mapping[str, Cells],
    *,
    is_later: bool,
) -> dict[str, str]:
    """Return the columns that tell the month or week, if they or dates tell that it is another."""
    names = [
        name
        for name, plan in encoder._plans_by_name.items()
        if plan.outputs
        and name not in (encoder.kinds or {})
        # Others in a later batch: months, but no hours.
        and _part(normal[name]) not in {None, *_RECURRING}
    ]
    is_later |= any(
        _count_whole_outside(normal[name], rows[name]) > _most(rows[name], _MOST_DATES)
        for name in names
    )
    return dict.fromkeys(names, _CALENDAR_NOTE) if is_later else {}


def _is_later(plan: ColumnPlan, normal: Cells, rows: Cells) -> bool:
    if plan.kind != "date" or part_name(plan.name, "days") not in plan.outputs:
        return False
    n_outside = int(np.count_nonzero(_outside(normal.values, rows.values)))
    return n_outside > _MOST_DATES * len(rows.values)


def _outside(
    known: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which dates are before, after or in gaps between normal ones.

    A gap is longer than a week and than nearly all others between days of normal rows: March, if
    these are February and April.
    """
    below, above = values < np.nanmin(known), values > np.nanmax(known)
    days = np.unique(known[~np.isnan(known)] // DAY)
    steps = np.diff(days)
    if not len(steps):
        return below, above, np.zeros(len(values), dtype=bool)
    longest = max(_LEAST_GAP, _LONG_GAP * float(np.quantile(steps, 0.95)))
    places = values // DAY
    after = np.clip(np.searchsorted(days, places), 1, len(days) - 1)
    before, behind = days[after - 1], days[after]
    return below, above, (before < places) & (places < behind) & (behind - before > longest)


def _dates_to_leave_out(plan: ColumnPlan, normal: Cells, rows: Cells) -> dict[str, str]:
    """Return the parts of dates to leave out, or the column if that is all of them."""
    # Held-out normal rows may be outside, too: a few, on either side.
    later = max((rows.values[each] for each in _outside(normal.values, rows.values)), key=len)
    parts = parts_about_time(plan.name, normal.values, later)
    rest = plan.without_parts(parts)
    if not rest.outputs:
        return {plan.name: f"{_DATE_NOTE}; ignored"}
    left = {*map(part_of, rest.value_outputs)}
    cycles = " and ".join(
        each for each in ("hour", "weekday") if part_name(plan.name, each) in left
    )
    return dict.fromkeys(parts, f"{_DATE_NOTE}; only {cycles} used")


def _most(rows: Cells, share: float) -> float:
    """Return the number of rows above which a column is a period; in a small batch none is."""
    n_rows = len(rows.values)
    return share * n_rows if n_rows >= _LEAST_ROWS else n_rows


def _note_of_unlike(plan: ColumnPlan, normal: Cells, rows: Cells) -> str:
    """Return why a column is left out, if nearly all rows are unlike the normal ones."""
    known, most = set(normal.levels), _most(rows, _NEARLY_ALL)
    if plan.kind == "category":
        # The levels of a period recur. The share of normal rows with a level of their own estimates
        # how many rows have unseen levels (Good and Turing).
        is_new = _count_new(rows, rows.values, known) > most
        if is_new and len(np.unique(rows.values[rows.has_value])) >= LEAST_ENTITIES:
            return CASES_NOTE
        return _LEVEL_NOTE if is_new and single_share(normal) <= MOST_SINGLE else ""
    if rows.words is not None and _count_new(rows, rows.words, known) > most:
        return _WORD_NOTE
    is_beyond = plan.kind == "number" and _count_whole_outside(normal, rows) > most
    return _NUMBER_NOTE if is_beyond else ""


def _count_whole_outside(normal: Cells, rows: Cells) -> int:
    """Count the whole numbers on one side of the normal values; 0 if these are not whole."""
    known, values = normal.values[normal.has_value], rows.values
    if not (known == np.rint(known)).all():
        return 0
    values = values[values == np.rint(values)]
    return int(max(np.sum(values < known.min()), np.sum(values > known.max())))


def _count_new(cells: Cells, codes: NDArray[np.intp], known: Collection[str]) -> int:
    """Count the cells with a level, by its position in `cells.levels`, that is not known."""
    is_new = np.array([*(level not in known for level in cells.levels), False])
    return int(np.count_nonzero(is_new[codes]))


def says_when(cells: Cells) -> bool:
    """Return whether a column has parts of dates, as whole numbers or in words such as "Mon".

    Its name says so, and its range or the number of its levels.
    """
    if cells.is_text:
        part = _part_of_name(cells.name)
        return part is not None and len(cells.levels) <= _UNITS[part][1]
    return _part(cells) is not None


def _part(cells: Cells) -> str | None:
    """Return the part of a date that a column has; None if it is another column."""
    values = cells.values[cells.has_value] if cells.form == "number" else np.empty(0)
    part, (first, last, _) = _part_of_name(cells.name), _UNITS["year"]
    if len(values) and first <= values.min() // 100 and values.max() // 100 <= last:
        # 202403 is a month whatever its name, unless this says that it is a week.
        part, values = part or "month", values % 100
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


def are_counted(normal: Cells, batch: Cells) -> bool:
    """Return whether numbers count the rows of both tables: in order, or evenly without gaps."""
    known, values = (each.values[each.has_value] for each in (normal, batch))
    if min(len(known), len(values)) < 2:
        return False
    if _is_rising(known) and _is_rising(values):
        return True
    sign = np.sign(np.median(values) - np.median(known)) or 1.0
    known, values = np.sort(sign * known), sign * values
    gap = values[values > known[-1]].min(initial=np.inf) - known[-1]
    away = known - np.linspace(known[0], known[-1], len(known))
    is_even = np.abs(away).max() <= _MOST_UNEVEN * np.ptp(known)
    return bool(gap <= np.diff(known).max() and (is_even or says_identifier(normal.name)))


def _is_rising(values: NDArray[np.float64]) -> bool:
    steps = np.diff(values)
    return bool((steps > 0).any() and np.mean(steps >= 0) >= _LEAST_RISING)
