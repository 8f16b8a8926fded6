"""Dates and times in texts, in the usual formats of several countries."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qms22.tables.texts.date_text import (
    DAY,
    DateParts,
    date_stamps,
    iso_stamps,
    match_date,
    month_style,
    split_date,
)
from qms22.tables.texts.text_columns import fits_column, most_frequent, most_weighty, row_weights

_MINUTE = 60e6  # microseconds
_EPOCH = datetime(1970, 1, 1)
# Numbers of eight digits are dates only if so many of them exist as dates, and differ: of random
# ones about 1 in 1,200 is a date, and real ones may have a few typing errors.
_COMPACT_SHARE = 0.98
_COMPACT_LEAST = 3
# 1/86 may be a fraction: nearly all months must be there to tell that it is one.
_SHORT = "month, short year"
_LEAST_MONTHS = 10
# Parts that are not written: fractions, "th" and offsets; and those of a fixed width.
_SILENT = ("f", "o", "zone")
_WIDTHS = {"Y": "{Y:04}", "y": "{y:02}", "M": "{M:02}", "S": "{S:02}", "G": "{G:04}", "V": "{V:02}"}


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are read and written, in plain values, which can be saved."""

    # What all values are: "date", "month", "week" or "time". Months and weeks begin with their
    # first day; times of day are microseconds since midnight, as if on the first day of 1970.
    family: str = "date"
    # The separators, of "/", "-" and ".", between which the month is before the day.
    month_first: str = ""
    is_doubtful: bool = False  # whether the other order of day and month fits too
    is_compact: bool = False  # whether texts such as 20240131 are dates
    # How `show` writes values: a template with Y, y, m, d, b (month name), H, I, M, S, p (AM or
    # PM), q (am or pm), Q (quarter), and G, V, u of ISO weeks.
    style: str = "{Y:04}-{m:02}-{d:02}"
    months: tuple[str, ...] = ()  # their names

    @property
    def note(self) -> str:
        """What the user should know of the order of day and month; "" if there is no doubt."""
        if not self.is_doubtful:
            return ""
        order = "month before day" if self.month_first else "day before month"
        return f"read as {order}, though the other way fits too"

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return microseconds since 1970, in local time; NaN for a text that does not fit."""
        values = np.full(len(texts), np.nan)
        # The first ways are quick, the last one reads all texts.
        ways = (iso_stamps, self._read_halves) if self.family == "date" else ()
        for read in (*ways, self._read_each):
            rest = np.flatnonzero(np.isnan(values)).tolist()
            if rest:
                values[rest] = read([texts[at] for at in rest])
        return values

    def show(self, value: float) -> str:
        """Return a date as the column writes dates."""
        if not math.isfinite(value):
            return str(value)
        try:
            moment = _EPOCH + timedelta(microseconds=round(value))
        except OverflowError:  # beyond the years 1 to 9999
            return str(np.datetime64(round(value), "us").astype("datetime64[D]"))
        week = moment.isocalendar()
        half = "AM" if moment.hour < 12 else "PM"
        return self.style.format(
            **{"Y": moment.year, "y": moment.year % 100, "m": moment.month, "d": moment.day},
            **{"H": moment.hour, "I": (moment.hour - 1) % 12 + 1, "M": moment.minute},
            **{"S": moment.second, "p": half, "q": half.lower()},
            **{"G": week.year, "V": week.week, "u": week.weekday},
            Q=(moment.month + 2) // 3,
            b=self.months[moment.month - 1] if self.months else "",
        )

    def _read_each(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self._stamps([split_date(text) for text in texts])

    def _read_halves(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Read each date and each time once: columns of many texts have few of them.

        NaN for texts that are not a date, a blank and a time.
        """
        halves = [_split_clock(text) for text in texts]
        days = list(dict.fromkeys(day for day, _ in halves if ":" not in day))
        found = [split_date(day) for day in days]
        # 20240131140500 has a time already.
        dates = [parts if parts and not parts.seconds else None for parts in found]
        stamps = dict(zip(days, self._stamps(dates).tolist(), strict=True))
        times = {"": 0.0}
        for clock in dict.fromkeys(clock for _, clock in halves if clock):
            parts = split_date(clock)
            times[clock] = parts.seconds if parts and parts.family == "time" else math.nan
        read = [(stamps.get(day, math.nan), times[clock]) for day, clock in halves]
        day_stamps, seconds = np.array(read, dtype=np.float64).reshape(-1, 2).T
        summed: NDArray[np.float64] = day_stamps + np.rint(1e6 * seconds)
        return summed

    def _stamps(self, found: Sequence[DateParts | None]) -> NDArray[np.float64]:
        usable = [
            parts
            if parts is not None
            and parts.family == self.family
            and (self.is_compact or parts.layout != "compact")
            else None
            for parts in found
        ]
        return date_stamps(usable, self.month_first)


