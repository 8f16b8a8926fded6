"""The parts of a text that writes a date or a time of day.

Own patterns: pandas and dateutil need 40 microseconds for a text in a mixed column, do not know
weeks or German months, and take "007", "3-5" and "1.2.3" for dates.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Family = Literal["date", "month", "week", "time"]

DAY = 86_400e6  # microseconds
_CLOCK = (
    r"(?P<H>[0-9]{1,2})(?::(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?P<f>[.,][0-9]{1,9})?)?)?"
    r"(?P<gap> ?)(?P<p>[AaPp]\.?[Mm]\.?)?(?P<zone> ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Z]{3,4})?"
    r"(?: Uhr)?"
)
_THEN = rf"(?P<clock>(?:T| |:|, ?| at ){_CLOCK})?"
_NAME = r"(?P<b>[^\W\d_]{3,})\.?"
_YEAR = "(?P<Y>[0-9]{4}|[0-9]{2})"
_DAY = "(?P<d>[0-9]{1,2})"
_NUMBER = "[0-9]{1,2}"
_ORDINAL = "(?P<o>st|nd|rd|th)?"
_COMPACT = "(?P<Y>(?:19|20)[0-9]{2})(?P<m>[0-9]{2})(?P<d>[0-9]{2})"
_COMPACT_CLOCK = "(?P<clock>[T ]?(?P<H>[0-9]{2})(?P<M>[0-9]{2})(?P<S>[0-9]{2})?)?"
_LAYOUTS: dict[str, tuple[Family, str]] = {
    "year first": ("date", rf"(?P<Y>[0-9]{{4}})(?P<s>[-/.])(?P<m>{_NUMBER})(?P=s){_DAY}{_THEN}"),
    "year last": ("date", rf"(?P<x>{_NUMBER})(?P<s>[-/.]) ?(?P<z>{_NUMBER})(?P=s) ?{_YEAR}{_THEN}"),
    "clock": ("time", _CLOCK),
    "week": ("week", "(?P<G>[0-9]{4})-?W(?P<V>[0-9]{2})(?:-?(?P<u>[1-7]))?"),
    "month": ("month", f"(?P<Y>[0-9]{{4}})[-/](?P<m>{_NUMBER})"),
    "month, year": ("month", f"(?P<m>{_NUMBER})[-/](?P<Y>[0-9]{{4}})"),
    "year, month name": ("month", f"(?P<Y>[0-9]{{4}})[ -]{_NAME}"),
    "year, quarter": ("month", "(?P<Y>[0-9]{4})[ /-]?[Qq](?P<Q>[1-4])"),
    "quarter, year": ("month", "[Qq](?P<Q>[1-4])[ /-](?P<Y>[0-9]{4})"),
    "month, short year": ("month", f"(?P<m>{_NUMBER})/(?P<Y>[0-9]{{2}})"),
    "name, year": ("month", f"{_NAME}(?:,? |-)(?P<Y>[0-9]{{4}}|(?<=-)[0-9]{{2}})"),
    "day, name": (
        "date",
        rf"{_DAY}{_ORDINAL}\.?[ /-]?(?:of |de )?{_NAME},?[ /-]?(?:de )?{_YEAR}{_THEN}",
    ),
    "name, day": ("date", f"{_NAME}[ -]?{_DAY}{_ORDINAL}(?:, ?|[ -]){_YEAR}{_THEN}"),
    "year, name": ("date", f"(?P<Y>[0-9]{{4}})[ -]{_NAME}[ -]{_DAY}{_THEN}"),
    "clock, year": ("date", f"{_NAME} {{1,2}}{_DAY} {_CLOCK} (?P<Y>[0-9]{{4}})"),
    "compact": ("date", f"{_COMPACT}{_COMPACT_CLOCK}"),
    "compact, clock": ("date", f"{_COMPACT}{_THEN}"),
}
_PATTERNS = {name: re.compile(pattern) for name, (_, pattern) in _LAYOUTS.items()}
# Of years from 1000 on.
_ISO = "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?)?$"
_WEEKDAY = re.compile(
    "(?i:mon|tue|tues|wed|thu|thurs|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day|mo|di|mi"
    r"|do|fr|sa|so|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend)\.?,? "
)
# The names of the months in several languages, and other spellings.
_FULL = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_OTHERS = {"maerz": 3, "mrt": 3, "jänner": 1, "jän": 1, "feber": 2}


def _short(names: list[str]) -> list[str]:
    """Return the first letters of each name that are enough to know it, but at least three."""
    return [
        next(
            name[:n]
            for n in range(3, len(name) + 1)
            if sum(other.startswith(name[:n]) for other in names) == 1
        )
        for name in names
    ]


def _plain(name: str) -> str:
    """Return a name in lower case without accents."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _all_spellings() -> dict[str, int]:
    found = {_plain(name): month for name, month in _OTHERS.items()}
    for text in _FULL.values():
        names = text.split()
        for month, (name, short) in enumerate(zip(names, _short(names), strict=True), 1):
            found |= {_plain(name[:n]): month for n in range(len(short), len(name) + 1)}
    return found


