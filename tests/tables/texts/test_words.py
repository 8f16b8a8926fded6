from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from qms22.tables.sources.storage_types import CellTraits
from qms22.tables.texts.words import NUMBER, canonical, is_number_text, parse_number

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("text", ["1", " 2.5 ", "-3", "+.5", "5.", "1e3", "1E-3", "007"])
def test_numbers(text: str) -> None:
    assert is_number_text(text)
    assert parse_number(text) == float(text)


@pytest.mark.parametrize(
    "text", ["", " ", "x", "1_0", "inf", "-Infinity", "nan", "1e", "1,5", "0x1F", "١", "1e999"]
)
def test_texts_that_are_no_numbers(text: str) -> None:
    assert not is_number_text(text)


@settings(max_examples=examples(300), deadline=None)
@given(st.text("0123456789.+-eE_ infa,١", max_size=8) | st.floats().map(repr))
def test_storage_types_and_kinds_agree_on_numbers(text: str) -> None:
    is_stored_as_number = "number" in CellTraits.of(pa.array([text]), ",").every
    is_infinite = "inf" in text.lower()
    assert bool(re.fullmatch(rf"\s*{NUMBER}\s*", text, re.ASCII)) == is_number_text(text) or (
        np.isinf(float(text))  # as 1e999
    )
    assert is_stored_as_number == is_number_text(text) or is_infinite or np.isinf(float(text))


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0", " 1 ", True, "true", "TRUE", np.float64(1)])
def test_one_way_to_write_a_value(value: Any) -> None:
    assert canonical(value) == "1"


def test_other_values_stay_different() -> None:
    values = [0, 2, -1, 0.5, "a", "A", "1a"]
    assert [canonical(value) for value in values] == ["0", "2", "-1", "0.5", "a", "A", "1a"]
