"""Scaling of the rivals: any finite table stays finite, and constant columns have a unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from normal_rows import make_rows

from qms22._cpm.scaling import DEVIATION, FeatureScaler
from qms22_bench.rivals.scaling import deviation_scaler, range_scaler

EXTREMES = [0.0, 1.0, 5e-324, 1e-310, 2.3e-308, -1e-300, 1e300, -1.7976931348623157e308]
tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.just(3)),
    elements=st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EXTREMES),
)


@given(tables, tables)
def test_any_finite_table_stays_finite(normal: np.ndarray, batch: np.ndarray) -> None:
    for scaler in (range_scaler(normal), deviation_scaler(normal)):
        for rows in (normal, batch):
            assert np.isfinite(scaler.transform(rows)).all()


@pytest.mark.parametrize("constant", EXTREMES)
def test_a_constant_column(constant: float) -> None:
    normal = np.full((5, 1), constant)
    for scaler, unit in ((range_scaler(normal), 1.0), (deviation_scaler(normal), 3.0)):
        assert (scaler.transform(normal) == 0.0).all()
        assert np.isfinite(scaler.transform(np.array([EXTREMES]).T)).all()
        if abs(constant) < 1e-307:
            np.testing.assert_allclose(scaler.transform(np.ones((1, 1))), unit)


@given(tables)
def test_deviations_are_those_of_qms22_to_the_bit(normal: np.ndarray) -> None:
    for rows in (normal, 3 + make_rows(100) / 7):
        ours, theirs = deviation_scaler(rows), FeatureScaler.learn(rows, "standard")
        np.testing.assert_array_equal(ours.peak, theirs.peak)
        np.testing.assert_array_equal(ours.center, theirs.center)
        np.testing.assert_array_equal(ours.factor, theirs.factor / DEVIATION)
