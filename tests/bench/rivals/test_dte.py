from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from normal_rows import make_rows
from scipy.stats import invgamma

from qms22_bench.rivals import DTENonParametric
from qms22_bench.rivals.dte import noise_variances


def naive_time(squares: float, n_features: int, n_steps: int) -> float:
    """Compute the posterior mean as the paper writes it: inverse gamma densities of variances."""
    kept, variances = 1.0, []
    for step in range(n_steps):
        kept *= 1 - (1e-4 + (1e-2 - 1e-4) * step / (n_steps - 1))
        variances.append(1 - kept)
    density = np.exp(invgamma.logpdf(variances, a=0.5 * n_features - 1, scale=squares / 2))
    return float(np.arange(n_steps) @ density / density.sum())


@pytest.mark.parametrize("n_features", [3, 8])
def test_scores_equal_the_naive_ones(n_features: int) -> None:
    normal, query = make_rows(60, n_features), 1.5 * make_rows(20, n_features, seed=1)
    scores = DTENonParametric(n_neighbors=4, n_steps=50).fit(normal).score_samples(query)
    units = normal.std(axis=0)
    for row, score in zip(query, scores, strict=True):
        squares = np.sort(np.sum(((row - normal) / units) ** 2, axis=1))[:4].mean()
        assert -score == pytest.approx(naive_time(squares, n_features, 50), rel=1e-9)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_times_order_rows_by_their_mean_squared_distance(n_features: int, seed: int) -> None:
    normal, query = make_rows(40, n_features, seed), make_rows(30, n_features, seed + 1)
    times = -DTENonParametric().fit(normal).score_samples(query)
    gaps = (query[:, None] - normal) / normal.std(axis=0)
    squares = np.sort((gaps**2).sum(axis=2), axis=1)[:, :5].mean(axis=1)
    assert (np.diff(times[np.argsort(squares)]) >= -1e-9).all()
    assert ((times >= 0) & (times <= 499)).all()


def test_a_known_row_needs_no_noise_and_a_distant_one_all_of_it() -> None:
    normal = np.repeat(make_rows(40), 5, axis=0)
    times = (
        -DTENonParametric(n_steps=10)
        .fit(normal)
        .score_samples(np.vstack([normal[:1], normal[:1] + 1e6]))
    )
    assert times[0] < 1
    assert times[1] == pytest.approx(9)


def test_noise_grows_to_the_variance_of_the_data() -> None:
    variances = noise_variances(500)
    assert variances[0] == pytest.approx(1e-4)
    assert (np.diff(variances) > 0).all()
    assert 0.9 < variances[-1] < 1


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1; got 0"),
        ({"n_steps": 1}, "n_steps must be a whole number of at least 2; got 1"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        DTENonParametric(**parameters).fit(make_rows())
