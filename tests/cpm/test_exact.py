"""The native kernel takes exactly the decisions of the reference."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from naive import naive_cpm
from reference import ReferenceSolver, dense_weights, loss, member_value
from tasks import KINDS, assert_same_members, by_reference, random_task, tasks_and_options

from qms22._cpm.backends import solve
from qms22._cpm.native import NativeSolver
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._cpm.task import Task, classification_task


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_members", range(2, 11))
def test_every_number_of_members(kind: str, n_members: int) -> None:
    task = random_task(kind, n_members, n_features=3, seed=n_members)
    options = SolverOptions(n_components=3, max_iter=4)
    assert_same_members(solve(task, options), by_reference(task, options))


@pytest.mark.parametrize("n_components", [1, 2, 5, 7, 10, 20])
@pytest.mark.parametrize("n_features", [1, 2, 9])
def test_every_shape_of_a_member(n_components: int, n_features: int) -> None:
    task = random_task("detection", 4, n_features, seed=n_components)
    options = SolverOptions(n_components=n_components, max_iter=3)
    assert_same_members(solve(task, options), by_reference(task, options))


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95])
@pytest.mark.parametrize("kind", KINDS)
def test_every_alpha_through_many_breakpoints(alpha: float, kind: str) -> None:
    task = random_task(kind, 5, n_features=2, seed=1)
    options = SolverOptions(n_components=2, alpha=alpha, max_iter=15)
    assert_same_members(solve(task, options), by_reference(task, options))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tasks_and_options())
def test_any_task(drawn: tuple[Task, SolverOptions]) -> None:
    task, options = drawn
    found, expected = solve(task, options), by_reference(task, options)
    assert_same_members(found, expected)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)


def test_real_valued_rows() -> None:
    task = random_task("detection", 7, n_features=6, seed=3, n_rows=300)
    task = replace(task, X=np.random.RandomState(0).normal(0, 90, size=task.X.shape))
    options = SolverOptions(max_iter=4)
    assert_same_members(solve(task, options), by_reference(task, options))


def test_member_values_of_exactly_zero() -> None:
    # Two classes at x = 1 and x = −1: with α = 0 nothing is better than A x = b on one's own class.
    labels = (np.arange(20) % 2).astype(np.int32)
    task = classification_task((1 - 2 * labels[:, None]).astype(float), labels, 2)
    options = SolverOptions(n_components=1, alpha=0.0, max_iter=10, step_b=1.0, init_b=2.0)
    found = solve(task, options)
    values = found.members.values(task.X)
    assert (values == found.members.floor).any(), "the case under test did not occur"
    assert_same_members(found, by_reference(task, options))


def test_slow_rows_are_met_and_right() -> None:
    # Row-trials in O(m) time are rare; make sure that there are some.
    task = random_task("classes", 6, n_features=3, seed=5)
    options = SolverOptions(n_components=3, alpha=0.9, max_iter=5, init_b=1000.0)
    fit = Fit.of(task, options)
    native, reference = NativeSolver(fit, options), ReferenceSolver(fit, options)
    for _ in range(options.max_iter):
        change, accepted = native.sweep()
        expected_change, expected_accepted = reference.sweep()
        assert accepted == expected_accepted
        assert change == pytest.approx(expected_change, rel=1e-9)
    assert native.core.slow_row_trials > 0.05 * native.core.row_trials
    np.testing.assert_array_equal(native.members.A, reference.A)
    np.testing.assert_array_equal(native.members.b, reference.b)


def test_reference_scans_as_defined() -> None:
    """Member by member, row by row, column by column, then b; + before −; smallest wins."""
    task = random_task("detection", 3, n_features=2, seed=2)
    weights = dense_weights(task)
    options = SolverOptions(n_components=2, max_iter=1)
    A, b = np.zeros((3, 2, 2)), np.zeros((3, 2))
    b[:, 0] = options.init_b

    def total(A: np.ndarray, b: np.ndarray) -> float:
        values = [member_value(task.X, A[i], b[i], floor=1e-3) for i in range(3)]
        return loss(np.array(values), weights, options.alpha)

    for i in range(3):
        for r in range(2):
            for c in range(3):
                target, at, step = (A, (i, r, c), 1.0) if c < 2 else (b, (i, r), 255.0)
                before, start = total(A, b), target[at]
                for direction in (step, -step):
                    target[at] = start + direction
                    if total(A, b) < before - 1e-9:
                        break
                    target[at] = start
    found = by_reference(task, options)
    np.testing.assert_array_equal(found.members.A, A)
    np.testing.assert_array_equal(found.members.b, b)


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler to build the naive loop")
@pytest.mark.parametrize("n_members", [2, 7])
@pytest.mark.parametrize("reciprocals", [False, True])
def test_naive_loop_agrees(n_members: int, reciprocals: bool) -> None:
    task = random_task("detection", n_members, n_features=4, seed=7, n_rows=500)
    options = SolverOptions(max_iter=8)
    found = solve(task, options)
    A, b = naive_cpm(task, options, reciprocals=reciprocals)
    np.testing.assert_array_equal(found.members.A, A)
    np.testing.assert_array_equal(found.members.b, b)
