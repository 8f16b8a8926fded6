"""Numbers in texts as people write them: signs of any locale, currencies, percent and units."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.tables.text_columns import fits_column, row_counts
from qms22.tables.units import SIGNS, currency, magnitude, unit

# Blanks, minus signs and apostrophes in one form each.
_PLAIN = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2008\u2009\u200a\u202f", " ")
    | dict.fromkeys("\u2212\u2013\u2010\u2011", "-")
    | dict.fromkeys("\u2019\u02bc\u00b4`", "'")
)
_BEFORE = rf"(\()?([+-])? ?(?:((?:[^\W\d_]{{1,3}}\.?)?[{re.escape(SIGNS)}%]?) ?)?([+-])?"
_AFTER = r"([eE][+-]?[0-9]{1,3})?(?:( ?)([^ 0-9.,'()+-][^()]{0,15}?))?( ?-)?(\))?"


def _pattern(decimal: str, other: str) -> re.Pattern[str]:
    """Return the pattern of a number with a decimal sign.

    Thousands have any other sign, the same throughout, or are grouped as in India: 12,34,567.
    """
    groups = rf"[0-9]{{1,3}}([{other}' ])[0-9]{{3}}(?:\6[0-9]{{3}})*"
    indian = rf"[0-9]{{1,2}}(?:{other}[0-9]{{2}})+{other}[0-9]{{3}}"
    # A zero in front makes a code of it: "007".
    whole = rf"(?!0[0-9{other}' ])(?:{groups}|{indian}|[0-9]+)"
    return re.compile(f"{_BEFORE}({whole}(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+){_AFTER}")


_PATTERNS = {".": _pattern(".", ","), ",": _pattern(",", ".")}
_TO_PYTHON = {
    ".": str.maketrans("", "", ",' "),
    ",": str.maketrans(",", ".", ".' "),
}
# Whole numbers with a plus sign and so many digits are phone numbers.
_PHONE_DIGITS = 8
# Numbers of different rows look alike in this many of the most frequent texts, or nowhere.
_SAMPLE = 2000
# More decimals than this come from a computation; people read the first digits only.
_MOST_DECIMALS = 8
_DIGITS = 6


class _Reading(NamedTuple):
    """What a text says with a given decimal sign; `value` is without the magnitude."""

    value: float
    unit: str
    magnitude: str


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written; plain values only, so that it can be saved.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal sign. Any other sign may group thousands.
    thousands : str
        The sign that usually groups thousands; "" if there is none.
    unit : str
        The currency, percent sign or unit, in one spelling; "" if there is none.
    magnitudes : tuple of str
        The letters that multiply numbers, such as ("k", "M"). Where all numbers of a column have
        the same letter it is a unit instead.
    before, after : str
        What is usually written before and after a number, with blanks.
    negative : {"-", "()", "+-"}
        How negative numbers are written: -5, (5) or 5-.
    decimals : int
        The most decimals that are usual; -1 for as many as are needed.
    is_fixed : bool
        Whether nearly all numbers have as many decimals.
    is_indian : bool
        Whether thousands are grouped as in 12,34,567.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    magnitudes: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    negative: str = "-"
    decimals: int = -1
    is_fixed: bool = False
    is_indian: bool = False

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the numbers that texts write; NaN for a text that does not fit."""
        return np.array([self._value(found) for found in _read_all(texts, self.decimal)])

    def show(self, value: float) -> str:
        """Return a number as the column writes numbers."""
        raise NotImplementedError

    def _value(self, found: _Reading | None) -> float:
        raise NotImplementedError


def find_number_format(
    texts: Sequence[str],
    counts: Sequence[float] | None = None,
    decimal_hint: str | None = None,
) -> NumberFormat | None:
    """Return how the numbers of a column are written, or None if it is no column of numbers.

    Parameters
    ----------
    texts : sequence of str
        The different texts of the column in the known-normal rows.
    counts : sequence of float, optional
        In how many rows each of them occurs.
    decimal_hint : {".", ","}, optional
        The decimal sign of other columns of the table.
    """
    raise NotImplementedError
