"""Check digits: those of real numbers are right, and one other digit is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qms22.checks.check_digits import find_check_digit, has_check_digit

RIGHT = [
    ("IBAN", "DE89 3704 0044 0532 0130 00"),
    ("IBAN", "GB82 WEST 1234 5698 7654 32"),
    ("IBAN", "fr1420041010050500013m02606"),
    ("Luhn", "79927398713"),
    ("Luhn", "4111 1111 1111 1111"),
    ("EAN", "4006381333931"),
    ("EAN", "73513537"),
    ("EAN", "978-0-306-40615-7"),
    ("modulo 11", "0-306-40615-2"),
    ("modulo 11", "0-8044-2957-X"),
    ("modulo 11", "2049-3630"),
    ("Luhn", "2160-0"),
    ("modulo 97", "85.07.30-033.28"),
]


# Of these, another digit may leave the same remainder.
REMAINDERS = [("modulo 7", "276-44102321"), ("modulo 9", "2007-5003-8")]


@pytest.mark.parametrize(("name", "text"), [*RIGHT, *REMAINDERS])
def test_real_numbers_are_right(name: str, text: str) -> None:
    assert has_check_digit(name, text)
    assert not has_check_digit(name, text[:-1])
    assert not has_check_digit(name, "")


@given(st.sampled_from(RIGHT), st.data())
def test_one_other_digit_is_wrong(case: tuple[str, str], data: st.DataObject) -> None:
    name, text = case
    at = data.draw(st.sampled_from([at for at, sign in enumerate(text) if sign.isdigit()]))
    digit = data.draw(st.sampled_from([sign for sign in "0123456789" if sign != text[at]]))
    assert not has_check_digit(name, text[:at] + digit + text[at + 1 :])


@pytest.mark.parametrize(("name", "text"), [RIGHT[0], RIGHT[4], RIGHT[5], RIGHT[8]])
def test_a_column_tells_its_check_digit(name: str, text: str) -> None:
    rng = np.random.default_rng(0)
    digits = [at for at, sign in enumerate(text) if sign.isdigit()]
    texts: list[str] = []
    while len(texts) < 100:
        signs = list(text)
        for at in rng.choice(digits[2:], 4):
            signs[at] = str(rng.integers(10))
        texts += ["".join(signs)] if has_check_digit(name, "".join(signs)) else []
    wrong = [each[:-1] + str((int(each[-1]) + 1) % 10) for each in texts]
    assert find_check_digit(texts) == name
    # One of them is wrong, whichever it is; and most of them are.
    for at in (0, 1, 50, 99):
        assert find_check_digit([*texts[:at], wrong[at], *texts[at + 1 :]]) == name
    assert find_check_digit([wrong[0], wrong[1], *texts[2:]]) == name
    assert find_check_digit([*texts[:50], *wrong[50:]]) is None
    assert find_check_digit(texts[:19]) is None


def test_any_numbers_have_no_check_digit() -> None:
    rng = np.random.default_rng(0)
    assert find_check_digit([f"{number:013}" for number in rng.integers(0, 10**13, 500)]) is None
