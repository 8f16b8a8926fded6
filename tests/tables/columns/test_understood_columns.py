"""Columns as people write them, from texts to the matrix and back to texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22.tables import TabularEncoder

N = 120
RNG = np.random.default_rng(0)
AMOUNTS = np.append(RNG.lognormal(5, 1.5, N - 1), 12345.5).round(2)
GERMAN = str.maketrans(",.", ".,")
MOMENTS = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 100_000, N), unit="min")


def fitted(values: Sequence[object], **options: Any) -> TabularEncoder:
    return TabularEncoder(**options).fit(pd.DataFrame({"x": list(values), "y": range(0, 2 * N, 2)}))


def values(encoder: TabularEncoder, texts: Sequence[object]) -> list[float]:
    numbers: list[float] = encoder._typed_cells(pd.DataFrame({"x": list(texts)}))[
        "x"
    ].values.tolist()
    return numbers


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ([f"${value:,.2f}" for value in AMOUNTS], "$1,234.50"),
        (
            [f"{value:,.2f} €".translate(str.maketrans(",.", ".,")) for value in AMOUNTS],
            "1.234,50 €",
        ),
        ([f"{value:.2f} kg" for value in AMOUNTS], "1234.50 kg"),
        ([f"{value:.2f}%" for value in AMOUNTS], "1234.50%"),
        (AMOUNTS.tolist(), "1234.5"),
    ],
)
def test_numbers_in_texts(texts: list[object], shown: str) -> None:
    encoder = fitted(texts)
    np.testing.assert_allclose(values(encoder, texts), AMOUNTS)
    np.testing.assert_allclose(encoder.transform(pd.DataFrame({"x": texts}))[:, 0], AMOUNTS)
    assert encoder._plans_by_name["x"].show(1234.5) == shown
    assert values(encoder, [shown, "unknown"])[:1] == [1234.5]
    assert values(encoder, [1234.5, 7.5]) == [1234.5, 7.5]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("%Y-%m-%d %H:%M", "2024-03-01 02:10"),
        ("%m/%d/%Y %I:%M %p", "03/01/2024 02:10 AM"),
        ("%d.%m.%Y %H:%M", "01.03.2024 02:10"),
    ],
)
def test_dates_in_texts(style: str, shown: str) -> None:
    stored = fitted(MOMENTS)
    encoder = fitted(MOMENTS.strftime(style))
    expected = stored.transform(pd.DataFrame({"x": MOMENTS}))
    found = encoder.transform(pd.DataFrame({"x": MOMENTS.strftime(style)}))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    moment = pd.Timestamp("2024-03-01 02:10").value / 1000
    assert encoder._plans_by_name["x"].show(moment) == shown
    assert stored._plans_by_name["x"].show(moment) == "2024-03-01 02:10"


def test_what_other_kinds_show() -> None:
    flags = fitted([True, False] * (N // 2))._plans_by_name["x"]
    assert [flags.show(value) for value in (0.0, 1.0)] == ["false", "true"]
    colors = fitted(["red", "blue", None] * (N // 3))._plans_by_name["x"]
    assert [colors.show(at) for at in range(4)] == ["blue", "red", "(missing)", "(unseen)"]


def test_parts_of_times_weeks_and_months() -> None:
    def outputs(style: str) -> list[str]:
        encoder = fitted(MOMENTS.strftime(style))
        return [str(name) for name in encoder.get_feature_names_out()]

    assert outputs("%H:%M") == ["x (hour sine)", "x (hour cosine)"]
    assert outputs("%G-W%V") == ["x (days)"]
    assert outputs("%Y-%m") == ["x (days)"]
    assert outputs("%Y-%m-%d") == ["x (days)", "x (weekday sine)", "x (weekday cosine)"]


def test_words_among_numbers() -> None:
    texts = [f"{value:.1f}" for value in AMOUNTS]
    texts[:3], texts[3:8], texts[8] = ["unknown"] * 3, ["-"] * 5, "n/k"
    encoder = fitted(texts, min_frequency=2)
    assert encoder.get_feature_names_out().tolist() == ["x", "x=-", "x=unknown", "x=(other)"]
    assert encoder.columns_[0].note == "9 cells with words such as '-'"
    matrix = encoder.transform(pd.DataFrame({"x": texts}))
    median = np.median([float(text) for text in texts[9:]])
    for at, row in enumerate(matrix.tolist()):
        word = {"-": 1, "unknown": 2, "n/k": 3}.get(texts[at])
        assert row[0] == (float(texts[at]) if word is None else median)
        assert row[1:] == [float(word == place) for place in (1, 2, 3)]
    new = encoder.transform(pd.DataFrame({"x": ["abc", "5.5"]}))
    assert new.tolist() == [[median, 0, 0, 0], [5.5, 0, 0, 0]]


def test_one_column_tells_the_decimal_sign_of_others() -> None:
    thousands = [f"{at % 9 + 1}.{100 + 7 * at:03}" for at in range(N)]
    alone = TabularEncoder().fit(pd.DataFrame({"x": thousands}))
    assert values(alone, ["1.500"]) == [1.5]
    prices = [f"{value:.2f}".replace(".", ",") for value in AMOUNTS]
    both = TabularEncoder().fit(pd.DataFrame({"x": thousands, "price": prices}))
    assert values(both, ["1.500"]) == [1500]


def test_many_levels_with_new_ones() -> None:
    """The frequent levels have columns; a new one is as usual as a rare one."""
    names = ["Shop A"] * 60 + ["Shop B"] * 40 + [f"stall {at}" for at in range(80)]
    encoder = TabularEncoder().fit(pd.DataFrame({"x": names}))
    assert encoder.get_feature_names_out().tolist() == ["x=Shop A", "x=Shop B", "x=(other)"]
    assert encoder.columns_[0].note == "82 levels, of which 80 are pooled, with new ones"
    rows = pd.DataFrame({"x": ["Shop B", "stall 7", "stall 99", None]})
    assert encoder.transform(rows).argmax(axis=1).tolist() == [1, 2, 2, 2]
    with_gaps = TabularEncoder().fit(pd.DataFrame({"x": [*names, None, None]}))
    assert with_gaps.get_feature_names_out()[-1] == "x=(missing)"
    assert with_gaps.transform(rows).argmax(axis=1).tolist() == [1, 2, 2, 3]


def test_a_value_that_is_there_or_not() -> None:
    encoder = TabularEncoder().fit(pd.DataFrame({"coupon": ["SAVE", None, None] * 9}))
    assert encoder.typical_ == {"coupon": "(missing)"}
    rows = pd.DataFrame({"coupon": ["SAVE", None, "SPEND"]})
    assert encoder.transform(rows).tolist() == np.eye(3).tolist()
