"""What the views learn from known-normal rows and from the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_views import left_out_square, square

from qms22._cpm.backends import BACKENDS
from qms22._cpm.scaling import FeatureScaler
from qms22.estimators import learning
from qms22.estimators.forest import BinnedRows
from qms22.estimators.learning import (
    distance_scaler,
    forest_agreement,
    learn_covariance,
    learn_distances,
    learn_forest,
)
from qms22.estimators.marks import Marks
from qms22.estimators.views import ScoredRows


def fit_distance_scaler(
    normal: np.ndarray, groups: tuple[tuple[int, ...], ...] = ()
) -> FeatureScaler:
    return distance_scaler(FeatureScaler.learn(normal, "standard"), normal, groups)


def distance(scaler: FeatureScaler, one: np.ndarray, other: np.ndarray) -> float:
    scaled = scaler.transform(np.array([one, other], dtype=np.float64))
    return float(np.linalg.norm(scaled[0] - scaled[1]))


def test_numbers_are_divided_by_their_range_or_three_deviations() -> None:
    rng = np.random.RandomState(0)
    normal = np.column_stack([1e6 + rng.randint(2, size=500), 1e-9 * rng.normal(size=500)])
    scaler = fit_distance_scaler(normal)
    spread = np.minimum(np.ptp(normal, axis=0), 3 * normal.std(axis=0))
    assert spread[0] == np.ptp(normal[:, 0])
    assert spread[1] < np.ptp(normal[:, 1])
    for column in range(2):
        one, other = normal[0].copy(), normal[0].copy()
        other[column] += spread[column]
        assert distance(scaler, one, other) == pytest.approx(1.0, rel=1e-6)


def test_an_extreme_value_does_not_shrink_a_column() -> None:
    rng = np.random.RandomState(0)
    normal = rng.normal(size=(5000, 2))
    before = distance(fit_distance_scaler(normal), np.zeros(2), np.array([1.0, 0.0]))
    normal[0, 0] = 50.0
    after = distance(fit_distance_scaler(normal), np.zeros(2), np.array([1.0, 0.0]))
    # Divided by its range, the column would have shrunk to a seventh.
    assert after > 0.7 * before


def test_constant_columns_keep_their_unit() -> None:
    normal = np.column_stack([np.full(50, 7.0), np.zeros(50), np.arange(50.0)])
    scaler = fit_distance_scaler(normal)
    for column in range(2):
        other = normal[0].copy()
        other[column] += 0.25
        assert distance(scaler, normal[0], other) == pytest.approx(0.25)


@given(st.integers(2, 30), st.integers(0, 99))
def test_the_levels_of_a_category_count_as_one_feature(n_levels: int, seed: int) -> None:
    """Their squared distances are on average what those of one number would be."""
    rng = np.random.RandomState(seed)
    shares = rng.dirichlet(np.ones(n_levels))
    levels = np.eye(n_levels)[rng.choice(n_levels, p=shares, size=400)]
    normal = np.hstack([rng.normal(size=(400, 1)), levels])
    scaler = fit_distance_scaler(normal, (tuple(range(1, n_levels + 1)),))
    variance = scaler.transform(normal).var(axis=0)
    if np.ptp(levels, axis=0).any():
        assert variance[1:].sum() == pytest.approx(variance[0], rel=1e-9)
    # Alone, every column of them would count as much as the number.
    alone = fit_distance_scaler(normal).transform(normal).var(axis=0)
    assert (alone[1:][np.ptp(levels, axis=0) > 0] >= variance[0] - 1e-9).all()


def test_a_level_never_seen_is_farther_than_the_others() -> None:
    rng = np.random.RandomState(0)
    normal = np.eye(4)[rng.randint(3, size=200)]  # the fourth level is not among them
    scaler = fit_distance_scaler(normal, ((0, 1, 2, 3),))
    known = distance(scaler, np.eye(4)[0], np.eye(4)[1])
    assert distance(scaler, np.eye(4)[0], np.eye(4)[3]) > max(1.0, 1.5 * known)


def test_groups_of_other_numbers_are_columns_of_their_own() -> None:
    normal = np.random.RandomState(0).normal(size=(100, 3))
    expected = fit_distance_scaler(normal).transform(normal)
    found = fit_distance_scaler(normal, ((0, 1), (2,))).transform(normal)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [3, 10, 60])
@pytest.mark.parametrize("n_features", [1, 4])
def test_covariance_of_the_others(n: int, n_features: int) -> None:
    """The distances of T are those of refits without the row."""
    rng = np.random.RandomState(0)
    normal = rng.normal(size=(n, n_features)) @ rng.normal(size=(n_features, n_features))
    scaler = FeatureScaler.learn(normal, "standard")
    scaled = scaler.transform(normal)
    view = learn_covariance(scaler, scaled, rng)
    expected = np.sort([np.log(left_out_square(scaled, i)) for i in range(n)])
    np.testing.assert_allclose(view.held_out.ascending, expected, rtol=1e-6)
    batch = rng.normal(size=(20, n_features))
    of_batch = [np.log(square(row, scaled)) for row in scaler.transform(batch)]
    score = view.scorer(BACKENDS["cpu"])
    np.testing.assert_allclose(
        score(ScoredRows(batch)), -view.held_out.log_p_values(np.array(of_batch))
    )


@pytest.mark.parametrize(
    "normal",
    [np.ones((30, 2)), np.ones((1, 3)), np.arange(20.0)[:, None] * [1.0, -2.0]],
    ids=["constant", "one row", "dependent"],
)
def test_covariance_without_variance(normal: np.ndarray) -> None:
    scaler = FeatureScaler.learn(normal, "standard")
    view = learn_covariance(scaler, scaler.transform(normal), np.random.RandomState(0))
    scores = view.scorer(BACKENDS["cpu"])(ScoredRows(np.vstack([normal[:1], normal[:1] + 100])))
    assert np.isfinite(scores).all()
    assert scores[1] > scores[0]


def test_a_row_is_no_reference_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of T beyond the references are compared with all of them."""
    rng = np.random.RandomState(0)
    normal = rng.normal(size=(60, 2))
    scaler = fit_distance_scaler(normal)
    monkeypatch.setattr(learning, "MOST_REFERENCES", 20)
    view = learn_distances(scaler, normal, "float64", rng, 1, Marks())
    assert view.references.shape == (20, 2)
    assert view.n_compared == 60
    # No distance is 0.
    assert view.held_out.ascending[0] > -6


