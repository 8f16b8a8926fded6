"""Fits on a GPU decide as those on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gpus import on_gpu, real_task
from keel_files import real_keel
from tasks import KINDS, random_task

from qms22 import QMS22
from qms22._cpm.backends import solve, solve_all
from qms22._cpm.cuda import backend as cuda_backend
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState
from qms22._cpm.task import Task, classification_task, detection_task
from qms22._runtime import devices
from qms22_bench.datasets import list_keel, load_keel


def solve_there(task: Task, options: SolverOptions) -> FitState:
    return solve(task, replace(options, device="cuda"))


def assert_same(found: FitState, expected: FitState) -> None:
    np.testing.assert_array_equal(found.members.A, expected.members.A)
    np.testing.assert_array_equal(found.members.b, expected.members.b)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)


@pytest.fixture(params=["in shared memory", "in device memory"])
def small_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU as it is, and with too little shared memory for the rows."""
    if request.param == "in device memory":
        real = devices.describe_gpu(0)
        monkeypatch.setattr(
            cuda_backend, "describe_gpu", lambda number: replace(real, shared_bytes=0)
        )


@on_gpu
@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize("n_rows", [1, 2, 250, 3_001, 40_003, 150_001])
def test_gpu_decides_as_the_cpu(n_rows: int) -> None:
    # One block, a cluster, the grid; one, two and more rows per thread.
    if n_rows < 10:
        task = classification_task(np.full((n_rows, 1), 9.0), np.zeros(n_rows, np.int32), 2)
    else:
        task = real_task(n_rows)
    options = SolverOptions(n_components=3, max_iter=5)
    assert_same(solve_there(task, options), solve(task, options))


@on_gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_members", [2, 5, 10])
def test_gpu_every_kind(kind: str, n_members: int) -> None:
    for n_features, n_components in ((1, 1), (2, 5), (4, 7)):
        task = random_task(kind, n_members, n_features, seed=1, n_rows=777)
        options = SolverOptions(n_components=n_components, alpha=0.8, max_iter=6, init_b=2000.0)
        assert_same(solve_there(task, options), solve(task, options))


@on_gpu
@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_rows", [300, 4_000, 70_000])
def test_gpu_gives_the_same_bits_again(n_rows: int, dtype: str) -> None:
    task, options = real_task(n_rows), SolverOptions(max_iter=8, dtype=dtype)
    first = solve_there(task, options)
    for _ in range(3):
        again = solve_there(task, options)
        assert again.members.A.tobytes() == first.members.A.tobytes()
        assert again.members.b.tobytes() == first.members.b.tobytes()
        assert again.losses == first.losses


@on_gpu
def test_gpu_float32_is_close_to_float64() -> None:
    task = real_task(5_000)
    single = solve_there(task, SolverOptions(max_iter=20, dtype="float32"))
    double = solve(task, SolverOptions(max_iter=20))
    assert single.losses[-1] == pytest.approx(double.losses[-1], rel=0.01)


@on_gpu
@pytest.mark.parametrize("n_small", [3, 60])
def test_gpu_many_fits_in_one_launch(n_small: int) -> None:
    # With few a cluster each, with many a block; large ones come after each other.
    tasks = [real_task(150 + 29 * seed, 1 + seed % 4, seed) for seed in range(n_small)]
    tasks += [real_task(9_000, seed=7), replace(tasks[0], group=tasks[0].group[::-1].copy())]
    options = SolverOptions(n_components=4, max_iter=12)
    there = replace(options, device="cuda")
    together = solve_all([Fit.of(task, there) for task in tasks], there)
    states: list[list[FitState]] = [[] for _ in tasks]

    def watched(number: int) -> Fit:
        def on_sweep(state: FitState, seconds: float) -> None:
            states[number].append(state)

        return Fit.of(tasks[number], there, on_sweep)

    by_sweeps = solve_all([watched(number) for number in range(len(tasks))], there)
    for task, found, again, seen in zip(tasks, together, by_sweeps, states, strict=True):
        assert_same(found, solve(task, options))
        assert found.members.A.tobytes() == again.members.A.tobytes()
        assert found.losses == again.losses
        assert len(seen) == found.n_iter
        np.testing.assert_array_equal(seen[-1].members.A, found.members.A)
    # Fits that continue from different sweeps come to the same end.
    halfway = [
        Fit(task, seen[n % 5]) for n, (task, seen) in enumerate(zip(tasks, states, strict=True))
    ]
    for found, expected in zip(solve_all(halfway, there), together, strict=True):
        assert found.members.A.tobytes() == expected.members.A.tobytes()
        assert found.n_iter == expected.n_iter


@on_gpu
def test_gpu_stops_where_nothing_moves() -> None:
    task = classification_task(np.zeros((50, 2)), (np.arange(50) % 2).astype(np.int32), 2)
    expected = solve(task, SolverOptions())
    assert expected.n_iter < 60
    assert_same(solve_there(task, SolverOptions()), expected)


def keel_tasks() -> Iterator[tuple[str, Task]]:
    for name in list_keel():
        fold = next(load_keel(name, real_keel()).folds())
        scaler = FeatureScaler.learn(fold.normal, "maxabs")
        rows = scaler.transform(np.concatenate([fold.unlabeled, fold.normal]))
        yield name, detection_task(rows, len(fold.unlabeled), 7, np.random.RandomState(0))


@on_gpu
def test_gpu_on_all_keel_sets() -> None:
    names, tasks = zip(*keel_tasks(), strict=True)
    options = SolverOptions(device="cuda")
    solutions = solve_all([Fit.of(task, options) for task in tasks], options)
    for name, task, found in zip(names, tasks, solutions, strict=True):
        expected = solve(task, SolverOptions())
        assert np.array_equal(found.members.A, expected.members.A), name
        assert np.array_equal(found.members.b, expected.members.b), name


@on_gpu
def test_gpu_fit_goes_on_from_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(900, 5)), rng.normal(size=(400, 5))

    def detector() -> QMS22:
        return QMS22(
            max_iter=12,
            n_restarts=2,
            random_state=0,
            device="cuda",
            checkpoint=tmp_path / "fit.npz",
            log=tmp_path / "fit.jsonl",
        )

    whole = QMS22(max_iter=12, n_restarts=2, random_state=0, device="cuda")
    whole.fit(normal, unlabeled=batch)
    scorer = QMS22._scorer

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(QMS22, "_scorer", killed)
    with pytest.raises(KeyboardInterrupt):
        detector().fit(normal, unlabeled=batch)
    assert (tmp_path / "fit.npz").exists()
    monkeypatch.setattr(QMS22, "_scorer", scorer)
    resumed = detector().fit(normal, unlabeled=batch)
    for mine, theirs in zip(resumed.restarts_, whole.restarts_, strict=True):
        np.testing.assert_array_equal(mine.A, theirs.A)
        np.testing.assert_array_equal(mine.b, theirs.b)
    assert len((tmp_path / "fit.jsonl").read_text().splitlines()) >= 2 * 12


@on_gpu
def test_gpu_too_small_for_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "free_bytes", lambda: 10**5)
    with pytest.raises(MemoryError, match=r"a fit of 9,000 rows needs .* about [0-9,]+ rows would"):
        solve_there(real_task(9_000), SolverOptions())
