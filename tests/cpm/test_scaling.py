"""Scaling is learned on the normal rows alone, and nothing leaves its range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qms22._cpm.scaling import LIMIT, FeatureScaler
from qms22.estimators.learning import distance_scaler

EXTREMES = [0.0, 1.0, 5e-324, 1e-310, 2.3e-308, -1e-300, 1e300, -1.7976931348623157e308]
tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.just(3)),
    elements=st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EXTREMES),
)


@given(tables, tables, st.sampled_from(["maxabs", "standard", None]))
def test_any_finite_table_stays_finite(normal: np.ndarray, batch: np.ndarray, scaling: str) -> None:
    scaler = FeatureScaler.learn(normal, scaling)
    for rows in (normal, batch):
        scaled = scaler.transform(rows)
        assert np.isfinite(scaled).all()
        assert (np.abs(scaled) <= scaler.limit).all()


@given(tables, tables)
def test_scaled_distances_stay_finite(normal: np.ndarray, batch: np.ndarray) -> None:
    scaler = distance_scaler(FeatureScaler.learn(normal, "standard"), normal, [])
    for rows in (normal, batch):
        assert np.isfinite(scaler.transform(rows)).all()


@pytest.mark.parametrize("constant", EXTREMES)
def test_scaled_distances_with_a_constant_column(constant: float) -> None:
    normal = np.full((5, 1), constant)
    scaler = distance_scaler(FeatureScaler.learn(normal, "standard"), normal, [])
    assert (scaler.transform(normal) == 0.0).all()
    assert np.isfinite(scaler.transform(np.array([EXTREMES]).T)).all()
    if abs(constant) < 1e-307:  # a constant column keeps its unit
        np.testing.assert_allclose(scaler.transform(np.ones((1, 1))), 1.0)


def test_maxabs() -> None:
    normal = np.array([[1.0, -4.0], [0.5, 2.0]])
    scaler = FeatureScaler.learn(normal, "maxabs")
    np.testing.assert_array_equal(scaler.transform(normal), [[255, -255], [127.5, 127.5]])
    np.testing.assert_array_equal(scaler.transform(np.array([[2.0, 0.0]])), [[510, 0]])


def test_standard() -> None:
    normal = np.random.RandomState(0).normal(5, 3, size=(200, 4))
    scaled = FeatureScaler.learn(normal, "standard").transform(normal)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(scaled.std(axis=0), 85)


@pytest.mark.parametrize("scaling", ["maxabs", "standard"])
def test_memory_order_does_not_matter(scaling: str) -> None:
    normal = np.random.RandomState(0).normal(5, 3, size=(1000, 4))
    scaled = FeatureScaler.learn(normal, scaling).transform(normal)
    other = FeatureScaler.learn(np.asfortranarray(normal), scaling).transform(normal)
    assert scaled.tobytes() == other.tobytes()


def test_weighted_standard_is_standard_of_repeated_rows() -> None:
    normal = np.random.RandomState(0).normal(size=(20, 2))
    times = np.random.RandomState(1).randint(1, 5, size=20)
    weighted = FeatureScaler.learn(normal, "standard", times.astype(float))
    repeated = FeatureScaler.learn(np.repeat(normal, times, axis=0), "standard")
    np.testing.assert_allclose(weighted.transform(normal), repeated.transform(normal))


@pytest.mark.parametrize("scaling", ["maxabs", "standard"])
def test_a_level_never_seen_counts(scaling: str) -> None:
    scaler = FeatureScaler.learn(np.zeros((5, 1)), scaling)
    np.testing.assert_array_equal(scaler.transform(np.array([[0.0], [1.0]])), [[0], [255]])


def test_a_constant_column_is_centred_exactly() -> None:
    scaler = FeatureScaler.learn(np.full((7, 1), 0.1), "standard")
    np.testing.assert_array_equal(scaler.transform(np.full((2, 1), 0.1)), 0.0)


def test_far_values_are_cut_off() -> None:
    scaler = FeatureScaler.learn(np.array([[1e-300]]), "maxabs")
    np.testing.assert_array_equal(
        scaler.transform(np.array([[1e300], [-1e300]])), [[LIMIT], [-LIMIT]]
    )


def test_no_scaling_leaves_rows_alone() -> None:
    rows = np.array([[1e20, -3.0]])
    np.testing.assert_array_equal(FeatureScaler.learn(rows, None).transform(rows), rows)


def test_writes_where_asked() -> None:
    normal, out = np.array([[2.0]]), np.empty((1, 1))
    assert FeatureScaler.learn(normal, "maxabs").transform(normal, out=out) is out
    assert out[0, 0] == 255
