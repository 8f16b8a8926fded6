from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from qms22.tables.texts.number_format import NumberFormat, find_number_format, find_value_format
from qms22.tables.texts.words import is_number_text


def find(
    texts: list[str], counts: list[int] | None = None, hint: str | None = None
) -> NumberFormat:
    found = find_number_format(texts, counts, hint)
    assert found is not None
    return found


def swap(text: str, point: str, comma: str) -> str:
    """Return a number in English style with other signs."""
    return text.replace(",", "_").replace(".", point).replace("_", comma)


def indian(cents: int) -> str:
    """Return an amount grouped as in India: the last three digits, then pairs."""
    rest, last = str(cents // 100)[:-3], str(cents // 100)[-3:]
    pairs = [rest[max(at - 2, 0) : at] for at in range(len(rest), 0, -2)][::-1]
    return ",".join([*pairs, last]) + f".{cents % 100:02}"


# How each locale writes a whole number of cents.
LOCALES: dict[str, Callable[[int], str]] = {
    "plain": lambda cents: f"{cents / 100:.2f}",
    "English": lambda cents: f"{cents / 100:,.2f}",
    "dollars": lambda cents: f"${cents / 100:,.2f}",
    "dollars, code": lambda cents: f"USD {cents / 100:,.2f}",
    "reais": lambda cents: "R$ " + swap(f"{cents / 100:,.2f}", ",", "."),
    "German euros": lambda cents: swap(f"{cents / 100:,.2f}", ",", ".") + " €",
    "French": lambda cents: swap(f"{cents / 100:,.2f}", ",", "\u202f") + "\u00a0€",
    "Czech": lambda cents: swap(f"{cents / 100:,.2f}", ",", " ") + " Kč",
    "Swiss": lambda cents: "CHF " + swap(f"{cents / 100:,.2f}", ".", "\u2019"),
    "rupees": lambda cents: "₹" + indian(cents),
    "percent": lambda cents: f"{cents / 100:.2f} %",
    "German percent": lambda cents: swap(f"{cents / 100:.2f}", ",", "") + "%",
    "kilograms": lambda cents: f"{cents / 100:.2f} kg",
    "speeds": lambda cents: f"{cents / 100:.2f} km/h",
    "degrees": lambda cents: f"{cents / 100:.2f}°C",
    "areas": lambda cents: f"{cents / 100:,.2f} m²",
    "other words": lambda cents: f"{cents / 100:.2f} Stück",
}
NEGATIVES: dict[str, Callable[[str], str]] = {
    "-": lambda text: f"-{text}",
    "\u2212": lambda text: f"\u2212{text}",
    "()": lambda text: f"({text})",
    "5-": lambda text: f"{text}-",
}


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("sign", NEGATIVES)
@settings(max_examples=examples(20))
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=9, unique=True))
def test_amounts_of_every_locale_are_read_and_shown(
    locale: str, sign: str, amounts: list[int]
) -> None:
    write, negate = LOCALES[locale], NEGATIVES[sign]
    texts = [write(cents) for cents in amounts] + [negate(write(amounts[0]))]
    values = np.array([*amounts, -amounts[0]]) / 100
    found = find(texts)
    np.testing.assert_allclose(found.read(texts), values)
    # What it shows is read as the same number again, to the last cent.
    shown = [found.show(float(value)) for value in values]
    np.testing.assert_allclose(found.read(shown), values)
    assert find(shown).unit == found.unit


@pytest.mark.parametrize("locale", LOCALES)
def test_numbers_are_shown_as_the_column_writes_them(locale: str) -> None:
    write = LOCALES[locale]
    texts = [write(cents) for cents in (123_456_789, 1, 9_950, 100_000)]
    found = find(texts)
    plain = [
        text.replace("\u202f", " ").replace("\u00a0", " ").replace("\u2019", "'") for text in texts
    ]
    assert [found.show(float(value)) for value in found.read(texts)] == plain


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.booleans())
def test_what_python_writes_is_read(values: list[float], as_general: bool) -> None:
    texts = [f"{value:.6g}" if as_general else repr(value) for value in values]
    np.testing.assert_array_equal(
        find(texts, hint=".").read(texts), [float(text) for text in texts]
    )


