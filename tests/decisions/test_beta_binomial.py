from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from qms22.decisions.beta_binomial import beta_binomial_cdf


@given(st.integers(0, 300), st.integers(1, 400), st.integers(1, 400), st.data())
def test_as_scipy(n: int, a: int, b: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(-1, n + 1))
    expected = betabinom.cdf(k, n, a, b)
    assert beta_binomial_cdf(k, n, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("b", [1, 30, 5_000])
def test_as_scipy_for_many_rows(b: int) -> None:
    n, a = 200_000, 10_000 - b
    for share in (-9, -3, -1, 0, 1, 3):
        deviation = float(betabinom.std(n, a, b))
        k = min(n, round(n * a / (a + b) + share * deviation))
        expected = betabinom.cdf(k, n, a, b)
        assert beta_binomial_cdf(k, n, a, b) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_rows_by_the_million_take_no_time() -> None:
    begin = time.process_time()
    assert beta_binomial_cdf(5_000_000, 10**7, 1_666_667, 1_666_667) == pytest.approx(0.5, abs=1e-3)
    assert time.process_time() - begin < 1.0
