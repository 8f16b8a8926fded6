"""Troubles of numbers and words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from case import Case, text_file
from orders import (
    N_BATCH,
    ROW,
    Orders,
    Text,
    Writer,
    amounts,
    grouped,
    levels,
    moments,
    numbers,
    sometimes,
)

_FIRST_NAMES = ["Ann", "Bob", "Cem", "Dua", "Eve", "Fay", "Gil", "Hua", "Ian", "Joy"]
_LAST_NAMES = ["Abt", "Bell", "Cruz", "Diaz", "Egli", "Funk", "Gray", "Hahn", "Iqbal", "Jost"]
_WORDS = ["please", "leave", "it", "at", "the", "door", "or", "ring", "bell", "twice"]


def money(
    before: str = "", after: str = "", mark: str = ",", decimal: str = ".", **options: Any
) -> Writer:
    """Return a writer of money; missing values stay empty."""
    return lambda value: (
        "" if value is None else before + grouped(value, mark, decimal, **options) + after
    )


def large_amounts(rng: np.random.Generator, n_rows: int, is_batch: bool) -> list[Any]:
    """Return amounts of hundreds and thousands."""
    return [round(float(value), 2) for value in np.exp(rng.normal(7.5, 0.6, n_rows))]


def _add_total(table: Orders, is_batch: bool) -> Orders:
    """Add the product of price and quantity; in one row it is ten times as high."""
    columns = {name: list(column) for name, column in table.columns.items() if name != "total"}
    if is_batch:
        columns["amount"][ROW], columns["quantity"][ROW] = 25.5, 1
    pairs = zip(columns["amount"], columns["quantity"], strict=True)
    columns["total"] = [round(price * quantity, 2) for price, quantity in pairs]
    if is_batch:
        columns["total"][ROW] *= 10
    return replace(table, columns=columns)


def _repeat_row(table: Orders, is_batch: bool) -> Orders:
    """Repeat one row of the batch, with another name, in all that follow."""
    if not is_batch:
        return table
    columns = {
        name: column if name == "order" else column[: ROW + 1] + [column[ROW]] * (N_BATCH - ROW - 1)
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns)


NUMBERS = [
    Case("plain", "Nothing is wrong."),
    Case(
        "dollars",
        "Amounts with a dollar sign and commas between thousands.",
        anomaly=99_999.0,
        makers={"amount": large_amounts},
        writers={"amount": money("$")},
    ),
    Case(
        "euros",
        "Amounts with a euro sign behind, points between thousands and decimal commas.",
        anomaly=99_999.0,
        makers={"amount": large_amounts},
        writers={"amount": money("", " €", ".", ",")},
        layout=text_file(separator=";"),
    ),
    Case(
        "currency-code",
        "Amounts with the code of a currency before them.",
        writers={"amount": money("EUR ")},
    ),
    Case(
        "reais",
        "Amounts with a currency of two characters.",
        anomaly=99_999.0,
        makers={"amount": large_amounts},
        writers={"amount": money("R$ ", "", ".", ",")},
        layout=text_file(separator=";"),
    ),
    Case(
        "percent",
        "Shares in percent.",
        "discount",
        95.5,
        {"discount": numbers(2, 15, 1)},
        {"discount": lambda value: f"{value:.1f} %"},
        kinds={"discount": "number"},
    ),
    Case(
        "percent-comma",
        "Shares in percent with decimal commas and no blank.",
        "discount",
        95.5,
        {"discount": numbers(2, 15, 1)},
        {"discount": lambda value: f"{value:.1f}%".replace(".", ",")},
        text_file(separator=";"),
        kinds={"discount": "number"},
    ),
    Case(
        "swiss",
        "Apostrophes between thousands.",
        anomaly=99_999.0,
        makers={"amount": large_amounts},
        writers={"amount": money("CHF ", "", "'")},
    ),
    Case(
        "indian",
        "Groups of two digits, as in India.",
        anomaly=99_999_999.0,
        makers={"amount": numbers(100_000, 999_999)},
        writers={"amount": money(sizes=(3, 2))},
    ),
    Case(
        "thin-spaces",
        "Narrow blanks between thousands.",
        anomaly=99_999.0,
        makers={"amount": large_amounts},
        writers={"amount": money("", "", "\u202f", ",")},
        layout=text_file(separator=";"),
    ),
    Case(
        "decimal-comma",
        "Decimal commas, as Excel writes them in Germany.",
        writers={"amount": lambda value: f"{value:.2f}".replace(".", ",")},
        layout=text_file(separator=";"),
    ),
    Case(
        "thousands",
        "Commas between thousands and no decimals.",
        anomaly=990_000.0,
        makers={"amount": numbers(1200, 8900, 0)},
        writers={"amount": lambda value: f"{value:,.0f}"},
    ),
    Case(
        "brackets",
        "Negative amounts in brackets, as accountants write them.",
        anomaly=-99_999.0,
        makers={"amount": numbers(-3000, 3000)},
        writers={"amount": lambda value: f"({-value:,.2f})" if value < 0 else f"{value:,.2f}"},
    ),
    Case(
        "minus-behind",
        "The minus behind the number, as SAP writes it.",
        anomaly=-9999.0,
        makers={"amount": numbers(-300, 300)},
        writers={"amount": lambda value: f"{abs(value):.2f}" + "-" * (value < 0)},
    ),
    Case(
        "long-minus",
        "The minus sign of typographers.",
        "temperature",
        -88.5,
        {"temperature": numbers(-15, 25, 1)},
        {"temperature": lambda value: f"{value:.1f}".replace("-", "\u2212")},
        kinds={"temperature": "number"},
    ),
    Case(
        "plus",
        "Changes with a plus or minus before them.",
        "change",
        77.7,
        {"change": numbers(-5, 5, 1)},
        {"change": lambda value: f"{value:+.1f}"},
        kinds={"change": "number"},
    ),
    Case(
        "kilograms",
        "Weights with their unit.",
        "weight",
        940.0,
        {"weight": numbers(2, 30, 1)},
        {"weight": lambda value: f"{value:.1f} kg"},
        kinds={"weight": "number"},
    ),
    Case(
        "degrees",
        "Temperatures with their unit.",
        "temperature",
        88.5,
        {"temperature": numbers(36, 39, 1)},
        {"temperature": lambda value: f"{value:.1f} °C"},
        kinds={"temperature": "number"},
    ),
    Case(
        "exponents",
        "Numbers with an exponent.",
        "mass",
        0.5,
        {"mass": numbers(1e-6, 9e-6, 8)},
        {"mass": lambda value: f"{value:.3e}"},
        kinds={"mass": "number"},
        unread=("mass",),
    ),
    Case("infinite", "An infinite number.", anomaly=Text("inf"), within=3),
]

WORDS = [
    Case(
        "words",
        "Some amounts are words.",
        makers={"amount": sometimes(amounts, 0.08, Text("-"), Text("unknown"))},
    ),
    Case(
        "text-cell",
        "A text in a column of numbers.",
        "quantity",
        Text("abc"),
        within=3,
    ),
    Case(
        "missing",
        "Some cells are empty.",
        makers={
            "amount": sometimes(amounts, 0.1, None),
            "country": sometimes(levels("DE", "FR", "IT", "US"), 0.1, None),
        },
        notes=("missing: ",),
    ),
    Case(
        "missing-anomaly",
        "A cell that is never empty is.",
        anomaly=None,
        notes=("missing: amount 0 % (batch 2.5 %)",),
        within=3,
    ),
    Case(
        "missing-words",
        "Empty cells are written as words.",
        makers={
            "amount": sometimes(amounts, 0.15, *map(Text, ("NA", "null", "n/a", "?", "NaN", "")))
        },
        notes=("missing: amount",),
    ),
    Case(
        "missing-dates",
        "Some dates are empty.",
        makers={"shipped": sometimes(moments, 0.1, None)},
        notes=("missing: shipped",),
    ),
    Case(
        "codes",
        "Codes with zeros in front.",
        "zip",
        "99999",
        {"zip": levels("01067", "04109", "08056", "09111")},
        kinds={"zip": "category"},
        within=3,
    ),
    Case(
        "as-category",
        "Numbers that the user knows to be codes.",
        "branch",
        7,
        {
            "branch": lambda rng, n_rows, is_batch: [
                int(value) for value in rng.choice([1, 3, 5, 9], n_rows)
            ]
        },
        options=("--as", "branch=category"),
        kinds={"branch": "category"},
        within=3,
    ),
    Case("unseen", "A level that no normal row has.", "country", "XX", within=3),
    Case(
        "blanks-around",
        "Blanks around words.",
        "country",
        "XX",
        writers={"country": lambda value: f" {value} "},
        within=3,
    ),
    Case(
        "yes-no",
        "Yes and no.",
        writers={"express": lambda value: "yes" if value else "no"},
        kinds={"express": "category"},
    ),
    Case(
        "true-false",
        "Truth values in capitals, with a third word.",
        "express",
        Text("MAYBE"),
        writers={"express": lambda value: str(value).upper()},
        kinds={"express": "category"},
        within=3,
    ),
    Case(
        "constant",
        "A column with one value, until now.",
        "unit",
        "lb",
        {"unit": levels("kg")},
        kinds={"unit": "category"},
        within=3,
    ),
    Case(
        "constant-number",
        "A number that never changed, until now.",
        "version",
        3,
        {"version": lambda rng, n_rows, is_batch: [2] * n_rows},
        kinds={"version": "number"},
        within=3,
    ),
    Case("negative", "A quantity below zero.", "quantity", -3),
    Case(
        "total",
        "A total that is usual by itself, but not with its price and quantity.",
        "total",
        0.0,
        {"total": numbers(0, 1)},
        kinds={"total": "number"},
        change=_add_total,
    ),
    Case(
        "copies",
        "A row that occurs again and again.",
        anomaly=41.5,
        change=_repeat_row,
        blamed="the same row",
    ),
    Case(
        "names",
        "A column with a different name in nearly every row.",
        makers={
            "customer": lambda rng, n_rows, is_batch: [
                f"{first} {last}"
                for first, last in zip(
                    rng.choice(_FIRST_NAMES, n_rows),
                    rng.choice(_LAST_NAMES, n_rows),
                    strict=True,
                )
            ]
        },
        kinds={"customer": None},
        notes=("left out: customer",),
    ),
    Case(
        "memos",
        "Free text.",
        makers={
            "memo": lambda rng, n_rows, is_batch: [
                " ".join(rng.choice(_WORDS, 6)) + f" {at}" for at in range(n_rows)
            ]
        },
        kinds={"memo": "text"},
        notes=("left out: memo",),
    ),
    Case(
        "quoted-cells",
        "Texts with commas, quotes and line breaks.",
        makers={"memo": levels('say "hi", twice', "line\nbreak", "plain")},
        kinds={"memo": "category"},
    ),
]