def test_forest_view_has_the_out_of_bag_scores() -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(80, 3)), rng.normal(size=(40, 3))
    view = learn_forest(BinnedRows.of(np.concatenate([normal, batch])), np.ones(40), 0, 1)
    oob = view.forest.oob_scores
    np.testing.assert_array_equal(view.held_out.ascending, np.sort(oob[:80]))
    score = view.scorer(BACKENDS["cpu"])
    np.testing.assert_array_equal(score(ScoredRows(batch)), -view.held_out.log_p_values(oob[80:]))
    new = rng.normal(size=(10, 3))
    # As many trees as have not learned from a row: 600 / e.
    shares = view.forest.first(221).score_bins(ScoredRows(new).bins(view.forest.edges))
    expected = -view.held_out.log_p_values(shares)
    np.testing.assert_array_equal(score(ScoredRows(new)), expected)


def test_rows_without_label_count_as_known_normal() -> None:
    """A forest that is to tell nothing finds nothing."""
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(80, 3)), rng.normal(size=(40, 3)) + 3
    view = learn_forest(BinnedRows.of(np.concatenate([normal, batch])), np.zeros(40), 0, 1)
    assert np.ptp(view.forest.oob_scores) == 0.0


def agreement(normal: Any, batch: Any, rng: np.random.RandomState, n_threads: int = 1) -> float:
    binned = BinnedRows.of(np.concatenate([normal, batch]))
    return forest_agreement(binned, len(batch), rng, n_threads)


def test_forests_agree_on_what_is_there() -> None:
    rng = np.random.RandomState(0)
    of_noise, of_cluster = [], []
    for _ in range(8):
        normal, batch = rng.normal(size=(200, 4)), rng.normal(size=(150, 4))
        of_noise.append(agreement(normal, batch, rng))
        batch[:50] = 2 + 0.3 * rng.normal(size=(50, 4))
        of_cluster.append(agreement(normal, batch, rng))
    assert 0.0 <= np.mean(of_noise) < 0.15
    assert 0.0 in of_noise  # correlations below 0 are no agreement
    assert min(of_cluster) > 0.4


@pytest.mark.parametrize("n_batch", [1, 2, 4, 5])
def test_agreement_on_a_tiny_batch(n_batch: int) -> None:
    rng = np.random.RandomState(0)
    found = agreement(rng.normal(size=(8, 2)), rng.normal(size=(n_batch, 2)), rng)
    assert 0.0 <= found <= 1.0


def test_agreement_does_not_depend_on_threads() -> None:
    rows = np.random.RandomState(0).normal(size=(120, 3))
    found = {
        agreement(rows[:70], rows[70:], np.random.RandomState(1), n_threads) for n_threads in (1, 3)
    }
    assert len(found) == 1
