"""The same bits on every instruction set and with every number of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tasks import random_task, task_with_exact_hits

import qms22
from qms22._cpm.backends import solve
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import FitState
from qms22._cpm.task import Task, detection_task

INSTRUCTION_SETS = qms22.build_info()["runs_here"]


def assert_same_bits(found: FitState, expected: FitState) -> None:
    for name in ("A", "b"):
        assert getattr(found.members, name).tobytes() == getattr(expected.members, name).tobytes()
    assert found.losses == expected.losses


@pytest.fixture(scope="module")
def large_task() -> Task:
    rng = np.random.RandomState(0)
    X = rng.normal(0, 80, size=(70_001, 2))
    X[:500] += 200
    return detection_task(X, 20_000, 3, rng)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["detection", "weighted classes"])
def test_instruction_sets(kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = random_task(kind, 5, n_features=3, seed=11, n_rows=2_345)
    # Not integers, so that sums depend on their order.
    task = replace(task, X=task.X / 3.0)
    options = SolverOptions(n_components=4, alpha=0.8, max_iter=6, dtype=dtype)
    expected = solve(task, options)
    values = expected.members.values(task.X)
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv("QMS22_ISA", name)
        assert_same_bits(solve(task, options), expected)
        assert expected.members.values(task.X).tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads(large_task: Task, dtype: str) -> None:
    options = SolverOptions(n_components=2, max_iter=2, dtype=dtype)
    expected = solve(large_task, options)
    for n_threads in (2, 4):
        assert_same_bits(solve(large_task, replace(options, n_threads=n_threads)), expected)


def test_threads_of_every_instruction_set(
    large_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SolverOptions(n_components=1, max_iter=1)
    expected = solve(large_task, options)
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv("QMS22_ISA", name)
        for n_threads in (1, 2, 4):
            assert_same_bits(solve(large_task, replace(options, n_threads=n_threads)), expected)


def test_float32_is_close_to_float64() -> None:
    task = random_task("detection", 7, n_features=5, seed=1, n_rows=800)
    double = solve(task, SolverOptions(max_iter=20))
    single = solve(task, SolverOptions(max_iter=20, dtype="float32"))
    assert single.losses[-1] == pytest.approx(double.losses[-1], rel=0.01)


@pytest.mark.parametrize("seed", [0, 1, 78, 105])
def test_float32_where_members_hit_rows_exactly(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # All numbers are small and whole: both precisions take the same steps.
    task, options = task_with_exact_hits(seed)
    expected = solve(task, options)
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv("QMS22_ISA", name)
        found = solve(task, replace(options, dtype="float32"))
        np.testing.assert_array_equal(found.members.A, expected.members.A)
        np.testing.assert_array_equal(found.members.b, expected.members.b)


def test_build_says_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    info = qms22.build_info()
    assert set(info["runs_here"]) <= set(info["instruction_sets"])
    assert info["chosen"] == info["runs_here"][-1]
    qms22.show_build()
    printed = capsys.readouterr().out
    assert info["compiler"] in printed
    assert all(name in printed for name in info["instruction_sets"])


def test_forced_instruction_set_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMS22_ISA", INSTRUCTION_SETS[0])
    assert qms22.build_info()["chosen"] == INSTRUCTION_SETS[0]


def test_unknown_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMS22_ISA", "mmx")
    with pytest.raises(ValueError, match=r"unknown instruction set 'mmx'; this build has "):
        solve(random_task("classes", 2, 2, seed=0), SolverOptions())
