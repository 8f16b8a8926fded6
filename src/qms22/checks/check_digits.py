"""Check digits of account, card, book and article numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

# So many different texts, nearly all of them right, tell that a column has a check digit; by chance
# a tenth would be.
_LEAST_TEXTS = 20
_NEARLY_ALL = 0.98

_SEPARATORS = re.compile(r"[\s./-]")


def _iban(text: str) -> bool:
    """ISO 7064, modulo 97, with the first four signs at the end; letters count from 10."""
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{8,30}", text):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


def _luhn(text: str) -> bool:
    """Card numbers and LOINC: every second digit from the right counts twice, by its digit sum."""
    if not re.fullmatch(r"\d{4,19}", text):
        return False
    digits = [int(sign) for sign in reversed(text)]
    return sum(digits[::2] + [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]) % 10 == 0


def _divides(pattern: str, modulus: int, weights: Sequence[int], text: str) -> bool:
    """Return whether a modulus divides the sum of digits with weights from the right; X is 10."""
    if not re.fullmatch(pattern, text):
        return False
    digits = (10 if sign == "X" else int(sign) for sign in reversed(text))
    pairs = zip(weights, digits, strict=False)
    return sum(weight * digit for weight, digit in pairs) % modulus == 0


_POWERS = tuple(10**place for place in range(13))
_ALGORITHMS: dict[str, Callable[[str], bool]] = {
    "IBAN": _iban,
    "Luhn": _luhn,
    # Article numbers and ISBN-13; ISBN-10 and ISSN.
    "EAN": partial(_divides, r"\d{8}|\d{12,14}", 10, (1, 3) * 7),
    "modulo 11": partial(_divides, r"\d{7}[\dX]|\d{9}[\dX]", 11, range(1, 11)),
    # The remainder of the digits before: of air waybills, without the three of the airline.
    "modulo 7": partial(_divides, r"\d{8}|\d{11}", 7, (-1, *_POWERS[:7])),
    "modulo 9": partial(_divides, r"\d{8,14}", 9, (-1, *_POWERS)),
    # Two digits, which add what the remainder lacks.
    "modulo 97": partial(_divides, r"\d{10,15}", 97, (1, 10, *_POWERS)),
}


def has_check_digit(name: str, text: str) -> bool:
    """Whether a text has the right check digit of an algorithm, by its name."""
    return _ALGORITHMS[name](_SEPARATORS.sub("", text).upper())


def find_check_digit(texts: Sequence[str]) -> str | None:
    """Return the algorithm by which nearly all texts are right, if there is one.

    >>> has_check_digit("IBAN", "DE89 3704 0044 0532 0130 00")
    True
    """
    if len(texts) < _LEAST_TEXTS:
        return None
    for name in _ALGORITHMS:
        # A few tell of most columns that they have no such digit, whichever these are.
        some = texts[:_LEAST_TEXTS]
        if 2 * sum(has_check_digit(name, text) for text in some) < len(some):
            continue
        if sum(has_check_digit(name, text) for text in texts) >= _NEARLY_ALL * len(texts):
            return name
    return None