_SPELLINGS = _all_spellings()
_STYLES = [
    tuple(names)
    for text in _FULL.values()
    for full in [text.split()]
    for names in (_short(full), full)
]


@lru_cache(maxsize=1024)
def month_number(name: str) -> int | None:
    """Return the month that a name or the first letters of it mean; None if it is no month."""
    return _SPELLINGS.get(_plain(name))


def month_style(written: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the twelve months in the language, length and case of some of them."""
    texts = set(written)
    lower = {text.casefold() for text in texts}
    style = max(_STYLES, key=lambda names: len(lower & {name.casefold() for name in names}))
    if texts and all(text.isupper() for text in texts):
        return tuple(name.upper() for name in style)
    return style


class DateParts(NamedTuple):
    """The parts of a text that writes a date or a time of day."""

    # Months and weeks begin with their first day; a time is on the first day of 1970.
    family: Family
    layout: str  # the name of the pattern
    # What is between day and month if their order is unknown; they are then in the order of the
    # text. "" if it is known.
    separator: str
    year: int
    month: int
    day: int
    seconds: float  # since midnight
    has_half: bool  # whether the time is with AM or PM


def split_date(text: str) -> DateParts | None:
    """Return the parts of a text that writes a date; None if it does not."""
    found = match_date(text)
    if found is None:
        return None
    layout, match = found
    family = _LAYOUTS[layout][0]
    groups = match.groupdict()
    seconds = _seconds(groups) if groups.get("H") else 0.0
    if seconds is None or (layout == "clock" and not (groups["M"] or groups["p"])):
        return None
    year, month, day, separator = 1970, 1, 1, ""
    if family == "week":
        try:
            week = int(groups["G"]), int(groups["V"]), int(groups["u"] or 1)
            year, month, day = date.fromisocalendar(*week).timetuple()[:3]
        except ValueError:
            return None
    elif family != "time":
        year = int(groups["Y"])
        if len(groups["Y"]) == 2:
            year += 1900 if year > 68 else 2000
        if layout == "year last":
            month, day, separator = int(groups["x"]), int(groups["z"]), groups["s"]
        else:
            named = month_number(groups["b"]) if "b" in groups else int(groups.get("m") or 0)
            if named is None:
                return None
            month = 3 * int(groups["Q"]) - 2 if "Q" in groups else named
            day = int(groups.get("d", 1))
    has_half = bool(groups.get("p"))
    return DateParts(family, layout, separator, year, month, day, seconds, has_half)


def match_date(text: str) -> tuple[str, re.Match[str]] | None:
    """Return the name of the pattern that a text matches, and the match; None if there is none."""
    text = text.strip()
    if weekday := _WEEKDAY.match(text):
        text = text[weekday.end() :]
    for layout, pattern in _PATTERNS.items():
        match = pattern.fullmatch(text)
        if match is not None:
            return layout, match
    return None


def date_stamps(found: Sequence[DateParts | None], month_first: str) -> NDArray[np.float64]:
    """Return dates as microseconds since 1970, with NaN for those that do not exist.

    Between the separators in `month_first` the month is before the day.
    """
    fields = np.array(
        [(0, 0, 0, 0.0) if parts is None else _fields(parts, month_first) for parts in found],
        dtype=np.float64,
    ).reshape(-1, 4)
    year, month, day = fields[:, :3].astype(np.int64).T
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    starts, ends = (each.astype("datetime64[D]").astype(np.int64) for each in (first, first + 1))
    exists = (year > 0) & (month > 0) & (month < 13) & (day > 0) & (day <= ends - starts)
    return np.where(exists, (starts + day - 1) * DAY + np.rint(fields[:, 3] * 1e6), np.nan)


def iso_stamps(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return plain ISO dates, which are the most frequent ones, quickly; NaN for other texts."""
    try:
        column = pa.array(texts, pa.string())
        is_plain = pc.match_substring_regex(column, _ISO)
        plain = pc.if_else(is_plain, column, None)
        stamps = plain.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, UnicodeEncodeError):  # of a day such as 2024-02-30
        return np.full(len(texts), np.nan)
    return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64))


def _fields(parts: DateParts, month_first: str) -> tuple[int, int, int, float]:
    if not parts.separator or parts.separator in month_first:
        return parts.year, parts.month, parts.day, parts.seconds
    return parts.year, parts.day, parts.month, parts.seconds


def _seconds(groups: dict[str, str]) -> float | None:
    """Return the seconds since midnight of a time of day; None if there is no such time."""
    hour, minute, second = (int(groups[name] or 0) for name in "HMS")
    half = groups.get("p")
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[0] in "Pp" else 0)
    fraction = float("0." + groups["f"][1:]) if groups.get("f") else 0.0
    seconds = 3600 * hour + 60 * minute + second + fraction
    # 24:00 is midnight at the end of a day.
    return seconds if minute < 60 and second < 60 and seconds <= 86_400 else None
