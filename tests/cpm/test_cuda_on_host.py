"""The GPU's arithmetic, compiled for the host, decides as the compiled kernel does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from rows_on_host import library, sweep_on_host
from tasks import KINDS, random_task, task_with_exact_hits, tasks_and_options

from qms22._cpm.backends import solve
from qms22._cpm.cuda.fit_memory import allocate_fits
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._cpm.task import Task, classification_task


def assert_as_native(task: Task, options: SolverOptions, depth: int) -> None:
    expected = solve(task, options)
    A, b, loss = sweep_on_host(task, options, depth)
    np.testing.assert_array_equal(A, expected.members.A)
    np.testing.assert_array_equal(b, expected.members.b)
    np.testing.assert_allclose(
        loss, expected.losses[1:], rtol=1e-9, atol=1e-12 * expected.losses[0]
    )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_record_is_laid_out_as_the_struct(precision: str) -> None:
    task, options = random_task("classes", 2, 2, seed=0), SolverOptions(dtype=precision)
    (memory,) = allocate_fits([Fit.of(task, options)], options, 1, 1, np)
    assert library().size_of_fit(precision == "float32") == memory.record.itemsize


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_members", [2, 3, 7])
def test_host_every_kind(kind: str, n_members: int, depth: int) -> None:
    task = random_task(kind, n_members, n_features=3, seed=n_members, n_rows=61)
    assert_as_native(task, SolverOptions(n_components=3, max_iter=4), depth)


@pytest.mark.parametrize("n_components", [1, 2, 5])
@pytest.mark.parametrize("n_features", [1, 2, 3, 8])
def test_host_every_place_of_a_turn(n_components: int, n_features: int) -> None:
    # A pass has two entries, which with an even number of features may be of two components.
    task = random_task("detection", 4, n_features, seed=n_components)
    assert_as_native(task, SolverOptions(n_components=n_components, max_iter=4), depth=2)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_host_through_many_breakpoints(kind: str, alpha: float) -> None:
    task = random_task(kind, 5, n_features=2, seed=1)
    options = SolverOptions(n_components=2, alpha=alpha, max_iter=15, init_b=1000.0)
    assert_as_native(task, options, depth=2)


def test_host_member_values_of_exactly_zero() -> None:
    labels = (np.arange(20) % 2).astype(np.int32)
    task = classification_task((1 - 2 * labels[:, None]).astype(float), labels, 2)
    options = SolverOptions(n_components=1, alpha=0.0, max_iter=10, step_b=1.0, init_b=2.0)
    assert_as_native(task, options, depth=2)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tasks_and_options())
def test_host_any_task(drawn: tuple[Task, SolverOptions]) -> None:
    task, options = drawn
    assert_as_native(task, options, depth=2)


@pytest.mark.parametrize("seed", [0, 1, 78, 105])
def test_host_float32_where_members_hit_rows_exactly(seed: int) -> None:
    task, options = task_with_exact_hits(seed)
    expected = solve(task, options).members
    for depth in (1, 2):
        A, b, _ = sweep_on_host(task, replace(options, dtype="float32"), depth)
        np.testing.assert_array_equal(A, expected.A)
        np.testing.assert_array_equal(b, expected.b)


def test_host_real_valued_rows_in_both_precisions() -> None:
    task = random_task("detection", 7, n_features=6, seed=3, n_rows=1_001)
    task = replace(task, X=np.random.RandomState(0).normal(0, 90, size=task.X.shape))
    assert_as_native(task, SolverOptions(max_iter=6), depth=2)
    single = SolverOptions(max_iter=6, dtype="float32")
    loss = sweep_on_host(task, single, depth=2)[2]
    assert loss[-1] == pytest.approx(solve(task, single).losses[-1], rel=0.01)
