"""Numbers in texts as people write them: signs of any locale, currencies, percent and units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from qms22.tables.texts.durations import find_duration_style, read_durations, show_duration
from qms22.tables.texts.number_text import Parts, number_value, split_number
from qms22.tables.texts.text_columns import (
    LEAST_DIFFERENT,
    fits_column,
    most_frequent,
    most_weighty,
    row_weights,
)
from qms22.tables.texts.units import MAGNITUDES, conversion, is_thing, without_magnitude
from qms22.tables.texts.words import number_text

# A unit that so large a share of the numbers has is that of the others without a unit too.
_UNIT_SHARE = 0.1
# A band of numbers, such as "5 to 8" or "more than 8".
_BAND = re.compile(r"[0-9] ?(?:-|–|to|bis) ?[0-9]|(?:more|less|over|under) (?:than )?[0-9]")
_PADDED = re.compile("0[0-9]")
_YEAR = re.compile("(?:19|20)[0-9]{2}")
# So large a share of the whole numbers of one length makes them codes, if some begin with 0.
_CODES_SHARE = 0.9
# Numbers of one length, grouped by blanks, are phone numbers if they have so many digits.
_PHONE_DIGITS = 9
_BYTE = "(?:1?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])"
_IP_ADDRESS = re.compile(rf"{_BYTE}(?:\.{_BYTE}){{3}}")
# So large a share of the rows must have as many decimals for zeros at the end to be written.
_FIXED_SHARE = 0.9
# Numbers with more decimals than this come from a computation: the first digits are enough.
_MOST_DECIMALS = 8
# From here on a float has no decimals to show.
_LARGEST = 1e15
# A median may need more decimals than the numbers: as many as this error asks for.
_ERROR = 5e-4
_INDIAN = re.compile(r"[0-9]{1,2}(\D[0-9]{2})+\D[0-9]{3}")
# So many stored numbers show how many decimals they have.
_SHOWN = 1000
# A minus behind a whole number is one only in a column that writes several different negative
# numbers so: 2- may be "2 or more", or cut off, and recur.
_BEHIND, _LEAST_BEHIND = "5-", 3


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are read and written, in plain values, which can be saved."""

    # The decimal sign. It matters to `read`; any other sign may group thousands.
    decimal: str = "."
    thousands: str = ""  # the sign between groups of digits; "" if there is none
    is_indian: bool = False  # whether groups are as in 12,34,567
    decimals: int = -1  # the most decimals that are usual; -1 for six significant digits
    is_fixed: bool = False  # whether nearly all numbers have as many decimals
    before: str = ""  # what is before and after the digits, with blanks
    after: str = ""
    negative: str = "-"  # how negative numbers are written: -5 ("-"), (5) ("()") or 5- ("5-")
    unit: str = ""  # the currency, percent sign or unit, in one spelling; "" if there is none
    # The letters that multiply numbers, such as ("k", "M"); none are read if it is empty.
    magnitudes: tuple[str, ...] = ()
    reads_zeros: bool = False  # whether a number may have zeros in front, such as 007
    # How durations are written, as `find_duration_style` returns it; "" for other numbers. They are
    # read as seconds.
    duration: str = ""
    # Whether numbers, which a table has as such, are shown with a comma, as in its file.
    shows_comma: bool = False

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the numbers that texts write; NaN for a text that does not fit."""
        if self.duration:
            return read_durations(texts)
        if self.unit and not self.before and not self.after:
            return self._values([split_number(text) for text in texts])
        values = self._read_usual(texts)
        others = np.flatnonzero(np.isnan(values)).tolist()
        values[others] = self._values([split_number(texts[at]) for at in others])
        return values

    def _read_usual(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Read the numbers that look as most do, which is quick; NaN for other texts."""
        whole = "(?:0|[1-9][0-9]{0,11})"
        if self.thousands:
            whole = f"(?:[1-9][0-9]{{0,2}}(?:{re.escape(self.thousands)}[0-9]{{3}}){{0,3}}|{whole})"
        digits = f"(?P<digits>-?{whole}(?:{re.escape(self.decimal)}[0-9]{{1,15}})?)"
        pattern = f"^{re.escape(self.before)}{digits}{re.escape(self.after)}$"
        try:
            column = pa.array(texts, pa.large_string())
        except UnicodeEncodeError:  # a half of a character
            return np.full(len(texts), np.nan)
        found = pc.struct_field(pc.extract_regex(column, pattern), "digits")
        if self.thousands:
            found = pc.replace_substring(found, self.thousands, "")
        found = pc.replace_substring(found, self.decimal, ".")
        return np.array(found.cast(pa.float64()).to_numpy(zero_copy_only=False))

    def show(self, value: float) -> str:
        """Return a number as the column writes numbers."""
        if self.duration:
            return show_duration(value, self.duration)
        letters = [name for name in self.magnitudes if MAGNITUDES[name] <= abs(value)]
        letter = letters[-1] if letters else ""
        text = self._signed(value, self._digits(abs(value / MAGNITUDES[letter])) + letter)
        return text.replace(".", ",") if self.shows_comma else text

    def write_exactly(self, value: float) -> str:
        """Return a number with all of its digits."""
        text = number_text(abs(value))
        if "e" in text:
            return self._signed(value, text.replace(".", self.decimal))
        whole, _, fraction = text.partition(".")
        fraction = fraction.ljust(self.decimals if self.is_fixed else 0, "0")
        return self._signed(value, self._grouped(whole, fraction))

    def _signed(self, value: float, digits: str) -> str:
        text = self.before + digits + self.after
        if not value < 0:
            return text
        return {"()": f"({text})", "5-": f"{text}-"}.get(self.negative, f"-{text}")

    def _digits(self, size: float) -> str:
        if self.decimals < 0 or not size < _LARGEST:
            return f"{size:.6g}".replace(".", self.decimal)
        decimals = self.decimals
        while decimals < _MOST_DECIMALS and abs(round(size, decimals) - size) > _ERROR * size:
            decimals += 1
        whole, _, fraction = f"{size:.{decimals}f}".partition(".")
        return self._grouped(whole, fraction if self.is_fixed else fraction.rstrip("0"))

    def _grouped(self, whole: str, fraction: str) -> str:
        """Return a number, with the digits before the decimal sign in groups."""
        groups = [whole]
        if self.thousands:
            step = 2 if self.is_indian else 3
            head, groups = whole[:-3], [whole[-3:]]
            while head:
                groups.insert(0, head[-step:])
                head = head[:-step]
        return self.thousands.join(groups) + (fraction and self.decimal + fraction)

    def _values(self, found: Sequence[Parts | None]) -> NDArray[np.float64]:
        return np.array([math.nan if parts is None else self._value(parts) for parts in found])

    def _value(self, parts: Parts) -> float:
        is_behind = parts.negative == _BEHIND and parts.digits.isdecimal()
        is_padded = _PADDED.match(parts.digits) is not None
        if (is_behind and self.negative != _BEHIND) or (is_padded and not self.reads_zeros):
            return math.nan
        value = number_value(parts, self.decimal)
        if parts.unit == self.unit and not parts.magnitude:
            return value
        if parts.magnitude and not self.magnitudes:
            return math.nan
        # A number without a unit has that of the column; but 0.12 is not 0.12 %.
        is_plain = not parts.unit and (self.unit != "%" or value == 0)
        factor = 1.0 if is_plain else conversion(parts.unit, self.unit)
        return value * (factor * MAGNITUDES[parts.magnitude])