def find_date_format(
    texts: Sequence[str], counts: ArrayLike | None = None, is_asked: bool = False
) -> DateFormat | None:
    """Return how the dates of a column are written, or None if it is no column of dates.

    Nearly all rows must have a date; the other texts are words: `read` returns NaN for them. A
    column may mix formats. Offsets from UTC are ignored: a date is in local time.

    The order of day and month is decided for each separator: a number above 12 tells it. Without
    one the day is first, unless another separator of the column has the month first, or the dates
    with slashes have times with AM or PM.

    Years of two digits are from 1969 to 2068.

    `texts` are the different texts of the column in the known-normal rows, and `counts` in how many
    rows each of them occurs. If the user has asked for dates, a single one is enough.

    Examples
    --------
    >>> found = find_date_format(["12/31/2024 2:05 PM", "1/2/2025 11:30 AM"])
    >>> found.show(found.read(["2024-03-01 02:10"])[0])
    '3/1/2024 2:10 AM'
    """
    weights = row_weights(texts, counts)
    found = [split_date(text) for text in texts]
    if not is_asked and not _has_months(found):
        found = [None if parts and parts.layout == _SHORT else parts for parts in found]
    fits = np.array([parts is not None for parts in found], dtype=bool)
    if not fits_column(fits, weights, is_asked):
        return None
    pairs = [(parts, weight) for parts, weight in zip(found, weights, strict=True) if parts]
    family = most_frequent([(parts.family, weight) for parts, weight in pairs])[0]
    month_first, is_doubtful = _find_order(pairs)
    is_compact = is_asked or _has_compact(texts, found, weights)
    form = DateFormat(family, month_first, is_doubtful, is_compact)
    stamps = form._stamps(found)
    fits = ~np.isnan(stamps)
    if not fits_column(fits, weights, is_asked):
        return None
    dates = [(text, n) for text, n, fit in zip(texts, weights, fits, strict=True) if fit]
    style, months = _find_style(dates, month_first, _finest_part(family, stamps[fits]))
    return replace(form, style=style, months=months)


def _has_months(found: Sequence[DateParts | None]) -> bool:
    """Return whether texts such as 1/86 are months: most months and several years are there."""
    short = [parts for parts in found if parts and parts.layout == _SHORT]
    months, years = ({parts[at] for parts in short} for at in (4, 3))
    return len(months & set(range(1, 13))) >= _LEAST_MONTHS and len(years) > 1


def _split_clock(text: str) -> tuple[str, str]:
    """Return a text before and after the last blank before a colon; "" if there is no time."""
    colon = text.find(":")
    blank = text.rfind(" ", 0, colon) if colon > 0 else -1
    return (text, "") if blank < 0 else (text[:blank].removesuffix(","), text[blank + 1 :])


