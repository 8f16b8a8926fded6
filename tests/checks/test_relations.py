"""Columns predicted from the others, next to plain regressions."""

from __future__ import annotations

import numpy as np
import pytest

from qms22.checks.relations import _FOLDS, RelationInputs, Relations

SEED = 3


def inputs_of(numbers: np.ndarray, levels: np.ndarray | None = None) -> RelationInputs:
    return RelationInputs(numbers, np.zeros((len(numbers), 0)) if levels is None else levels)


def regression(numbers: np.ndarray, rows: np.ndarray, column: int) -> np.ndarray:
    """Predict a column by least squares with an intercept."""
    others = np.delete(numbers, column, axis=1)
    design = np.column_stack([np.ones(len(numbers)), others])
    weights = np.linalg.lstsq(design, numbers[:, column], rcond=None)[0]
    predicted: np.ndarray = (
        np.column_stack([np.ones(len(rows)), np.delete(rows, column, axis=1)]) @ weights
    )
    return predicted


def related(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Columns around 0, each of which says something about the others."""
    mixing = np.array([[1.0, 0.4, 0.1], [0.0, 1.0, 0.7], [0.0, 0.0, 1.0]])
    rows: np.ndarray = rng.normal(size=(n_rows, 3)) @ mixing
    return rows


def test_predictions_are_those_of_a_regression() -> None:
    rng = np.random.default_rng(0)
    known, rows = related(400, rng), related(50, rng)
    rows = np.clip(rows, known.min(axis=0), known.max(axis=0))
    relations = Relations()
    relations.learn(inputs_of(known), SEED)
    found = relations.predict(inputs_of(rows))
    for column in range(3):
        expected = regression(known, rows, column)
        np.testing.assert_allclose(found.values[:, column], expected, atol=1e-4)
        # Errors have the sign of the difference.
        above = rows[:, column] > found.values[:, column]
        np.testing.assert_array_equal(found.errors[:, column] > 0, above)


def test_own_rows_are_predicted_by_the_other_folds() -> None:
    known = related(300, np.random.default_rng(1))
    own = Relations().learn(inputs_of(known), SEED)
    fold = np.random.RandomState(SEED).permutation(len(known)) % _FOLDS
    # Moments are about the mean of all rows, so that predictions differ a little.
    for number in range(_FOLDS):
        out = fold == number
        for column in range(3):
            expected = regression(known[~out], known[out], column)
            np.testing.assert_allclose(own.values[out, column], expected, atol=0.2)


def test_half_of_the_own_errors_are_below_the_unit() -> None:
    own = Relations().learn(inputs_of(related(2000, np.random.default_rng(2))), SEED)
    np.testing.assert_allclose(np.median(np.abs(own.errors), axis=0), 1.0, atol=0.1)


def orders(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    price = np.exp(rng.normal(3, 1, n_rows)).round(2)
    quantity = rng.integers(1, 9, n_rows).astype(float)
    return np.column_stack([price, quantity, price * quantity])


def sums(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    parts = rng.normal(50, 10, (n_rows, 2))
    return np.column_stack([parts, parts.sum(axis=1)])


@pytest.mark.parametrize("draw", [orders, sums])
def test_exact_relations_are_found(draw: object) -> None:
    rng = np.random.default_rng(3)
    known, rows = draw(800, rng), draw(40, rng)  # type: ignore[operator]
    relations = Relations()
    own = relations.learn(inputs_of(known), SEED)
    assert relations.sources[2][:2] in [(0, 1), (1, 0)]
    usual = np.abs(relations.predict(inputs_of(rows)).errors[:, 2])
    wrong = rows.copy()
    wrong[7, 2] *= 1.2
    errors = np.abs(relations.predict(inputs_of(wrong)).errors[:, 2])
    assert errors[7] > 10 * max(usual.max(), np.abs(own.errors[:, 2]).max())
    np.testing.assert_array_equal(np.delete(errors, 7), np.delete(usual, 7))
    suggested = relations.predict(inputs_of(wrong)).values[7, 2]
    assert suggested == pytest.approx(rows[7, 2], rel=0.02)


def test_levels_say_something_too() -> None:
    rng = np.random.default_rng(4)
    level = rng.integers(0, 2, 600)
    inputs = inputs_of(
        np.column_stack([rng.normal(size=600) + 9 * level, rng.normal(size=600)]),
        level[:, np.newaxis].astype(float),
    )
    relations = Relations()
    relations.learn(inputs, SEED)
    assert relations.sources[0] == (2,)
    assert relations.sources[1] == ()
    swapped = RelationInputs(inputs.numbers[:9], 1 - inputs.levels[:9])
    assert (np.abs(relations.predict(swapped).errors[:, 0]) > 5).all()


def test_missing_inputs_widen_the_scale() -> None:
    rng = np.random.default_rng(5)
    known = sums(800, rng)
    relations = Relations()
    relations.learn(inputs_of(known), SEED)
    row = sums(1, rng)
    row[0, 2] += 5
    whole = np.abs(relations.predict(inputs_of(row)).errors[0, 2])
    gaps = row.copy()
    gaps[0, 0] = np.nan
    errors = relations.predict(inputs_of(gaps)).errors[0]
    assert np.abs(errors[2]) < whole / 10
    assert np.isnan(errors[0])


def test_a_relation_may_go_on_beyond_the_usual_values() -> None:
    rng = np.random.default_rng(7)
    relations = Relations()
    known = sums(800, rng)
    relations.learn(inputs_of(known), SEED)
    rows = np.array([[200.0, 50.0, 250.0], [9e9, 50.0, 100.0], [50.0, 50.0, 9e9]])
    errors = np.abs(relations.predict(inputs_of(rows)).errors)
    # As a sum it fits; a part that is absurd does not make the others odd.
    assert (errors[0] < 2).all()
    assert errors[1, 0] > 1e3
    assert (errors[1, 1:] < 2).all()
    assert errors[2, 2] > 1e3
    assert (errors[2, :2] < 2).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e150])
def test_huge_and_tiny_numbers(scale: float) -> None:
    rng = np.random.default_rng(6)
    relations = Relations()
    own = relations.learn(inputs_of(scale * sums(100, rng)), SEED)
    found = relations.predict(inputs_of(scale * 1e100 * sums(10, rng)))
    for each in (own.errors, own.values, found.errors, found.values):
        assert np.isfinite(each).all()


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_few_rows(n_rows: int) -> None:
    numbers = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    relations = Relations()
    relations.learn(inputs_of(numbers), SEED)
    assert np.isfinite(relations.predict(inputs_of(numbers)).errors).all()
