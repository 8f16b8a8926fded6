from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from normal_rows import Rows, make_rows
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from qms22_bench.rivals import DOUST
from qms22_bench.rivals.doust import Examples, Network, unit_range_scaler


def make_batch(n_rows: int = 200, n_shifted: int = 20) -> Rows:
    rows = make_rows(n_rows, seed=1)
    rows[:n_shifted] += 3
    return rows


def naive_loss(layers: list[Any], examples: Examples) -> float:
    """Compute the weighted mean of squared errors, row by row and unit by unit."""
    total = 0.0
    for row, target, weight in zip(examples.rows, examples.targets, examples.weights, strict=True):
        values = [float(value) for value in row]
        for layer in layers[:-1]:
            sums = [sum(v * w for v, w in zip(values, unit, strict=True)) for unit in layer.T]
            values = [max(0.0, value) for value in sums]
        z = sum(v * w for v, w in zip(values, layers[-1][:, 0], strict=True))
        f = 1 / (1 + np.exp(1 - z))
        total += weight * (f - target) ** 2
    return total / len(examples.rows)


def test_gradients_are_those_of_the_naive_loss() -> None:
    rng = np.random.default_rng(0)
    network = Network(3, rng)
    rows = rng.normal(size=(5, 3)).astype(np.float32)
    examples = Examples.of([(rows[:2], 0.0), (rows[2:], 1.0)])
    gradient = network._differentiate(examples)
    exact = [layer.astype(np.float64) for layer in network.layers]
    starts = np.cumsum([0, *(layer.size for layer in exact)])
    for number, (i, j) in enumerate([(1, 7), (20, 30), (99, 0), (50, 0)]):
        losses = []
        for step in (-1e-5, 1e-5):
            moved = [layer.copy() for layer in exact]
            moved[number][i, j] += step
            losses.append(naive_loss(moved, examples))
        expected = (losses[1] - losses[0]) / 2e-5
        found = gradient[starts[number] + i * exact[number].shape[1] + j]
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_both_parts_have_the_same_weight() -> None:
    known, sought = np.zeros((30, 2), np.float32), np.ones((10, 2), np.float32)
    examples = Examples.of([(known, 0.0), (sought, 1.0)])
    assert examples.weights[:30].sum() == pytest.approx(examples.weights[30:].sum())
    assert examples.weights.mean() == pytest.approx(1)
    assert examples.targets.tolist() == [0.0] * 30 + [1.0] * 10


def test_the_first_stage_pulls_normal_rows_to_the_middle() -> None:
    rng = np.random.default_rng(0)
    network = Network(4, rng)
    rows = rng.uniform(0.2, 1, size=(500, 4)).astype(np.float32)
    examples = Examples.of([(rows, 0.5)])
    before = naive_loss(network.layers, examples[np.arange(20)])
    network.learn(examples, 5, rng)
    assert naive_loss(network.layers, examples[np.arange(20)]) < before / 10


def test_the_batch_is_needed_to_see_what_is_odd() -> None:
    """A cluster inside of the normal rows is dense in the batch alone."""
    normal, batch = make_rows(1000), make_rows(1000, seed=1)
    is_outlier = np.arange(1000) < 200
    batch[is_outlier] = 0.1 * batch[is_outlier] + 0.7
    scores = DOUST(random_state=0).fit(normal, unlabeled=batch).unlabeled_scores_
    assert roc_auc_score(is_outlier, scores) > 0.9


def test_new_rows_like_the_shifted_ones_are_found() -> None:
    detector = DOUST(random_state=0).fit(make_rows(400), unlabeled=make_batch())
    new = np.vstack([make_rows(100, seed=2) + 3, make_rows(100, seed=3)])
    assert roc_auc_score(np.arange(200) < 100, -detector.score_samples(new)) > 0.9


def test_seeds_threads_and_pickling() -> None:
    normal, batch, new = make_rows(), make_batch(), make_rows(2500, seed=2)
    one, two = (
        DOUST(n_epochs=5, n_jobs=n_jobs, random_state=3).fit(normal, unlabeled=batch)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.unlabeled_scores_, two.unlabeled_scores_)
    np.testing.assert_array_equal(one.score_samples(new), two.score_samples(new))
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.score_samples(new), copy.score_samples(new))
    other = DOUST(n_epochs=5, random_state=4).fit(normal, unlabeled=batch)
    assert (one.unlabeled_scores_ != other.unlabeled_scores_).any()


def test_units_do_not_matter() -> None:
    normal, batch = make_rows(), make_batch()
    units = 2.0 ** np.array([-900, -20, 0, 900])
    plain, scaled = (
        DOUST(n_epochs=5, random_state=0).fit(normal * by, unlabeled=batch * by)
        for by in (1.0, units)
    )
    np.testing.assert_array_equal(plain.unlabeled_scores_, scaled.unlabeled_scores_)


def test_columns_are_scaled_to_the_range_of_normal_rows() -> None:
    normal = make_rows() * [1, 1e3, 1e-3, 0] + 5
    scaled = unit_range_scaler(normal).transform(normal)
    np.testing.assert_allclose(scaled.min(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.max(axis=0), [1, 1, 1, 0], atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-300, 1e308])
def test_any_number_is_scored(value: float) -> None:
    normal: NDArray[np.float64] = np.array([[0.0, 1.0], [value, 1.0], [-value, 1.0]])
    batch = np.array([[1.7e308, -1.7e308], [value, 1.0]])
    detector = DOUST(n_epochs=2, random_state=0).fit(normal, unlabeled=batch)
    assert np.isfinite(detector.unlabeled_scores_).all()
    assert np.isfinite(detector.score_samples(-batch)).all()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="n_epochs must be a whole number of at least 1; got 0"):
        DOUST(n_epochs=0).fit(make_rows(), unlabeled=make_batch())
    batch = make_batch()
    batch[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 3 holds NaN .* in column 1"):
        DOUST().fit(make_rows(), unlabeled=batch)
