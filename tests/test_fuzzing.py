"""Property tests have fixed examples, and many new ones on request."""

from __future__ import annotations

import re
from pathlib import Path

from fuzzing import FACTOR, examples
from hypothesis import settings

TESTS = Path(__file__).parent


def test_examples_are_fixed_unless_new_ones_are_asked_for() -> None:
    assert settings.get_profile("fixed").derandomize
    fuzz = settings.get_profile("fuzz")
    assert not fuzz.derandomize
    assert fuzz.max_examples == FACTOR * settings.get_profile("fixed").max_examples


def test_the_profile_scales_the_examples_of_a_test() -> None:
    assert examples(20) == 20
    settings.load_profile("fuzz")
    try:
        assert examples(20) == 20 * FACTOR
    finally:
        settings.load_profile("fixed")


def test_every_test_that_asks_for_a_number_of_examples_is_scaled() -> None:
    for path in TESTS.rglob("test_*.py"):
        assert not re.search(r"max_examples=\d", path.read_text(encoding="utf-8")), path
