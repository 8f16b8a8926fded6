"""Trials on bundles of columns have the bits of trials on one column after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tasks import assert_same_members, by_reference, random_task

import qms22
from qms22._cpm.backends import solve
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import FitState
from qms22._cpm.task import Task

INSTRUCTION_SETS = qms22.build_info()["runs_here"]


def one_hot(rng: np.random.RandomState, n_rows: int, n_levels: int) -> np.ndarray:
    """Columns of one category; the last level is rare, some rows have none, values differ."""
    level = ((n_levels + 0.5) * rng.uniform(size=n_rows) ** 2).astype(int)
    values = rng.choice([255.0, 255.0, -100.0, 85.0], size=(n_rows, 1))
    return np.where(level[:, None] == np.arange(n_levels), values, 0.0)


def with_categories(task: Task, rng: np.random.RandomState, n_levels: list[int]) -> Task:
    """Add categories before and after the columns of a task."""
    categories = [one_hot(rng, len(task.X), n) for n in n_levels]
    return replace(task, X=np.concatenate([*categories[1:], task.X, categories[0]], axis=1))


def twins(task: Task) -> tuple[Task, Task]:
    """Return two tasks with the same fit: one with bundles, one without.

    Every 25th row has no weight. In the second task these rows have no zeros, so that no bundle has
    two columns.
    """
    has_weight = np.arange(len(task.X)) % 25 != 0
    weights = np.ones(len(task.X)) if task.row_weight is None else task.row_weight
    task = replace(task, row_weight=weights * has_weight)
    return task, replace(task, X=np.where(has_weight[:, None], task.X, 0.75 * task.X + 1.0))


def assert_same_bits(found: FitState, expected: FitState) -> None:
    assert found.members.A.tobytes() == expected.members.A.tobytes()
    assert found.members.b.tobytes() == expected.members.b.tobytes()
    assert found.losses[1:] == expected.losses[1:]


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_same_bits_as_one_column_after_the_other(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**31 - 1))
    task = random_task(
        data.draw(st.sampled_from(["detection", "classes", "weighted classes"])),
        n_members=data.draw(st.integers(2, 5)),
        n_features=data.draw(st.integers(1, 3)),
        seed=seed,
        n_rows=data.draw(st.integers(60, 5_000)),
    )
    n_levels = data.draw(st.lists(st.sampled_from([2, 3, 5, 9, 30]), min_size=1, max_size=4))
    task, without_bundles = twins(with_categories(task, np.random.RandomState(seed), n_levels))
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    # Not the paper's α alone: others send many rows to the slow path, and a small b to the floor.
    options = SolverOptions(
        n_components=data.draw(st.integers(1, 4)),
        alpha=data.draw(st.sampled_from([0.0, 0.5, 0.9, 0.95])),
        max_iter=3,
        init_b=data.draw(st.sampled_from([255.0, 1000.0, 25500.0])),
        dtype=dtype,
    )
    expected = solve(without_bundles, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QMS22_ISA", data.draw(st.sampled_from(INSTRUCTION_SETS)))
        n_threads = data.draw(st.sampled_from([1, 2, 3]))
        assert_same_bits(solve(task, replace(options, n_threads=n_threads)), expected)


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_decisions_of_the_reference(alpha: float) -> None:
    rng = np.random.RandomState(0)
    task = with_categories(random_task("detection", 4, 1, seed=2, n_rows=150), rng, [2, 3, 5])
    options = SolverOptions(n_components=3, alpha=alpha, max_iter=6)
    assert_same_members(solve(task, options), by_reference(task, options))


def test_blocks_without_a_level() -> None:
    task = random_task("detection", 3, 1, seed=3, n_rows=9_000)
    levels = 255.0 * (np.arange(9_000)[:, None] * 6 // 9_000 == np.arange(6))
    task, without_bundles = twins(replace(task, X=np.concatenate([levels, task.X], axis=1)))
    options = SolverOptions(n_components=2, max_iter=4)
    assert_same_bits(solve(task, options), solve(without_bundles, options))


@pytest.mark.parametrize("n_zeros", [1, 7, 8, 9])
def test_columns_of_zeros_before_b(n_zeros: int) -> None:
    task = random_task("detection", 3, 1, seed=4, n_rows=100)
    X = np.concatenate([task.X, np.zeros((100, n_zeros))], axis=1)
    task, without_bundles = twins(replace(task, X=X))
    options = SolverOptions(n_components=2, max_iter=5)
    assert_same_bits(solve(task, options), solve(without_bundles, options))