@given(st.text("0123456789.+-eE ", max_size=9))
def test_plain_numbers_are_those_of_before_without_codes(text: str) -> None:
    found = NumberFormat().read([text])[0]
    digits = text.strip().lstrip("+-")
    is_code = digits[:1] == "0" and digits[1:2].isdecimal()
    is_phone = text.strip().startswith("+") and sum(map(str.isdecimal, digits)) >= 8
    if is_number_text(text) and not is_code and not is_phone:
        assert found == float(text)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,234.50", "12"], [1234.5, 12]),
        (["1.234,50", "12"], [1234.5, 12]),
        (["12,5", "1,234"], [12.5, 1.234]),
        (["0,125", "1,234"], [0.125, 1.234]),
        (["1,234,567", "1.234"], [1234567, 1.234]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        # One sign before three digits everywhere: what people mean.
        (["1,234", "56,789"], [1234, 56789]),
        (["1.234", "56.789"], [1.234, 56.789]),
        (["1.250 €", "12.500 €"], [1250, 12500]),
        (["1.849 €", "1.799 €"], [1.849, 1.799]),
        (["1.250", "12", "3.000"], [1250, 12, 3000]),
        (["1.253", "12", "3.007"], [1.253, 12, 3.007]),
    ],
)
def test_the_whole_column_decides_about_the_decimal_sign(
    texts: list[str], values: list[float]
) -> None:
    np.testing.assert_allclose(find(texts).read(texts), values)
    np.testing.assert_allclose(find(texts[::-1]).read(texts), values)


def test_a_hint_decides_only_where_the_column_does_not() -> None:
    assert find(["1,234"], hint=",").read(["1,234"]) == [1.234]
    assert find(["1.234"], hint=",").read(["1.234"]) == [1234]
    assert find(["1.234", "1.5"], hint=",").read(["1.234"]) == [1.234]


def test_more_rows_decide_and_the_others_are_words() -> None:
    found = find(["12.5", "13.5", "12,5"], [50, 49, 1])
    np.testing.assert_array_equal(found.read(["12.5", "12,5"]), [12.5, np.nan])


def test_the_most_frequent_unit_is_that_of_the_column() -> None:
    found = find(["12 kg", "13 KG", "5 lb", "7"], [60, 35, 2, 3])
    np.testing.assert_array_equal(
        found.read(["12 kg", "13 KG", "5 lb", "7", "5 %"]), [12, 13, np.nan, 7, np.nan]
    )
    assert find_number_format(["12 kg", "5 lb"], [60, 40]) is None
    assert find_number_format(["3 MW", "5 m"], [50, 50]) is None
    assert find(["1 day", "2 days"]).read(["1 day", "2 days"]).tolist() == [1, 2]


def test_numbers_without_a_unit_have_that_of_the_column() -> None:
    texts, counts = ["12 kg", "7", "5 lb"], [40, 59, 1]
    np.testing.assert_array_equal(find(texts, counts).read(texts), [12, 7, np.nan])
    np.testing.assert_array_equal(find(texts, [1, 98, 1]).read(texts), [np.nan, 7, np.nan])


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["12 kg", "500 g", "3 kg"], [12, 0.5, 3]),
        (["1.5 GB", "300 MB", "2 GB"], [1.5, 0.3, 2]),
        (["20 ms", "30 ms", "1.5 s"], [20, 30, 1500]),
        (["30 min", "45 min", "2 h"], [30, 45, 120]),
        (["5 MW", "7 MW", "3 mW"], [5, 7, 3e-9]),
    ],
)
def test_prefixes_of_one_unit_are_converted(texts: list[str], values: list[float]) -> None:
    np.testing.assert_allclose(find(texts).read(texts), values)


def test_prices_without_cents() -> None:
    texts = ["12,- €", "1.234,-- €", "7,50 €", "-3,- €"]
    np.testing.assert_array_equal(find(texts).read(texts), [12, 1234, 7.5, -3])
    assert np.isnan(find(["2", "3", "7"]).read(["2-"])).all()
    assert find(["2-", "3-", "7-", "5"]).read(["2-"]).tolist() == [-2]
    assert find_number_format(["1", "2", "3", "2-"], [90, 80, 70, 60]) is None
    ages = [str(age) for age in range(20, 60)]
    assert np.isnan(find([*ages, "60-"], [9] * 41).read(["60-"])).all()
    assert find(["12.-", "7.50"]).read(["12.-", "12.50-"]).tolist() == [12, -12.5]


@given(st.lists(st.text(max_size=12)), st.lists(st.text("0123456789.,'- €%k()", max_size=9)))
def test_any_text_is_read_without_an_error(texts: list[str], numbers: list[str]) -> None:
    found = find_number_format(texts + numbers, is_asked=True)
    if found is not None:
        values = found.read(texts + numbers)
        assert np.isfinite(values).any()
        assert not np.isinf(values).any()
        for value in values:
            found.show(float(value))


def test_many_texts_are_read_as_few_are() -> None:
    texts = [f"${cents / 100:,.2f}" for cents in range(0, 10**8, 1999)] + ["-", "($1,234.50)"]
    found = find(texts)
    np.testing.assert_array_equal(
        found.read(texts)[-5000:], np.concatenate([found.read([text]) for text in texts[-5000:]])
    )
    np.testing.assert_allclose(found.read(texts)[:-2], np.arange(0, 10**8, 1999) / 100)


