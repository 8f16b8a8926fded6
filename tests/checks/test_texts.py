"""How texts are written: their form, their signs and words, check digits, misspellings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames
from looking import Looked, look
from numpy.random import Generator

from qms22.checks import learn_checks
from qms22.checks.check_digits import has_check_digit
from qms22.checks.texts import MisspellingCheck, TextCheck
from qms22.tables.columns.cells import Cells

N_NORMAL, N_BATCH, ODD = 600, 150, 7
WORDS = ["steel", "pipe", "valve", "pump", "flange", "gasket", "bolt", "washer", "seal"]
CITIES = ["Berlin", "Hamburg", "Munich", "Cologne", "Dresden", "Leipzig", "Bremen", "Bochum"]


def codes(rng: Generator, n_rows: int) -> list[str]:
    letters = rng.choice(list("ABCDEFGH"), (n_rows, 2))
    return [
        f"{a}{b}-{number:04}"
        for (a, b), number in zip(letters, rng.integers(9999, size=n_rows), strict=True)
    ]


def articles(rng: Generator, n_rows: int) -> list[str]:
    return [" ".join(rng.choice(WORDS, 3)) + f" {rng.integers(10, 99)} mm" for _ in range(n_rows)]


def with_digit(form: str, name: str, rng: Generator) -> str:
    """Return a text of a form with random digits, and a right check digit."""
    while True:
        text = "".join(str(rng.integers(10)) if sign == "0" else sign for sign in form)
        if has_check_digit(name, text):
            return text


def searched(normal: list[str], batch: list[str]) -> Looked:
    rng = np.random.default_rng(9)
    tables = (
        pd.DataFrame({"x": rng.normal(size=len(texts)), "text": texts}) for texts in (normal, batch)
    )
    return look(*tables)


def planted(texts: list[str], odd: str) -> list[str]:
    return [*texts[:ODD], odd, *texts[ODD + 1 :]]


@pytest.mark.parametrize(
    ("make", "odd", "trait", "sentence"),
    [
        (
            codes,
            "AB 1234",
            "rough form",
            ", written like this in none of 600 normal rows; usual is",
        ),
        (
            codes,
            "ab-1234",
            "rough form",
            ", written like this in none of 600 normal rows; usual is",
        ),
        (
            codes,
            "AB-12345",
            "exact form",
            ", written like this in none of 600 normal rows; usual is",
        ),
        (codes, "ZB-1234", "signs", "contains “Z”, as none of 600 normal rows do"),
        (codes, "\u0410B-1234", "signs", "(U+0410), as none of 600 normal rows do"),
        (articles, "steel pipe test 12 mm", "words", "contains “test”, as none of 600 normal rows"),
    ],
)
def test_a_text_that_is_written_in_another_way(
    make: Callable[[Generator, int], list[str]], odd: str, trait: str, sentence: str
) -> None:
    normal, batch = (
        make(np.random.default_rng(seed), n) for seed, n in ((0, N_NORMAL), (1, N_BATCH))
    )
    found = searched(normal, planted(batch, odd))
    assert found.ranking[0] == ODD
    assert sentence in found.says(ODD, TextCheck, "text", trait=trait)
    by_trait = found.by(TextCheck, "text", trait=trait)
    assert by_trait[ODD] > 8
    assert np.delete(by_trait, ODD).max() < 5


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("DE00 0000 0000 0000 0000 00", "IBAN"),
        ("4000 0000 0000 0000", "Luhn"),
        ("400-0000000000", "EAN"),
        ("3-000-00000-0", "modulo 11"),
    ],
)
def test_a_wrong_check_digit(form: str, name: str) -> None:
    rng = np.random.default_rng(0)
    normal, batch = ([with_digit(form, name, rng) for _ in range(n)] for n in (150, 60))
    found = searched(normal, batch)
    assert not found.by(TextCheck, trait=name).any()
    last = batch[ODD][-1]
    wrong = batch[ODD][:-1] + ("1" if last == "0" else "0")
    found = searched(normal, planted(batch, wrong))
    assert found.ranking[0] == ODD
    assert f"has a wrong check digit ({name})" in found.reason(ODD)
    assert np.flatnonzero(found.by(TextCheck, trait=name)).tolist() == [ODD]


def test_a_wrong_check_digit_of_whole_numbers() -> None:
    rng = np.random.default_rng(0)
    normal, batch = (
        pd.DataFrame(
            {
                "x": rng.normal(size=n),
                "ean": [int(with_digit("400" + 10 * "0", "EAN", rng)) for _ in range(n)],
            }
        )
        for n in (150, 60)
    )
    batch.loc[ODD, "ean"] += 1
    found = look(normal, batch)
    assert found.ranking[0] == ODD
    assert found.reason(ODD).startswith(f"ean {batch.ean[ODD]} has a wrong check digit (EAN)")


def test_the_accounts_of_new_customers_have_check_digits_too() -> None:
    """What holds for the texts of all rows counts for rows, though customers are few."""
    rng = np.random.default_rng(0)
    accounts = [with_digit("DE" + 20 * "0", "IBAN", rng) for _ in range(30)]
    rows = [accounts[at] for at in np.sort(rng.integers(30, size=N_NORMAL))]
    codes, levels = pd.factorize(np.array(rows))
    cells = Cells("text", "text", codes, tuple(levels))
    (check,) = (each for each in TextCheck.learn(cells, by_text=True) if each.trait == "IBAN")
    wrong = accounts[0][:-1] + str((int(accounts[0][-1]) + 1) % 10)
    found = Cells("text", "text", np.array([0, 1]), (accounts[0], wrong))
    assert check.surprise({"text": found})[0] == 0
    assert check.surprise({"text": found})[1] > 2 * np.log(N_NORMAL) - 0.1


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        ("Lena MÃ¼ller", "looks like a damaged encoding (Müller?)"),
        ("Lena M\ufffdller", "looks like a damaged encoding"),
        ("Lenа Muller", "mixes Latin and Cyrillic letters"),
    ],
)
def test_a_damaged_or_mixed_name(odd: str, sentence: str) -> None:
    rng = np.random.default_rng(0)
    names = [f"{first} {last}" for first in ("Lena", "José", "Jörg") for last in WORDS]
    normal, batch = (rng.choice(names, n).tolist() for n in (N_NORMAL, N_BATCH))
    found = searched(normal, planted(batch, odd))
    assert found.ranking[0] == ODD
    says = found.says(ODD, TextCheck, trait="faults")
    assert says == f"text {odd} {sentence}, as none of 600 normal rows do"
    assert np.flatnonzero(found.by(TextCheck, trait="faults")).tolist() == [ODD]


PLACEHOLDERS = (
    "test@test.de",
    "TEST TEST",
    "asdf",
    "xxx",
    "n/a n/a",
    "1234567890",
    "00000",
    "99999",
)


@pytest.mark.parametrize("odd", PLACEHOLDERS)
def test_a_placeholder(odd: str) -> None:
    rng = np.random.default_rng(0)
    normal, batch = articles(rng, N_NORMAL), articles(rng, N_BATCH)
    found = searched(normal, planted(batch, odd))
    assert found.ranking[0] == ODD
    says = found.says(ODD, TextCheck, trait="placeholder")
    assert says == f"text {odd} looks like a placeholder, as none of 600 normal rows do"
    assert np.flatnonzero(found.by(TextCheck, trait="placeholder")).tolist() == [ODD]
    # Where normal rows have some, it is none.
    usual = searched([*normal[10:], *[odd] * 10], planted(batch, odd))
    assert usual.by(TextCheck, trait="placeholder")[ODD] < found.surprises[ODD].max() / 2


@pytest.mark.parametrize("text", ["Test GmbH", "contest", "12345", "1000000", "Max", "bar", ""])
def test_no_placeholder(text: str) -> None:
    cells = Cells(
        "text", "text", np.arange(N_NORMAL), tuple(codes(np.random.default_rng(0), N_NORMAL))
    )
    (check,) = (each for each in TextCheck.learn(cells) if each.trait == "placeholder")
    found = Cells("text", "text", np.array([0]), (text,))
    assert check.surprise({"text": found}) == 0


def test_an_address_without_its_sign_and_a_code_cut_short() -> None:
    rng = np.random.default_rng(0)

    def mails(n_rows: int) -> list[str]:
        names = articles(rng, n_rows)
        return [name.replace(" ", ".") + "@example.org" for name in names]

    found = searched(mails(N_NORMAL), planted(mails(N_BATCH), "steel.pipe.20.mmexample.org"))
    assert found.says(ODD, TextCheck, trait="@").endswith(
        "lacks “@”, as none of 600 normal rows do"
    )
    letters = list("ABCDEFGH1234567890")
    normal, batch = (["".join(rng.choice(letters, 18)) for _ in range(n)] for n in (150, 60))
    found = searched(normal, planted(batch, batch[ODD][:11]))
    assert found.ranking[0] == ODD
    assert "has 11 characters, as none of 150" in found.says(ODD, TextCheck, trait="length")


def test_the_month_of_a_text_is_not_odd_and_a_known_text_is_none() -> None:
    rng = np.random.default_rng(0)
    normal, batch = (
        [f"Rent {month} 2025 flat {number}" for number in rng.permutation(n)]
        for month, n in (("April", N_NORMAL), ("Mai", N_BATCH))
    )
    for at in (10, 20, 30):
        normal[at] = "thanks again"
    found = searched(normal, planted(batch, "thanks again"))
    assert not found.by(TextCheck, trait="words").any()
    assert not found.by(TextCheck)[ODD]


@pytest.mark.parametrize(
    ("known", "slip", "meant"),
    [
        (["yes", "no"], "yse", "yes"),
        (["GA-5190", "GA-4823", "GA-4711"], "GA-4171", "GA-4711"),
        # Others are as near.
        (["GA-4190", "GA-4191", "GA-4711"], "GA-4171", None),
        (["A1", "B2"], "A2", None),
    ],
)
def test_a_slip_in_a_short_text(known: list[str], slip: str, meant: str | None) -> None:
    rng = np.random.default_rng(0)
    normal, batch = (rng.choice(known, n).tolist() for n in (N_NORMAL, N_BATCH))
    found = searched(normal, planted(batch, slip))
    assert found.ranking[0] == ODD
    assert (found.reason(ODD) == f"text {slip}; did you mean “{meant}”?") == (meant is not None)


def test_a_long_example_is_said_to_be_cut() -> None:
    normal, batch = (
        [
            f"https://shop.example.com/item/{number}?ref=mail&page=1"
            for number in range(100, 100 + n)
        ]
        for n in (300, 100)
    )
    says = searched(normal, planted(batch, "/etc/passwd")).says(ODD, TextCheck, trait="rough form")
    assert says.endswith("usual is “https://shop.example.com/item/100?ref=ma…”")


@pytest.mark.parametrize("slip", ["Hambrug", "Hamurg", "Hammburg", "Hanburg"])
def test_a_misspelt_text(slip: str) -> None:
    rng = np.random.default_rng(0)
    normal, batch = (rng.choice(CITIES, n).tolist() for n in (N_NORMAL, N_BATCH))
    found = searched(normal, planted(batch, slip))
    assert found.ranking[0] == ODD
    assert found.says(ODD, MisspellingCheck) == f"text {slip}; did you mean “Hamburg”?"
    assert np.flatnonzero(found.by(MisspellingCheck)).tolist() == [ODD]


def test_a_wrong_digit_in_a_code_that_recurs() -> None:
    rng = np.random.default_rng(0)
    known = [f"PZN-{number}" for number in rng.integers(10**7, 10**8, 15)]
    normal, batch = (rng.choice(known, n).tolist() for n in (N_NORMAL, N_BATCH))
    slip = known[3][:-2] + known[3][:-3:-1]
    found = searched(normal, planted(batch, slip))
    assert found.reason(ODD) == f"text {slip}; did you mean “{known[3]}”?"
    assert np.flatnonzero(found.by(MisspellingCheck)).tolist() == [ODD]


def test_codes_of_which_many_are_alike_are_not_misspelt() -> None:
    rng = np.random.default_rng(0)
    known = [f"PZN-{number}" for number in range(10_000_000, 10_000_040, 3)]
    normal, batch = (rng.choice(known, n).tolist() for n in (N_NORMAL, N_BATCH))
    assert not searched(normal, planted(batch, "PZN-10000058")).by(MisspellingCheck).any()


def test_a_word_that_is_a_whole_text_is_not_said_to_contain_itself() -> None:
    rng = np.random.default_rng(0)
    words = [*WORDS, *CITIES, *(f"{city} {word}" for city in CITIES for word in WORDS)]
    normal, batch = (rng.choice(words, n).tolist() for n in (N_NORMAL, N_BATCH))
    found = searched(normal, planted(batch, "Ost"))
    says = found.says(ODD, TextCheck, trait="words")
    assert says == "text Ost, as in none of 600 normal rows"


def test_similar_names_of_normal_rows_are_not_misspelt() -> None:
    rng = np.random.default_rng(0)
    names = [f"station {number:02}" for number in range(40)]
    normal, batch = (rng.choice(names, n).tolist() for n in (N_NORMAL, N_BATCH))
    assert not searched(normal, batch).by(MisspellingCheck).any()
    # Each of them is one slip away from others, so that a new one is, too.
    assert not searched(normal[::15], planted(batch, "station 77")).by(MisspellingCheck).any()


def test_texts_of_which_each_is_new_are_not_odd() -> None:
    rng = np.random.default_rng(0)
    letters = [chr(code) for code in range(97, 123)]
    normal, batch = (
        ["".join(rng.choice(letters, rng.integers(4, 12))) for _ in range(n)]
        for n in (N_NORMAL, N_BATCH)
    )
    assert not searched(normal, batch).by(TextCheck, trait="words").any()


def test_own_texts_are_compared_with_the_others() -> None:
    """A normal row with a form of its own is as odd as a row of the batch with a new one."""
    normal, batch = (codes(np.random.default_rng(seed), N_NORMAL) for seed in (0, 1))
    tables = [
        pd.DataFrame({"text": planted(texts, odd)})
        for texts, odd in ((normal, "AB 1234"), (batch, "AB1234"))
    ]
    for table in tables:
        table["x"] = np.random.default_rng(2).normal(size=N_NORMAL)
    encoded = encode_frames(*tables)
    own = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0)
    oddness = own.checks.surprises(own.checks.read(encoded.batch_cells)).max(axis=1)
    assert np.argmax(own.oddness) == np.argmax(oddness) == ODD
    assert own.oddness[ODD] == pytest.approx(oddness[ODD], abs=0.7)


def test_a_misspelt_word_of_a_text() -> None:
    rng = np.random.default_rng(0)
    found = searched(
        articles(rng, N_NORMAL), planted(articles(rng, N_BATCH), "steel gaskte pump 12 mm")
    )
    assert found.ranking[0] == ODD
    assert found.says(ODD, MisspellingCheck, "text", by_word=True).endswith(
        "did you mean “gasket”?"
    )


def test_a_word_in_another_case() -> None:
    rng = np.random.default_rng(0)
    upper = [[text.upper() for text in articles(rng, n)] for n in (N_NORMAL, N_BATCH)]
    found = searched(upper[0], planted(upper[1], "STEEL PuMP BOLT 12 MM"))
    assert found.by(TextCheck, "text", trait="case").nonzero()[0].tolist() == [ODD]
    assert "has a word in mixed case, as none of" in found.says(ODD, TextCheck, trait="case")


def test_a_known_text_is_judged_by_how_often_it_is_there() -> None:
    rng = np.random.default_rng(0)
    normal, batch = (list(rng.choice(CITIES, n)) for n in (N_NORMAL, N_BATCH))
    normal[5] = "Xanten"
    found = searched(normal, planted(batch, "Xanten"))
    assert found.by(TextCheck, "text")[ODD] == 0
    assert found.ranking[0] == ODD
