"""Properties that hold for any data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ReferenceSolver, dense_weights, loss
from tasks import random_task, tasks_and_options

from qms22 import QMS22
from qms22._cpm.backends import solve
from qms22._cpm.native import NativeSolver
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState
from qms22._cpm.task import Task, classification_task


@settings(max_examples=examples(40), deadline=None)
@given(tasks_and_options(), st.sampled_from(["float64", "float32"]))
def test_loss_is_true_and_never_rises(drawn: tuple[Task, SolverOptions], dtype: str) -> None:
    task, options = drawn
    options = replace(options, dtype=dtype, max_iter=6)
    found = solve(task, options)
    assert (np.diff(found.losses) <= 0).all()
    values = found.members.values(task.X).T
    expected = loss(values, dense_weights(task), options.alpha)
    # Rows near a value of 0 have ratios that float32 cannot tell to many digits.
    assert found.losses[-1] == pytest.approx(expected, rel=1e-8 if dtype == "float64" else 1e-2)


def test_each_sweep_is_a_function_of_the_coefficients() -> None:
    """So that a fit can go on from what it has saved, to the same bits."""
    task = random_task("detection", 4, n_features=3, seed=4, n_rows=400)
    task = replace(task, X=task.X / 7.0)
    options = SolverOptions(n_components=3)
    whole = NativeSolver(Fit.of(task, options), options)
    for _ in range(10):
        parts = NativeSolver(Fit(task, FitState(whole.members, [0.0], accepted=1)), options)
        assert whole.sweep() == parts.sweep()
        assert parts.members.A.tobytes() == whole.members.A.tobytes()
        assert parts.members.b.tobytes() == whole.members.b.tobytes()


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**31 - 1))
def test_permuting_features_permutes_a(n_features: int, seed: int) -> None:
    """With the scan order permuted along: the order is part of the method's definition."""
    task = random_task("detection", 3, n_features, seed)
    order = np.random.RandomState(seed).permutation(n_features)
    options = SolverOptions(n_components=2)
    of_permuted = replace(task, X=np.ascontiguousarray(task.X[:, order]))
    permuted = NativeSolver(Fit.of(of_permuted, options), options)
    reference = ReferenceSolver(Fit.of(task, options), options, column_order=order.tolist())
    for _ in range(3):
        permuted.sweep()
        reference.sweep()
    np.testing.assert_array_equal(permuted.members.A, reference.A[:, :, order])
    np.testing.assert_array_equal(permuted.members.b, reference.b)


@pytest.mark.parametrize("position", [0, 1, 3])
def test_a_column_of_zeros_changes_nothing(position: int) -> None:
    task = random_task("classes", 4, n_features=3, seed=9)
    wider = replace(task, X=np.insert(task.X, position, 0.0, axis=1))
    options = SolverOptions(n_components=3, max_iter=8)
    narrow_members, wide_members = solve(task, options).members, solve(wider, options).members
    np.testing.assert_array_equal(np.delete(wide_members.A, position, axis=2), narrow_members.A)
    np.testing.assert_array_equal(wide_members.A[:, :, position], 0.0)
    np.testing.assert_array_equal(wide_members.b, narrow_members.b)


def test_duplicated_rows_are_rows_of_double_weight() -> None:
    rng = np.random.RandomState(0)
    X = rng.randint(-200, 200, size=(50, 3)).astype(float)
    labels = (np.arange(50) % 3).astype(np.int32)
    X += 30 * labels[:, None]
    options = SolverOptions(n_components=3, max_iter=10)
    times = rng.randint(1, 4, size=50)
    repeated = solve(
        classification_task(np.repeat(X, times, axis=0), np.repeat(labels, times), 3), options
    )
    weighted = solve(classification_task(X, labels, 3, times.astype(float)), options)
    np.testing.assert_array_equal(repeated.members.A, weighted.members.A)
    np.testing.assert_array_equal(repeated.members.b, weighted.members.b)


def test_order_of_rows_does_not_matter() -> None:
    task = random_task("detection", 5, n_features=4, seed=6, n_rows=200)
    order = np.random.RandomState(1).permutation(200)
    shuffled = Task(np.ascontiguousarray(task.X[order]), task.group[order], task.group_weight)
    options = SolverOptions(n_components=3, max_iter=5)
    np.testing.assert_array_equal(
        solve(shuffled, options).members.A, solve(task, options).members.A
    )


def test_stops_when_a_sweep_finds_nothing() -> None:
    # Two identical member sets: at the start every ratio is 1, and no step can improve on it.
    X = np.arange(12.0).reshape(6, 2)
    task = Task(X, np.zeros(6, dtype=np.int32), np.ones((2, 1)))
    found = solve(task, SolverOptions(max_iter=50))
    assert found.n_iter == 1
    assert not found.members.A.any()


@pytest.mark.parametrize("exponent", [-40, -3, 5, 60])
def test_units_of_features_do_not_matter(exponent: int) -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(100, 3)), rng.normal(size=(40, 3)) + 0.5
    unit = np.array([1.0, 2.0**exponent, 1.0])
    expected = QMS22(random_state=0).fit(normal, unlabeled=batch)
    found = QMS22(random_state=0).fit(normal * unit, unlabeled=batch * unit)
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)


def test_standard_scaling_forgets_shift_and_unit() -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(100, 3)), rng.normal(size=(40, 3)) + 0.5
    detector = QMS22(scaling="standard", max_iter=10, random_state=0)
    expected = detector.fit(normal, unlabeled=batch).unlabeled_scores_
    found = detector.fit(normal * 8 - 3, unlabeled=batch * 8 - 3).unlabeled_scores_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