def find_number_format(
    texts: Sequence[str],
    counts: ArrayLike | None = None,
    decimal_hint: str | None = None,
    is_asked: bool = False,
) -> NumberFormat | None:
    """Return how the numbers of a column are written, or None if it is no column of numbers.

    Nearly all rows must have a number. The other texts are words: `read` returns NaN for them.

    - The decimal sign is the one that explains more rows: 1,234.50, 12.5 and 1,234,567 have a
      point, 1.234,50, 12,5, 0,125 and 1.234.567 a comma. If all numbers fit both ways, such as
      1,234, the hint decides, then what people mean: a comma before three digits is one of
      thousands; a point is decimal, except for money (12.500 €) and where no way to write decimals
      explains the column (12 and 1.250 and 3.000).
    - The most frequent unit is that of the column. Numbers with a prefix of the same unit (g and
      kg, ms and s, MB and GB) are converted, those with other units are words. Numbers without a
      unit have that of the column, except where it is percent.
    - Letters for thousands and millions count if most rows have one, with a currency, or if one is
      behind a fraction (1.2k). A house number 12k is a word.
    - A minus behind (5-) counts if most negative numbers have it there.
    - No numbers are: codes with zeros in front (007), if all have the same length also the ones
      without; phone numbers; versions (1.2.3), ranges (3-5), times and dates. Nor are a few
      numbers among bands, or of things: "5 to 8" and "1 vehicle" are levels, and "36 months" is a
      number.

    `texts` are the different texts of the column in the known-normal rows, and `counts` in how many
    rows each of them occurs; `decimal_hint` is the decimal sign of other columns. If the user has
    asked for numbers, a single one is enough, and zeros in front do not matter.

    Examples
    --------
    >>> found = find_number_format(["$1,234.50", "$12.00", "($7.25)", "unknown"], [5, 9, 7, 1])
    >>> [float(value) for value in found.read(["$99,999.00", "n/a", "($1.50)"])]
    [99999.0, nan, -1.5]
    >>> found.show(-1234.5)
    '($1,234.50)'
    """
    weights = row_weights(texts, counts)
    found = [split_number(text) for text in texts]
    fits = np.array([parts is not None for parts in found], dtype=bool)
    if not fits_column(fits, weights, is_asked):
        return None
    # Few numbers beside bands such as "5 to 8" are levels, too.
    are_few = np.count_nonzero(fits) < LEAST_DIFFERENT
    has_bands = are_few and any(map(_BAND.search, compress(texts, ~fits)))
    if not is_asked and (has_bands or _are_codes(texts, weights)):
        return None
    parts = [each for each in found if each is not None]
    decimal = _choose_decimal(parts, weights[fits], decimal_hint)
    unit = _choose_unit(parts, weights[fits])
    are_counts = all(each.digits.isdecimal() for each in parts)
    # Few different ones, or years: 1936 Summer.
    are_counts &= len(parts) < LEAST_DIFFERENT or all(
        _YEAR.fullmatch(each.digits) for each in parts
    )
    if not is_asked and are_counts and is_thing(unit):
        return None
    magnitudes = _clear_magnitudes([each for each in parts if each.unit == unit])
    pairs = zip(parts, weights[fits], strict=True)
    minus = [(each.negative, n) for each, n in pairs if each.negative]
    is_behind = sum(sign == _BEHIND for sign, _ in minus) >= _LEAST_BEHIND
    is_behind &= bool(minus) and most_frequent(minus)[0] == _BEHIND
    form = NumberFormat(
        decimal,
        negative=_BEHIND if is_behind else "-",
        unit=unit,
        magnitudes=magnitudes,
        reads_zeros=is_asked,
    )
    fits = ~np.isnan(form._values(found))
    if not fits_column(fits, weights, is_asked):
        return None
    fitting = list(compress(zip(found, weights, strict=True), fits))
    return _with_style(form, [(each, n) for each, n in fitting if each and each.unit == unit])


