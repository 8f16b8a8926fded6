"""Durations in texts: 2h 5m, 1 h 30 min, P1DT2H, 27:15:00, 75:03."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qms22.tables.texts.text_columns import LEAST_SHARE, fits_column, most_frequent, row_weights

_SECONDS = (86400.0, 3600.0, 60.0, 1.0)
_NUMBER = r"(\d+(?:[.,]\d+)?)"
_UNITS = (
    "days|day|d|tage|tag|t",
    "hours|hour|hrs|hr|h|stunden|stunde|std",
    "minutes|minute|mins|min|m|minuten",
    "seconds|second|secs|sec|s|sekunden|sekunde|sek",
)
_WORDS = re.compile(
    r"(-)?" + r"[ ,]*".join(rf"(?:{_NUMBER}( ?(?:{unit}))(?![^\W\d_])\.?)?" for unit in _UNITS),
    re.IGNORECASE,
)
_ISO = re.compile(
    rf"(-)?P(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.IGNORECASE
)
_CLOCK = re.compile(r"(-)?(\d+):([0-5]\d)(?::([0-5]\d))?([.,]\d+)?")
_NAMES = re.compile(r"duration|dauer|elapsed|runtime|laufzeit|uptime|downtime", re.IGNORECASE)
_DAY = 24
# What happens at night does so on either side of midnight: clocks are durations if most are in the
# hour after it, and nearly all before the hour at which people begin to work.
_MORNING = 6
ISO = "P"


def read_durations(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the seconds that texts write; NaN for a text that is no duration."""
    return np.array([_seconds(text.strip()) for text in texts], dtype=np.float64)


def find_duration_style(
    name: str, texts: Sequence[str], counts: ArrayLike | None = None, is_asked: bool = False
) -> str | None:
    """Return how a column writes durations, or None if it is no column of durations.

    Nearly all rows must have one. Numbers with one unit (90 min) are numbers. Texts such as
    01:30:00 are times of the day, unless the name says that they are durations, the user asks for
    numbers (`is_asked`), some have 24 or more before the first colon, or most have 0 there and
    nearly all others little more.

    The style is "P" for ISO 8601; "h:mm:ss", "hh:mm:ss", "m:ss" or "mm:ss"; or the words for days,
    hours, minutes and seconds with their blanks, such as "|h| m|", and one more blank before a bar
    if blanks are between them.
    """
    texts, weights = [text.strip() for text in texts], row_weights(texts, counts)
    fits = ~np.isnan(read_durations(texts))
    if not fits_column(fits, weights, is_asked):
        return None
    fitting = list(compress(zip(texts, weights.tolist(), strict=True), fits))
    clocks = [match for text, _ in fitting if (match := _CLOCK.fullmatch(text))]
    if clocks:
        is_said = is_asked or _NAMES.search(name) is not None
        hours = np.array([int(match[2]) for match in clocks])
        is_short = 2 * np.mean(hours == 0) > 1 and np.mean(hours < _MORNING) >= LEAST_SHARE
        is_duration = is_said or is_short or bool((hours >= _DAY).any())
        return _clock_style(clocks) if is_duration and len(clocks) == len(fitting) else None
    if any(_ISO.fullmatch(text) for text, _ in fitting):
        return ISO
    return _word_style([text for text, _ in fitting])


def show_duration(seconds: float, style: str) -> str:
    """Return a duration as a column writes it, without parts that are 0 at its beginning."""
    sign, seconds = "-" if seconds < 0 else "", abs(seconds)
    if style.endswith("ss"):
        return sign + _show_clock(seconds, style)
    if style == ISO:
        days, *others = _split(seconds, (True, True, True, True))
        date = f"{days}D" if days else ""
        time = "".join(f"{n}{unit}" for n, unit in zip(others, "HMS", strict=True) if n)
        return f"{sign}P{date}" + (f"T{time}" if time else "" if date else "T0S")
    between, _, units = style.partition("|")
    words = units.split("|")
    parts = _split(seconds, tuple(map(bool, words)))
    shown = [(n, word) for n, word in zip(parts, words, strict=True) if word]
    while len(shown) > 1 and shown[0][0] == 0:
        shown = shown[1:]
    return sign + between.join(f"{n}{_plural(n, word)}" for n, word in shown)


def _plural(number: int, word: str) -> str:
    """Return "1 hour" and "2 hours", whichever of them is the usual one."""
    one = word.lower().removesuffix("s")
    if one.strip() not in ("day", "hour", "minute", "second"):
        return word
    return word[: len(one)] + ("" if number == 1 else "s")


def _seconds(text: str) -> float:
    if text.endswith((" ", ",")) or not any(map(str.isdigit, text)):
        return np.nan
    if match := _CLOCK.fullmatch(text):
        sign, first, second, third, fraction = match.groups()
        seconds = 60.0 * int(first) + int(second)
        seconds = seconds if third is None else 60.0 * seconds + int(third)
        seconds += float((fraction or ".0").replace(",", "."))
        return -seconds if sign else seconds
    match = _ISO.fullmatch(text)
    numbers = match.groups()[1:] if match else ()
    if not match and (match := _WORDS.fullmatch(text)):
        numbers = match.groups()[1::2]
    if not match:
        return np.nan
    values = [float((number or "0").replace(",", ".")) for number in numbers]
    seconds = float(sum(map(operator.mul, values, _SECONDS)))
    return -seconds if match[1] else seconds


def _clock_style(clocks: Sequence[re.Match[str]]) -> str:
    n_digits = 2 if all(len(match[2]) > 1 for match in clocks) else 1
    has_hours = 2 * sum(match[4] is not None for match in clocks) > len(clocks)
    return n_digits * "h" + ":mm:ss" if has_hours else n_digits * "m" + ":ss"


def _word_style(texts: Sequence[str]) -> str | None:
    """Return the words for units; None if no text has two of them."""
    units = [match.groups()[2::2] for match in map(_WORDS.fullmatch, texts) if match]
    if not any(sum(unit is not None for unit in each) > 1 for each in units):
        return None
    words = [
        most_frequent([(each[at], 1.0) for each in units if each[at]])[0]
        if any(each[at] for each in units)
        else ""
        for at in range(len(_SECONDS))
    ]
    between = " " if sum(" " in text for text in texts) * 2 > len(texts) else ""
    return "|".join([between, *words])


def _split(seconds: float, is_used: tuple[bool, ...]) -> list[int]:
    """Return days, hours, minutes and seconds, rounded to the smallest that is used."""
    smallest = min(unit for unit, used in zip(_SECONDS, is_used, strict=True) if used)
    left = round(seconds / smallest) * smallest
    parts = []
    for unit, used in zip(_SECONDS, is_used, strict=True):
        parts.append(int(left // unit) if used else 0)
        left -= parts[-1] * unit
    return parts


def _show_clock(seconds: float, style: str) -> str:
    first, *others = style.split(":")
    parts = _split(seconds, (False, len(others) == 2, True, True))[-1 - len(others) :]
    return ":".join([f"{parts[0]:0{len(first)}d}", *(f"{part:02d}" for part in parts[1:])])