def test_a_share_is_no_percentage() -> None:
    np.testing.assert_array_equal(find(["12 %", "3 %"]).read(["0.12", "0"]), [np.nan, 0])


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1.2k", "800", "3M"], [1200, 800, 3e6]),
        (["$5k", "$12"], [5000, 12]),
        (["£1.2m", "£30k"], [1.2e6, 3e4]),
        (["1,2 Mio. €", "3 Mrd. €"], [1.2e6, 3e9]),
        (["5K", "7K", "12K"], [5000, 7000, 12000]),
    ],
)
def test_magnitudes(texts: list[str], values: list[float]) -> None:
    found = find(texts)
    np.testing.assert_allclose(found.read(texts), values)
    np.testing.assert_allclose(found.read([found.show(value) for value in values]), values)


def test_house_numbers_have_no_magnitudes() -> None:
    found = find(["12", "13", "14k"], [60, 38, 2])
    np.testing.assert_array_equal(found.read(["12", "14k"]), [12, np.nan])


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "012", "123"],
        ["01234", "12345", "54321"] * 30,
        ["+4915112345678", "+4915112345679"],
        ["+49 151 123 456", "+49 151 123 457"],
        ["555 123 456", "555 123 457", "555 987 654"],
        ["(555) 123-4567", "(555) 123-4568"],
        ["555-1234", "555-4321"],
        ["4111 1111 1111 1111", "4222 2222 2222 2222"],
        ["1.2.3", "1.2.10", "2.0.1"],
        ["3-5", "6-9"],
        ["2024-W05", "2024-W06"],
        ["2024-01-31", "31.12.2024"],
        ["12:30", "7:05"],
        ["2 PM", "3 PM"],
        ["192.168.100.200", "192.168.100.201"],
        ["192.168.1.1", "10.0.0.1"],
        ["12A", "12B", "14C"],
        ["A12", "B13"],
        ["v1", "v2"],
        ["Room 5", "Room 6"],
        ["5more", "6more"],
        ["1_0", "2_0"],
        ["0x1f", "0x2f"],
        ["inf", "nan"],
        ["1e999", "2e999"],
        ["(5", "6)"],
        ["--5", "+-5"],
        ["1,23", "4,5,6"],
        ["٣", "٤"],
        ["", "-"],
        [],
    ],
)
def test_codes_and_words_are_no_numbers(texts: list[str]) -> None:
    assert find_number_format(texts) is None


def test_isbns_are_codes_though_most_are_digits() -> None:
    texts = [f"{10**8 + 7 * at}{'X' if at % 11 == 0 else at % 11}" for at in range(500)]
    assert find_number_format(texts) is None


def test_a_single_padded_cell_is_a_word() -> None:
    found = find(["5", "12", "130", "007"], [50, 40, 9, 1])
    np.testing.assert_array_equal(found.read(["5", "007"]), [5, np.nan])


@pytest.mark.parametrize("word", ["-", "unknown", "n/k", "<5", "~7", "see note"])
def test_few_words_leave_a_column_numeric(word: str) -> None:
    found = find(["5", "7.5", word], [60, 31, 9])
    np.testing.assert_array_equal(found.read(["5", word]), [5, np.nan])
    assert find_number_format(["5", "7.5", word], [60, 29, 11]) is None


def test_what_the_user_asks_for_needs_a_single_number() -> None:
    texts = ["$5", "unknown", "none", "007"]
    assert find_number_format(texts) is None
    found = find_number_format(texts, is_asked=True)
    assert found is not None
    np.testing.assert_array_equal(found.read(texts), [5, np.nan, np.nan, 7])
    assert find_number_format(texts[1:3], is_asked=True) is None


def test_a_median_is_shown_with_enough_digits() -> None:
    assert find(["12", "13"]).show(12.5) == "12.5"
    assert find(["$12.00", "$13.00"]).show(1 / 3) == "$0.3333"


def test_money_above_all_that_is_known_has_thousands() -> None:
    assert find(["12,50 €", "980,00 €"]).show(123456.5) == "123.456,50 €"
    assert find(["$12.50", "$980.00"]).show(1234.5) == "$1,234.50"
    assert find(["12.50", "980.00"]).show(1234.5) == "1234.50"
    assert find(["$12.50", "$1980.00"]).show(1234.5) == "$1234.50"


def test_values_that_are_stored_as_numbers() -> None:
    assert find_value_format(np.array([1.0, 1234567.0, np.nan])).show(1234567.0) == "1234567"
    assert find_value_format(np.array([0.25, 3.0, np.inf])).show(3.0) == "3"
    assert find_value_format(np.array([1 / 3, 2 / 3])).show(1 / 3) == "0.333333"
    assert find_value_format(np.array([])).show(0.5) == "0.5"


def test_a_format_is_plain_data() -> None:
    found = find(["$1.2k", "$3M"])
    assert NumberFormat(**asdict(found)) == found
    assert json.loads(json.dumps(asdict(found)))["unit"] == "$"


def test_years_of_a_season_are_no_numbers() -> None:
    games = [f"{year} Summer" for year in range(1936, 1996, 4)]
    assert find_number_format(games, [3] * len(games)) is None