def find_duration_format(
    name: str, texts: Sequence[str], counts: ArrayLike | None = None, is_asked: bool = False
) -> NumberFormat | None:
    """Return how the durations of a column are written, or None if it has other values."""
    style = find_duration_style(name, texts, counts, is_asked)
    return None if style is None else NumberFormat(unit="s", duration=style)


def find_value_format(values: NDArray[np.float64], *, shows_comma: bool = False) -> NumberFormat:
    """Return how to show the numbers of a column that is stored as numbers."""
    texts = map(number_text, values[np.isfinite(values)][:_SHOWN].tolist())
    found = [(parts, 1.0) for parts in map(split_number, texts) if parts]
    return _with_style(NumberFormat(shows_comma=shows_comma), found)


def _with_style(form: NumberFormat, numbers: list[tuple[Parts, float]]) -> NumberFormat:
    """Return a format with the way in which numbers, and in so many rows each, usually look."""
    decimal = form.decimal
    pairs = most_weighty(numbers)
    if not pairs:
        return form
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
    return replace(
        form,
        thousands=most_frequent(signs)[0] if signs else unseen,
        is_indian=any(_INDIAN.fullmatch(whole) for whole, _ in wholes),
        decimals=most if is_exact else -1,
        is_fixed=share >= _FIXED_SHARE,
        before=most_frequent([(parts.before, weight) for parts, weight in pairs])[0],
        after=most_frequent([(without_magnitude(parts.after), n) for parts, n in pairs])[0],
        negative=most_frequent(negatives)[0] if negatives else "-",
    )


