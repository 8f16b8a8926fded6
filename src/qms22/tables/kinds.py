"""The kinds of columns, and the rules that decide them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qms22.tables.cells import Cells, date_stamp, parse_stamp
from qms22.tables.typed import Reader
from qms22.tables.words import BOOLEANS, parse_number

Kind = Literal["numeric", "boolean", "categorical", "date", "identifier", "text", "constant"]

# Texts with at most so many levels, or so small a share of the rows, are categories.
MOST_LEVELS = 50
MOST_DISTINCT = 0.05
# In fewer rows than this, all values may differ by chance.
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
    """The kind of a column.

    Parameters
    ----------
    kind : str
        A detector can use "numeric", "boolean", "categorical" and "date" columns.
    note : str
        The reason, if it is not obvious.
    date_format : str
        The format of dates in texts: "iso", or what comes first: "year", "day" or "month".
    """

    kind: Kind
    note: str = ""
    date_format: str = ""


def infer_kind(cells: Cells) -> Verdict:
    """Return the kind of a column, decided from its values in the normal rows.

    The first rule that applies decides; missing values are left out.

    - no value, or the same in all rows: constant.
    - true and false, as booleans or in words: boolean.
    - numbers, also as texts that are all numbers, unless declared categorical: an identifier if the
      name says so (id, key, nr, …) and they are integers that all differ or count up, else numeric.
    - dates, also as texts that are all dates in ISO form (2024-12-31) or as 31.12.2024, 31/12/2024,
      12/31/2024 or 2024/12/31, with or without a time: date.
    - texts that all differ, in ten rows or more, unless declared categorical: an identifier if all
      are short and without blanks, else text.
    - texts of at most 50 levels, or of at most one level in 20 rows: categorical.
    - other texts: text if most have blanks, else an identifier.
    """
    if cells.form == "other":
        return Verdict("text", "values that are neither numbers, texts nor dates")
    distinct = len(np.unique(cells.values[~cells.missing]))
    if distinct < 2:
        first = int(np.argmin(cells.missing))
        return Verdict("constant", f"always {cells.show(first)}" if distinct else "no values")
    if cells.form != "number" and convert_to_kind(cells, "boolean") is not None:
        return Verdict("boolean")
    if cells.form != "category":
        if (numbers := convert_to_kind(cells, "numeric")) is not None:
            return _judge_numbers(cells.name, numbers)
        if cells.form == "date":
            return Verdict("date", date_format="iso")
        if formats := [
            name for name in DATE_FORMATS if convert_to_kind(cells, "date", name) is not None
        ]:
            is_doubtful = {"day", "month"} <= set(formats)
            note = "read as day before month, though the other way fits too" if is_doubtful else ""
            return Verdict("date", note, formats[0])
    return _judge_texts(cells)


def text_reader(kind: Kind, date_format: str = "") -> Reader:
    """Return the function that reads texts of a kind as numbers, with NaN for those unlike it."""
    read = _reader(kind, date_format)

    def read_all(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array(
            [read(text) if _fits(text, read) else np.nan for text in texts], dtype=float
        )

    return read_all


def convert_to_kind(cells: Cells, kind: Kind, date_format: str = "") -> NDArray[np.float64] | None:
    """Return a column's values as numbers, with NaN for missing ones; None if a value does not fit.

    Parameters
    ----------
    cells : Cells
    kind : {"numeric", "boolean", "date"}
        Booleans become 0 and 1, dates microseconds since 1970.
    date_format : str
        As in `Verdict`.
    """
    if cells.is_text:
        return _per_level(cells, _reader(kind, date_format))
    if kind == "boolean" and not np.isin(cells.values[~cells.missing], (0.0, 1.0)).all():
        return None
    fitting = ("date",) if kind == "date" else ("number", "boolean")
    return cells.values if cells.form in fitting else None


def first_unlike(cells: Cells, kind: Kind, date_format: str = "") -> int:
    """Return the first row whose value does not fit a kind."""
    bad = ~cells.missing
    if cells.is_text:
        read = _reader(kind, date_format)
        bad = ~np.array([_fits(text, read) for text in cells.levels] + [True])[cells.values]
    elif cells.form == "number" and kind == "boolean":
        bad &= ~np.isin(cells.values, (0.0, 1.0))
    return int(np.argmax(bad))


def _judge_numbers(name: str, numbers: NDArray[np.float64]) -> Verdict:
    """Return the kind of numbers: an identifier only if both the name and the values say so."""
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
    # pandas names a column without a name, such as that of row numbers, "Unnamed: 0".
    return words == ["index"] or (
        bool(words) and (words[-1] in _ID_WORDS or words[0] in ("id", "unnamed"))
    )


def _per_level(cells: Cells, convert: Callable[[str], float]) -> NDArray[np.float64] | None:
    """Convert each different text once; return None if one cannot be converted."""
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


def _reader(kind: Kind, date_format: str) -> Callable[[str], float]:
    """Return the function that reads a text of a kind."""
    return DATE_FORMATS[date_format or "iso"] if kind == "date" else _READERS[kind]


def _iso(text: str) -> float:
    if not _ISO.fullmatch(text.strip()):
        raise ValueError(text)
    return parse_stamp(text.strip())


def _by_order(pattern: re.Pattern[str], order: tuple[int, int, int]) -> Callable[[str], float]:
    """Return a reader of dates with the year, month and day in the given groups."""

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


_READERS: dict[str, Callable[[str], float]] = {
    "numeric": parse_number,
    "boolean": lambda text: BOOLEANS[text.strip().lower()],
}
DATE_FORMATS: dict[str, Callable[[str], float]] = {
    "iso": _iso,
    "year": _by_order(_YEAR_FIRST, (1, 2, 3)),
    "day": _by_order(_DAY_FIRST, (3, 2, 1)),
    "month": _by_order(_DAY_FIRST, (3, 1, 2)),
}
