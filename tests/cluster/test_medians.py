"""Medians, means and scaling of rows that lie in parts: as of all rows together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qms22._cpm.scaling import Extent, FeatureScaler, Mean
from qms22.cluster.medians import FirstLook, between, bracket, typical_values
from qms22.estimators.explain import TypicalValues

tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 60), st.just(3)),
    elements=st.floats(-1, 1) | st.sampled_from([0.0, 1.0]),
)


@given(tables, st.lists(st.integers(0, 60), max_size=3))
def test_medians_of_parts(rows: np.ndarray, cuts: list[int]) -> None:
    parts = [part for part in np.split(rows, sorted(cuts)) if len(part)]
    looks = [FirstLook.at(part) for part in parts]
    low, high = bracket(looks)
    found = typical_values(looks, low, high, [between(part, low, high) for part in parts])
    expected = TypicalValues.learn(rows)
    np.testing.assert_array_equal(found.medians, expected.medians)
    np.testing.assert_array_equal(found.shares, expected.shares)


def test_medians_of_many_rows() -> None:
    rng = np.random.RandomState(0)
    rows = np.column_stack([rng.normal(size=9_000), rng.randint(3, size=9_000), np.ones(9_000)])
    parts = np.split(rows, [10, 5_000])
    looks = [FirstLook.at(part) for part in parts]
    low, high = bracket(looks)
    seconds = [between(part, low, high) for part in parts]
    assert sum(len(values) for second in seconds for _, values in second) < 100
    found = typical_values(looks, low, high, seconds)
    np.testing.assert_array_equal(found.medians, TypicalValues.learn(rows).medians)


@given(tables, st.lists(st.integers(0, 60), max_size=3))
def test_means_are_exact(rows: np.ndarray, cuts: list[int]) -> None:
    parts = [Mean.over(part, np.negative) for part in np.split(rows, sorted(cuts)) if len(part)]
    mean = parts[-1]
    for part in parts[:-1]:
        mean += part
    whole = Mean.over(rows, np.negative)
    assert mean.value.tobytes() == whole.value.tobytes()
    exact = [float(sum(map(Fraction, -column)) / len(rows)) for column in rows.T]
    np.testing.assert_allclose(mean.value, exact, rtol=1e-15, atol=2.0**-62)


@pytest.mark.parametrize("scaling", ["maxabs", "standard", None])
def test_scaling_of_parts(scaling: str | None) -> None:
    rows = np.random.RandomState(0).normal(5, [1e-9, 1.0, 1e9], size=(70_001, 3))
    parts = np.split(rows, [1, 40_000])
    extent = Extent.of(parts[2]) + Extent.of(parts[0]) + Extent.of(parts[1])
    found = FeatureScaler.learn_from(
        extent,
        scaling,
        lambda values: (
            Mean.over(parts[1], values) + Mean.over(parts[2], values) + Mean.over(parts[0], values)
        ),
    )
    expected = FeatureScaler.learn(rows, scaling)
    for name in ("peak", "center", "factor"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
