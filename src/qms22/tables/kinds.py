"""What a column is: the rules by which kinds are told, all in one place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qms22.tables.cells import Cells, date_stamp, parse_stamp
from qms22.tables.words import BOOLEANS, parse_number

Kind = Literal["numeric", "boolean", "categorical", "date", "identifier", "text", "constant"]

# Texts of at most so many levels, or of so small a share of the rows, are categories.
MOST_LEVELS = 50
MOST_DISTINCT = 0.05
# Fewer rows than this may all differ by chance.
LEAST_ROWS = 10
# Texts without blanks that are no longer than this may be identifiers.
LONGEST_IDENTIFIER = 64
_ID_WORDS = frozenset(
    ["id", "ids", "uid", "uuid", "guid", "key", "pk", "nr", "no", "number", "idx"]
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_TIME = r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?)?"
_DAY_FIRST = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})" + _TIME)
_YEAR_FIRST = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})" + _TIME)
_ISO = re.compile(r"\d{4}-\d\d.*")


@dataclass(frozen=True)
class Verdict:
    """What a column is.

    Parameters
    ----------
    kind : str
        "numeric", "boolean", "categorical" and "date" are of use to a detector, others are not.
    note : str
        Why, where people may wonder.
    date_format : str
        How dates are written: "iso", "year", "day" or "month", by what comes first.
    """

    kind: Kind
    note: str = ""
    date_format: str = ""


def infer_kind(cells: Cells) -> Verdict:
    """Tell the kind of a column from its values among the normal rows.

    The first rule that applies decides; missing values do not count.

    - no value, or one and the same in all rows: constant.
    - true and false, as booleans or in words: boolean.
    - numbers, also as texts that are all numbers, unless declared categorical: an identifier where
      the name says so (id, key, nr, …) and they are whole and all different or counted up, else
      numeric.
    - dates, also as texts that are all dates in ISO form (2024-12-31) or as 31.12.2024, 31/12/2024,
      12/31/2024 or 2024/12/31, with or without a time: date.
    - texts that all differ, in ten rows or more, unless declared categorical: an identifier where
      all are short and without blanks, else text.
    - texts of at most 50 levels, or of at most one level in 20 rows: categorical.
    - other texts: text where most have blanks, else an identifier.
    """
    if cells.form == "other":
        return Verdict("text", "values that are neither numbers, texts nor dates")
    distinct = len(np.unique(cells.values[~cells.missing]))
    if distinct < 2:
        first = int(np.argmin(cells.missing))
        return Verdict("constant", f"always {cells.show(first)}" if distinct else "no values")
    if as_booleans(cells) is not None and cells.form != "number":
        return Verdict("boolean")
    if cells.form != "category":
        if (numbers := as_numbers(cells)) is not None:
            return _judge_numbers(cells.name, numbers)
        if cells.form == "date":
            return Verdict("date", date_format="iso")
        if formats := [name for name in _FORMATS if as_dates(cells, name) is not None]:
            is_doubtful = {"day", "month"} <= set(formats)
            note = "read as day before month, though the other way fits too" if is_doubtful else ""
            return Verdict("date", note, formats[0])
    return _judge_texts(cells)


def as_numbers(cells: Cells) -> NDArray[np.float64] | None:
    """Give a column's numbers, with NaN for missing ones; None where some value is no number."""
    if cells.form in ("number", "boolean"):
        return cells.values
    return _per_level(cells, parse_number) if cells.is_text else None


def as_booleans(cells: Cells) -> NDArray[np.float64] | None:
    """Give a column's truth values as 0 and 1; None where some value is neither."""
    if cells.is_text:
        return _per_level(cells, _boolean)
    if cells.form == "number" and not np.isin(cells.values[~cells.missing], (0.0, 1.0)).all():
        return None
    return cells.values if cells.form in ("number", "boolean") else None


def as_dates(cells: Cells, date_format: str) -> NDArray[np.float64] | None:
    """Give a column's dates in microseconds since 1970; None where some value is none."""
    if cells.form == "date":
        return cells.values
    return _per_level(cells, _FORMATS[date_format or "iso"]) if cells.is_text else None


