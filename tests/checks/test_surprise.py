"""Surprises of single values, next to slow versions of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qms22.checks.surprise import LevelReference, NumberReference, gaps_on_clock, kept_places


def naive_number(value: float, others: np.ndarray, units: tuple[float, float]) -> float:
    """−log of the two-sided share of values that are as extreme, and the excess beyond them."""
    found = 0.0
    for sign, unit in zip((-1.0, 1.0), units, strict=True):
        signed, own = np.sort(sign * others), sign * value
        share = (1 + np.count_nonzero(signed >= own) - (own > signed[-1]) / 2) / (len(signed) + 1)
        excess = max((own - signed[-1]) / unit, 0.0)
        bounded = excess if excess <= 5 else 5 + 5 * math.log(excess / 5)
        found = max(found, -math.log(min(1.0, 2 * share)) + bounded)
    return found


def naive_level(code: int, counts: np.ndarray) -> float:
    """−log of the share of rows with a level as rare; where none is, next to frequent ones more."""
    n = int(counts.sum())
    count = int(counts[code]) if 0 <= code < len(counts) else 0
    if count:
        n_as_rare = sum(int(other) for other in counts if other <= count)
    else:
        n_as_rare = sum(int(other) == 1 for other in counts)
    surprise = -math.log((1 + n_as_rare) / (n + 1))
    if not n_as_rare:
        surprise += math.log(min((int(other) for other in counts if other), default=n))
    return max(surprise, 0.0)


def test_numbers_as_the_naive_version() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=60).round(1)
    reference = NumberReference.learn(known)
    assert reference is not None
    units = reference.low_unit, reference.high_unit
    values = np.array([*rng.normal(size=30), *known[:5], -9.0, 9.0, 400.0])
    expected = [naive_number(value, known, units) for value in values]
    np.testing.assert_allclose(reference.surprise(values), expected)


def test_own_numbers_are_compared_with_the_others() -> None:
    known = np.random.default_rng(1).standard_t(2, size=50).round(1)
    reference = NumberReference.learn(known)
    assert reference is not None
    units = reference.low_unit, reference.high_unit
    expected = [naive_number(value, np.delete(known, at), units) for at, value in enumerate(known)]
    np.testing.assert_allclose(reference.surprise(known, own=True), expected)


def test_many_numbers_take_little_space_and_give_nearly_the_same() -> None:
    known = np.random.default_rng(2).standard_t(3, size=30_000)
    reference = NumberReference.learn(known)
    assert reference is not None
    assert len(reference.ascending) <= 4096
    whole = np.sort(known)
    units = reference.low_unit, reference.high_unit
    # The last two of all are exact.
    values = np.array([*whole[:2], *whole[-2:], -200.0, 200.0])
    expected = [naive_number(value, known, units) for value in values]
    np.testing.assert_allclose(reference.surprise(values), expected)
    values = np.random.default_rng(3).standard_t(3, size=60)
    expected = [naive_number(value, known, units) for value in values]
    # Up to one percent of a count, or one of few.
    np.testing.assert_allclose(reference.surprise(values), expected, atol=0.06)


@pytest.mark.parametrize("n", [5, 4096, 4097, 10_000, 1_000_000])
def test_kept_places_are_the_same_from_both_ends(n: int) -> None:
    places = kept_places(n)
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(places, n - 1 - places[::-1])
    assert len(places) <= 4096
    assert places[0] == 0


@given(
    hnp.arrays(np.float64, st.integers(3, 30), elements=st.floats(allow_infinity=False)),
    st.floats(allow_infinity=False),
)
def test_surprises_are_finite(known: np.ndarray, value: float) -> None:
    reference = NumberReference.learn(known)
    if reference is None:
        assert np.count_nonzero(np.isfinite(known)) < 3
        return
    for found in (reference.surprise(np.array([value])), reference.surprise(known, own=True)):
        assert np.isfinite(found).all()
        assert (found >= 0).all()


def test_a_number_further_out_is_more_surprising() -> None:
    reference = NumberReference.learn(np.random.default_rng(4).normal(size=500))
    assert reference is not None
    values = np.array([2.0, 2.5, 3.5, 4.0, 8.0, 100.0, 1e6, 1e300])
    assert (np.diff(reference.surprise(values)) > 0).all()
    assert (np.diff(reference.surprise(-values)) > 0).all()
    assert reference.surprise(np.array([np.nan])) == 0


@given(st.lists(st.integers(0, 6) | st.integers(400, 3000), min_size=1, max_size=6))
def test_levels_as_the_naive_version(counts: list[int]) -> None:
    reference = LevelReference(np.array(counts))
    codes = np.arange(-1, len(counts) + 1)
    if not reference.n:
        assert (reference.surprise(codes) >= 0).all()
        return
    expected = [naive_level(code, reference.counts) for code in codes.tolist()]
    np.testing.assert_allclose(reference.surprise(codes), expected)


@given(st.lists(st.integers(0, 6) | st.integers(400, 3000), min_size=1, max_size=6))
def test_own_levels_are_compared_with_the_others(counts: list[int]) -> None:
    reference = LevelReference(np.array(counts))
    codes = np.flatnonzero(reference.counts)
    if reference.n < 2:
        return
    expected = []
    for code in codes.tolist():
        others = reference.counts.copy()
        others[code] -= 1
        expected.append(naive_level(code, others))
    np.testing.assert_allclose(reference.surprise(codes, own=True), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 40])
@pytest.mark.parametrize("own", [False, True])
def test_gaps_on_a_circle_by_brute_force(n: int, own: bool) -> None:
    rng = np.random.default_rng(n)
    reference = np.sort(rng.integers(0, 1440, n).astype(float))
    values = reference if own else rng.integers(0, 1440, 50).astype(float)
    expected = []
    for at, value in enumerate(values):
        others = np.delete(reference, at) if own else reference
        gaps = np.sort(np.minimum(np.abs(others - value), 1440 - np.abs(others - value)))
        expected.append(gaps[: min(3, len(gaps))][-1] if len(gaps) else 0.0)
    np.testing.assert_allclose(gaps_on_clock(values, reference, own=own), expected)


def test_a_time_that_is_missing_has_no_gap() -> None:
    gaps = gaps_on_clock(np.array([np.nan, 10.0]), np.arange(0.0, 60.0, 10.0))
    assert np.isnan(gaps[0])
    assert gaps[1] == 10