def _choose_decimal(parts: list[Parts], weights: NDArray[np.float64], hint: str | None) -> str:
    """Return the decimal sign that explains more rows."""
    point, comma = (np.array([number_value(each, sign) for each in parts]) for sign in ".,")
    evidence = weights[np.isnan(comma)].sum() - weights[np.isnan(point)].sum()
    if evidence or hint:
        return "." if evidence > 0 or (not evidence and hint == ".") else ","
    # With a decimal comma, 1.234 is the larger number.
    is_larger = np.abs(comma) > np.abs(point)
    if not is_larger.any() or (np.abs(comma) < np.abs(point)).any():
        return "."
    groups = list(compress(parts, is_larger))
    # Three fixed decimals would be in all numbers, and others would not end in 0.
    others = [each.digits for each in compress(parts, point == comma)]
    is_neither = any(len(digits) < 4 for digits in others) and any(
        each.digits.endswith("0") for each in groups
    )
    # Money has two decimals, except for small unit prices.
    is_amount = all(each.is_money for each in groups) and bool((np.abs(point) >= 10).any())
    return "," if is_neither or is_amount else "."


def _choose_unit(parts: list[Parts], weights: NDArray[np.float64]) -> str:
    """Return the unit of a column; percent only if most numbers have it."""
    units = [(each.unit, n) for each, n in zip(parts, weights, strict=True)]
    named = [(name, n) for name, n in units if name not in ("", "%")]
    if named:
        unit, share = most_frequent(named)
        if share * sum(n for _, n in named) >= _UNIT_SHARE * weights.sum():
            return unit
    return most_frequent(units)[0]


def _clear_magnitudes(parts: list[Parts]) -> tuple[str, ...]:
    """Return the magnitude letters of a column, smallest first; none if they may mean otherwise."""
    have = [each for each in parts if each.magnitude]
    is_clear = 2 * len(have) > len(parts) or any(
        each.is_money or not each.digits.isdecimal() for each in have
    )
    letters = {each.magnitude for each in have}
    return tuple(sorted(letters, key=MAGNITUDES.__getitem__)) if is_clear else ()


def _are_codes(texts: Sequence[str], weights: NDArray[np.float64]) -> bool:
    """Return whether whole numbers of one length are codes or phone numbers, or all are IPs."""
    pairs = zip(map(str.strip, texts), weights, strict=True)
    whole = [(text, text.replace(" ", ""), weight) for text, weight in pairs]
    whole = [each for each in whole if each[1].isdecimal()]
    if not whole:
        return all(_IP_ADDRESS.fullmatch(text.strip()) for text in texts)
    length, share = most_frequent([(len(digits), weight) for _, digits, weight in whole])
    is_padded = any(len(digits) == length and _PADDED.match(digits) for _, digits, _ in whole)
    has_blanks = any(" " in text for text, _, _ in whole)
    is_phone = has_blanks and length >= _PHONE_DIGITS and len(texts) > 1
    return share >= _CODES_SHARE and (is_padded or is_phone)