def first_unlike(cells: Cells, kind: Kind, date_format: str) -> int:
    """Find the first row whose value is not of a kind."""
    convert: dict[str, Callable[[str], float]] = {
        "numeric": parse_number,
        "boolean": _boolean,
        "date": _FORMATS[date_format or "iso"],
    }
    bad = ~cells.missing
    if cells.is_text:
        fits = np.array([_fits(text, convert[kind]) for text in cells.levels] + [True])
        bad = ~fits[cells.values]
    elif cells.form == "number" and kind == "boolean":
        bad &= ~np.isin(cells.values, (0.0, 1.0))
    return int(np.argmax(bad))


def _judge_numbers(name: str, numbers: NDArray[np.float64]) -> Verdict:
    """Call numbers an identifier only where the name says so and the values bear it out."""
    present = numbers[~np.isnan(numbers)]
    is_named = _says_identifier(name)
    if is_named and bool(np.isfinite(present).all()) and bool((present == np.rint(present)).all()):
        steps = np.diff(present)
        if len(np.unique(present)) == len(present):
            return Verdict("identifier", "whole numbers that all differ")
        if bool(np.isin(steps, (0.0, 1.0)).all()):
            return Verdict("identifier", "a running number")
    return Verdict("numeric")


def _judge_texts(cells: Cells) -> Verdict:
    n_rows, n_levels = int((~cells.missing).sum()), len(cells.levels)
    differ = f"{n_levels} different texts in {n_rows} rows"
    if n_levels == n_rows >= LEAST_ROWS and cells.form != "category":
        longest = max(map(len, cells.levels))
        if longest <= LONGEST_IDENTIFIER and not any(" " in text for text in cells.levels):
            return Verdict("identifier", differ)
        return Verdict("text", differ)
    if n_levels <= MOST_LEVELS or n_levels <= MOST_DISTINCT * n_rows:
        return Verdict("categorical")
    with_blanks = sum(" " in text for text in cells.levels)
    return Verdict("text" if 2 * with_blanks > n_levels else "identifier", differ)


def _says_identifier(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    # pandas calls a column without a name, as of row numbers, "Unnamed: 0".
    return words == ["index"] or (
        bool(words) and (words[-1] in _ID_WORDS or words[0] in ("id", "unnamed"))
    )


def _per_level(cells: Cells, convert: Callable[[str], float]) -> NDArray[np.float64] | None:
    """Convert each different text once; None where one cannot be."""
    try:
        converted = [convert(text) for text in cells.levels]
    except (ValueError, KeyError):
        return None
    result: NDArray[np.float64] = np.array([*converted, np.nan])[cells.values]
    return result


def _fits(text: str, convert: Callable[[str], float]) -> bool:
    try:
        convert(text)
    except (ValueError, KeyError):
        return False
    return True


def _boolean(text: str) -> float:
    return BOOLEANS[text.strip().lower()]


def _iso(text: str) -> float:
    if not _ISO.fullmatch(text.strip()):
        raise ValueError(text)
    return parse_stamp(text.strip())


def _by_order(pattern: re.Pattern[str], order: tuple[int, int, int]) -> Callable[[str], float]:
    """Make a reader of dates whose year, month and day stand in the given groups."""

    def read(text: str) -> float:
        match = pattern.fullmatch(text.strip())
        if match is None:
            raise ValueError(text)
        year, month, day = (int(match[at]) for at in order)
        hour, minute, second = (float(match[at] or 0) for at in (4, 5, 6))
        if hour > 23 or minute > 59 or second >= 60:
            raise ValueError(text)
        return date_stamp(year, month, day, 3600 * hour + 60 * minute + second)

    return read


_FORMATS: dict[str, Callable[[str], float]] = {
    "iso": _iso,
    "year": _by_order(_YEAR_FIRST, (1, 2, 3)),
    "day": _by_order(_DAY_FIRST, (3, 2, 1)),
    "month": _by_order(_DAY_FIRST, (3, 1, 2)),
}
