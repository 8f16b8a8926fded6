"""How the numbers of a column look: thousands, decimals, and what is before and after them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qms22.tables.texts.number_text import Parts
from qms22.tables.texts.text_columns import most_frequent
from qms22.tables.texts.units import without_magnitude
from qms22.tables.texts.words import number_text

# The most frequent texts show how a column is written.
_SAMPLE = 1000
# So large a share of the rows must have as many decimals for zeros at the end to be written.
_FIXED_SHARE = 0.9
# Numbers with more decimals than this come from a computation: the first digits are enough.
_MOST_DECIMALS = 8
# From here on a float has no decimals to show.
_LARGEST = 1e15
# A median may need more decimals than the numbers: as many as this error asks for.
_ERROR = 5e-4
_INDIAN = re.compile(r"[0-9]{1,2}(\D[0-9]{2})+\D[0-9]{3}")


@dataclass(frozen=True)
class NumberStyle:
    """How to write a number; plain values only, so that it can be saved.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal sign.
    thousands : str
        The sign between groups of digits; "" if there is none.
    is_indian : bool
        Whether groups are as in 12,34,567.
    decimals : int
        The most decimals that are usual; -1 for six significant digits.
    is_fixed : bool
        Whether nearly all numbers have as many decimals.
    before, after : str
        What is before and after the digits, with blanks.
    negative : {"-", "()", "5-"}
        How negative numbers are written: -5, (5) or 5-.
    """

    decimal: str = "."
    thousands: str = ""
    is_indian: bool = False
    decimals: int = -1
    is_fixed: bool = False
    before: str = ""
    after: str = ""
    negative: str = "-"

    def write(self, value: float, letter: str = "") -> str:
        """Return a number as text, with a magnitude letter."""
        text = self.before + self._digits(abs(value)) + letter + self.after
        if not value < 0:
            return text
        return {"()": f"({text})", "5-": f"{text}-"}.get(self.negative, f"-{text}")

    def write_exactly(self, value: float) -> str:
        """Return a number with all of its digits."""
        whole, _, fraction = number_text(abs(value)).partition(".")
        if "e" not in whole + fraction:
            whole = self._grouped(whole)
            fraction = fraction.ljust(self.decimals if self.is_fixed else 0, "0")
        text = self.before + whole + (fraction and self.decimal + fraction) + self.after
        return f"-{text}" if value < 0 else text

    def _digits(self, size: float) -> str:
        if self.decimals < 0 or not size < _LARGEST:
            return f"{size:.6g}".replace(".", self.decimal)
        decimals = self.decimals
        while decimals < _MOST_DECIMALS and abs(round(size, decimals) - size) > _ERROR * size:
            decimals += 1
        whole, _, fraction = f"{size:.{decimals}f}".partition(".")
        if not self.is_fixed:
            fraction = fraction.rstrip("0")
        return self._grouped(whole) + (fraction and self.decimal + fraction)

    def _grouped(self, whole: str) -> str:
        """Return the digits before the decimal sign in groups."""
        if not self.thousands or len(whole) < 4:
            return whole
        head, groups = whole[:-3], [whole[-3:]]
        step = 2 if self.is_indian else 3
        while head:
            groups.insert(0, head[-step:])
            head = head[:-step]
        return self.thousands.join(groups)


def find_style(numbers: Sequence[tuple[Parts, float]], decimal: str) -> NumberStyle:
    """Return how the numbers of a column usually look.

    Parameters
    ----------
    numbers : sequence of (Parts, float)
        Numbers, and in how many rows each of them occurs.
    decimal : {".", ","}
    """
    pairs = sorted(numbers, key=lambda pair: -pair[1])[:_SAMPLE]
    if not pairs:
        return NumberStyle(decimal)
    digits = [(parts.digits.partition(decimal), weight) for parts, weight in pairs]
    n_decimals = [(len(fraction), weight) for (_, _, fraction), weight in digits]
    usual, share = most_frequent(n_decimals)
    most = usual if share >= _FIXED_SHARE else max(number for number, _ in n_decimals)
    is_exact = most <= _MOST_DECIMALS and not any(parts.exponent for parts, _ in pairs)
    # Numbers below 1,000 do not show how thousands are grouped, nor positive ones a minus sign.
    wholes = [(whole, weight) for (whole, _, _), weight in digits if len(whole) > 3]
    signs = [(whole.strip("0123456789")[:1], weight) for whole, weight in wholes]
    # Where no amount of money is so large, others will be written as most people do.
    is_money = not signs and all(parts.is_money for parts, _ in pairs)
    unseen = {".": ",", ",": "."}[decimal] if is_money else ""
    negatives = [(parts.negative, weight) for parts, weight in pairs if parts.negative]
    return NumberStyle(
        decimal,
        thousands=most_frequent(signs)[0] if signs else unseen,
        is_indian=any(_INDIAN.fullmatch(whole) for whole, _ in wholes),
        decimals=most if is_exact else -1,
        is_fixed=share >= _FIXED_SHARE,
        before=most_frequent([(parts.before, weight) for parts, weight in pairs])[0],
        after=most_frequent([(without_magnitude(parts.after), n) for parts, n in pairs])[0],
        negative=most_frequent(negatives)[0] if negatives else "-",
    )