def _find_order(pairs: list[tuple[DateParts, float]]) -> tuple[str, bool]:
    """Return the separators between which the month is first, and whether that is doubtful."""
    evidence: dict[str, float] = {}
    for parts, weight in pairs:
        if parts.separator:
            evidence.setdefault(parts.separator, 0.0)
            if (parts.month > 12) != (parts.day > 12):
                evidence[parts.separator] += weight if parts.day > 12 else -weight
    has_half = any(parts.has_half for parts, _ in pairs if parts.separator == "/")
    is_american = any(rows > 0 for rows in evidence.values())
    is_european = any(rows < 0 for rows in evidence.values())
    guess = is_american and not is_european
    month_first = [
        sign
        for sign, rows in evidence.items()
        if rows > 0 or (rows == 0 and sign != "." and (guess or (sign == "/" and has_half)))
    ]
    return "".join(sorted(month_first)), 0.0 in evidence.values()


def _has_compact(
    texts: Sequence[str], found: Sequence[DateParts | None], weights: NDArray[np.float64]
) -> bool:
    """Return whether nearly all numbers of eight digits are dates, and differ."""
    stamps = date_stamps(
        [parts if parts and parts.layout == "compact" else None for parts in found], ""
    )
    exists = ~np.isnan(stamps)
    is_number = np.array([text.strip().isdecimal() for text in texts], dtype=bool)
    n_rows = weights[is_number | exists].sum()
    return bool(exists.sum() >= _COMPACT_LEAST and weights[exists].sum() >= _COMPACT_SHARE * n_rows)


def _finest_part(family: str, stamps: NDArray[np.float64]) -> str:
    """Return the finest part of dates that differs: "day" also where all times are midnight."""
    if family == "month":
        return "month"
    if family == "week" and not ((stamps / DAY + 3) % 7).any():  # all on Mondays
        return "week"
    if family != "time" and not (stamps % DAY).any():
        return "day"
    return "second" if (stamps % _MINUTE).any() else "minute"


def _find_style(
    dates: Sequence[tuple[str, float]], month_first: str, finest: str
) -> tuple[str, tuple[str, ...]]:
    """Return the template of most dates of a column, and the names of the months in it."""
    found = [(match_date(text), weight) for text, weight in most_weighty(dates)]
    matches = [(each[1], weight) for each, weight in found if each is not None]
    templates = [(_template(match, month_first, finest), weight) for match, weight in matches]
    # Some texts of a column of times may have no time, or no seconds.
    part = {"second": "{S", "minute": "{M"}.get(finest, "")
    template = most_frequent([each for each in templates if part in each[0]] or templates)[0]
    short = {
        _meaning(match, name, month_first)
        for match, _ in matches
        for name, text in match.groupdict().items()
        if name in "mdxzH" and text and len(text) == 1
    }
    for name in {*"mdHI"} - short:
        template = template.replace(f"{{{name}}}", f"{{{name}:02}}")
    names = [match["b"] for match, _ in matches if "b" in match.re.groupindex]
    return template, month_style(names) if names else ()


def _template(match: re.Match[str], month_first: str, finest: str) -> str:
    """Return a text with placeholders for the parts of the date."""
    text = match.string
    if finest == "day" and match.groupdict().get("clock"):
        text = text[: match.start("clock")]
    for name in sorted(match.re.groupindex, key=match.start, reverse=True):
        start, end = match.span(name)
        if 0 <= start < end <= len(text) and name not in ("s", "gap", "clock"):
            meaning = _meaning(match, name, month_first)
            placeholder = "" if name in _SILENT else _WIDTHS.get(meaning, f"{{{meaning}}}")
            text = text[:start] + placeholder + text[end:]
    return text


def _meaning(match: re.Match[str], name: str, month_first: str) -> str:
    """Return what a part of a date means in a template."""
    if name in "xz":  # the first and the second of day and month
        return "m" if (name == "x") == (match["s"] in month_first) else "d"
    if name == "Y" and len(match["Y"]) == 2:
        return "y"
    if name == "H" and match.groupdict().get("p"):
        return "I"
    return "q" if name == "p" and match["p"].islower() else name
