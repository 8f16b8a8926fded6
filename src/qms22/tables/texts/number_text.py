"""The parts of a text that writes a number, and what its digits mean."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from qms22.tables.texts.units import SIGNS, currency, unit

# Blanks, minus signs and apostrophes in one form each.
_PLAIN = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2008\u2009\u200a\u202f", " ")
    | dict.fromkeys("\u2212\u2013\u2010\u2011", "-")
    | dict.fromkeys("\u2019\u02bc\u00b4", "'")
)
_TEXT = re.compile(
    rf"(\()?([+-])? ?((?:[^\W\d_]{{1,3}}\.?)?[{re.escape(SIGNS)}%]? ?)([+(-])?"
    r"([0-9]+(?:[.,' ][0-9]+)*(?:[.,]-{0,2})?|[.,][0-9]+)([eE][+-]?[0-9]+)?"
    r"(\))?(?:( ?)([^ 0-9.,'()+-][^()]{0,15}?))?( ?-)?(\))?"
)
# Whole numbers with a plus sign and so many digits are phone numbers.
_PHONE_DIGITS = 8
# More digits in a row are an identifier: floats would round them.
MOST_DIGITS = 15
_LONG = re.compile(rf"-?\d{{{MOST_DIGITS + 1},}}")


def _digits_pattern(decimal: str, other: str) -> re.Pattern[str]:
    """Return the pattern of the digits of a number with a decimal sign.

    Thousands have any other sign, the same throughout, or are grouped as in India: 12,34,567.
    """
    groups = rf"[1-9][0-9]{{0,2}}([{other}' ])[0-9]{{3}}(?:\1[0-9]{{3}})*"
    indian = rf"[1-9][0-9]?(?:[{other}][0-9]{{2}})+[{other}][0-9]{{3}}"
    # Prices without cents may end in dashes: 12,-
    return re.compile(rf"(?:{groups}|{indian}|[0-9]*)(?:[{decimal}](?:[0-9]*|--?))?")


_DIGITS = {".": _digits_pattern(".", ","), ",": _digits_pattern(",", ".")}
_TO_PYTHON = {".": str.maketrans("", "", ",' -"), ",": str.maketrans(",", ".", ".' -")}


class Parts(NamedTuple):
    """The parts of a text that writes a number."""

    digits: str  # with signs of thousands and decimals
    exponent: str  # such as "e-5"; "" if there is none
    negative: str  # how it says that it is negative: "-", "()" or "5-"; "" if it is not
    unit: str  # as in `units.unit`
    magnitude: str  # as there
    is_money: bool  # whether the unit is a currency
    # The texts around the digits, with blanks.
    before: str
    after: str


def split_number(text: str) -> Parts | None:
    """Return the parts of a text that writes a number; None if it does not."""
    text = text.strip()
    match = _TEXT.fullmatch(text if text.isascii() else text.translate(_PLAIN))
    if match is None:
        return None
    opened, sign, before, inner, digits, exponent, closed, blank, after, minus, end = match.groups(
        ""
    )
    brackets = (opened or inner == "(", closed or end)
    signs = [each for each in (opened, sign, inner, minus) if each]
    if len(signs) > 1 or bool(brackets[0]) != bool(brackets[1]) or (closed and end):
        return None
    if "+" in signs and not after and sum(map(str.isdigit, digits)) >= _PHONE_DIGITS:
        return None
    if _is_long(digits):
        return None
    money = currency(before.rstrip()) if before.strip() else ""
    if money and after == "m":  # £1.2m are millions, not metres
        after = "M"
    found = unit(after, bool(blank)) if after else ("", "")
    if money is None or found is None or (money and found[0] not in ("", money)):
        return None
    negative = "()" if brackets[0] else "5-" if minus else "".join(signs).replace("+", "")
    is_money = bool(money) or currency(found[0]) is not None
    name = money or found[0]
    return Parts(digits, exponent, negative, name, found[1], is_money, before, blank + after)


def _is_long(digits: str) -> bool:
    return len(digits) > MOST_DIGITS and _LONG.fullmatch(digits) is not None


def number_value(parts: Parts, decimal: str) -> float:
    """Return a number without its magnitude; NaN if it has another decimal sign."""
    digits = parts.digits
    if not digits.isdecimal():
        if not _DIGITS[decimal].fullmatch(digits):
            return math.nan
        digits = digits.translate(_TO_PYTHON[decimal])
    value = float(digits + parts.exponent)
    return math.nan if math.isinf(value) else -value if parts.negative else value
