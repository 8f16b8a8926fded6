"""What the backends have in common; the GPU's runs by its arithmetic on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeArray
from rows_on_host import HostFits
from tasks import random_task
from views_on_host import launch_on_host

from qms22 import QMS22, QMS22Ensemble, QMSClassifier
from qms22._cpm.backends import BACKENDS, solve, solve_all
from qms22._cpm.cuda import backend as cuda_backend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState
from qms22._cpm.task import Task, classification_task
from qms22._runtime.arrays import as_host, is_on_gpu
from qms22.estimators.cuda import view_kernels as views

OPTIONS = SolverOptions(n_components=2, max_iter=9)


@pytest.fixture(autouse=True)
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run fits of the GPU on the host; the numbers of fits side by side, as they come."""
    sizes: list[int] = []

    def host_fits(fits: list[Fit], *others: Any) -> HostFits:
        sizes.append(len(fits))
        return HostFits(fits, *others)

    monkeypatch.setattr(cuda_backend, "CudaFits", host_fits)
    monkeypatch.setattr(cuda_backend, "free_bytes", lambda: 10**9)
    return sizes


def some_tasks() -> list[Task]:
    still = classification_task(np.zeros((50, 2)), (np.arange(50) % 2).astype(np.int32), 2)
    return [random_task("detection", 4, 3, seed, n_rows=40 + 9 * seed) for seed in range(4)] + [
        still,
        random_task("detection", 3, 2, 0, n_rows=3_500),
    ]


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_finds_the_same(name: str) -> None:
    tasks = some_tasks()[:5]
    found = solve_all([Fit.of(task, OPTIONS) for task in tasks], replace(OPTIONS, device=name))
    for task, solution in zip(tasks, found, strict=True):
        expected = solve(task, OPTIONS)
        np.testing.assert_array_equal(solution.members.A, expected.members.A)
        np.testing.assert_array_equal(solution.members.b, expected.members.b)
        np.testing.assert_allclose(solution.losses, expected.losses, rtol=1e-9)
        assert solution.n_iter == expected.n_iter
    assert found[4].n_iter < OPTIONS.max_iter  # nothing moves any more


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_listeners_are_called_and_states_continue(name: str) -> None:
    tasks, options = some_tasks(), replace(OPTIONS, device=name)
    expected = solve_all([Fit.of(task, options) for task in tasks], options)
    states: list[list[FitState]] = [[] for _ in tasks]

    def remember(number: int) -> Callable[[FitState, float], None]:
        def on_sweep(state: FitState, seconds: float) -> None:
            assert seconds > 0
            states[number].append(state)

        return on_sweep

    solve_all(
        [Fit.of(task, options, remember(number)) for number, task in enumerate(tasks)], options
    )
    for seen, solution in zip(states, expected, strict=True):
        assert [state.n_iter for state in seen] == list(range(1, solution.n_iter + 1))
        assert seen[-1].losses == solution.losses
        np.testing.assert_array_equal(seen[-1].members.A, solution.members.A)
    # Fits that go on from different sweeps, one of them from its last.
    fits = [
        Fit(task, seen[min(2 * number, len(seen) - 1)])
        for number, (task, seen) in enumerate(zip(tasks, states, strict=True))
    ]
    for found, solution in zip(solve_all(fits, options), expected, strict=True):
        assert found.members.A.tobytes() == solution.members.A.tobytes()
        assert found.members.b.tobytes() == solution.members.b.tobytes()
        assert found.losses == solution.losses


def test_small_fits_share_launches_and_large_ones_do_not(
    batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = [Fit.of(task, OPTIONS) for task in some_tasks()]
    solve_all(fits, replace(OPTIONS, device="cuda"))
    assert batches == [1, 5]
    monkeypatch.setattr(cuda_backend, "free_bytes", lambda: 30_000)
    batches.clear()
    solve_all(fits, replace(OPTIONS, device="cuda"))
    assert batches[0] == 1
    assert sum(batches) == 6
    assert len(batches) > 3


def test_an_exception_of_a_listener_ends_the_fits() -> None:
    def stop(state: FitState, seconds: float) -> None:
        raise KeyboardInterrupt

    for name in ("cpu", "cuda"):
        with pytest.raises(KeyboardInterrupt):
            solve_all(
                [Fit.of(task, OPTIONS, stop) for task in some_tasks()],
                replace(OPTIONS, device=name),
            )


def test_values_out_of_range_are_refused() -> None:
    task = random_task("detection", 3, 2, 0)
    far = replace(task, X=task.X * 1e60)
    for name in ("cpu", "cuda"):
        with pytest.raises(ValueError, match="may overflow float64; scale the features"):
            solve_all(
                [Fit.of(each, OPTIONS) for each in (task, far)], replace(OPTIONS, device=name)
            )


def test_chunks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    n_rows, n_features = shape = (10**7, 10)
    monkeypatch.setattr(cuda_backend, "free_bytes", lambda: 10**11)
    for name, is_there, n_chunks in (("cpu", False, 763), ("cuda", False, 12), ("cuda", True, 1)):
        chunks = BACKENDS[name].row_chunks(shape, is_there)
        assert len(chunks) == n_chunks
        assert [chunk.start for chunk in chunks[1:]] == [chunk.stop for chunk in chunks[:-1]]
        assert (chunks[0].start, chunks[-1].stop) == (0, n_rows)
    # At most half of the memory that is left.
    monkeypatch.setattr(cuda_backend, "free_bytes", lambda: 10**9)
    largest = max(chunk.stop - chunk.start for chunk in BACKENDS["cuda"].row_chunks(shape, True))
    assert 3 * 8 * n_features * largest < 5e8


class FakeMembers:
    """Member functions for rows of the fake CuPy; counts how often they are loaded."""

    n_loaded = 0

    def __init__(self, members: MemberFunctions) -> None:
        FakeMembers.n_loaded += 1
        self._members = members

    def values(self, X: FakeArray) -> FakeArray:
        assert is_on_gpu(X)
        return self._members.values(X.get()).view(FakeArray)

    def outlier_scores(self, X: FakeArray) -> FakeArray:
        assert is_on_gpu(X)
        return self._members.outlier_scores(X.get()).view(FakeArray)


@pytest.fixture
def fake_gpu(fake_cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(cuda_backend, "CudaMembers", FakeMembers)
    monkeypatch.setattr(views, "_launch", launch_on_host)
    return fake_cupy


ESTIMATORS = {
    "QMS22": QMS22(n_components=2, n_restarts=2, max_iter=3, contamination=3, random_state=0),
    "QMS22Ensemble": QMS22Ensemble(n_splits=3, max_iter=3, contamination=3, random_state=0),
    "QMSClassifier": QMSClassifier(n_components=2, max_iter=3),
}


def assert_alike(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    """Compare results; logarithms, which QMS22 takes none of, are a GPU's own."""
    off = 0.0 if name == "QMS22" else 1e-13
    np.testing.assert_allclose(found, expected, rtol=off, atol=off)


@pytest.mark.parametrize("name", ["QMS22", "QMS22Ensemble"])
@pytest.mark.parametrize("where", ["host", "gpu"])
def test_marks_on_a_gpu(name: str, where: str, fake_gpu: Any) -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(90, 3)), rng.normal(size=(50, 3))
    outliers, marked_normal = rng.normal(size=(2, 6, 3)) + 2.0

    def fit(device: str, place: Callable[[np.ndarray], Any]) -> Any:
        estimator = type(ESTIMATORS[name])(**{**ESTIMATORS[name].get_params(), "device": device})
        marks = {"outliers": place(outliers), "marked_normal": place(marked_normal)}
        return estimator.fit(place(normal), unlabeled=place(batch), **marks)

    place = fake_gpu.asarray if where == "gpu" else np.asarray
    on_host, found = fit("cpu", np.asarray), fit("cuda", place)
    assert_alike(name, as_host(found.unlabeled_scores_), on_host.unlabeled_scores_)
    if name == "QMS22Ensemble":
        np.testing.assert_array_equal(found.p_values(), on_host.p_values())


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("where", ["host", "gpu"])
def test_estimators_on_a_gpu(
    name: str, where: str, fake_gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.RandomState(2)  # in which members have a weight
    normal, batch = rng.normal(size=(90, 3)), rng.normal(size=(5_000, 3))
    labels = (normal[:, 0] > 0).astype(int)
    place = fake_gpu.asarray if where == "gpu" else np.asarray

    def fit(estimator: Any, place: Callable[[np.ndarray], Any]) -> Any:
        if name == "QMSClassifier":
            return estimator.fit(place(normal), labels)
        return estimator.fit(place(normal), unlabeled=place(batch[:50]))

    def score(estimator: Any, rows: Any) -> Any:
        is_classifier = name == "QMSClassifier"
        return (estimator.decision_function if is_classifier else estimator.score_samples)(rows)

    template = ESTIMATORS[name]
    on_host = fit(type(template)(**template.get_params()), np.asarray)
    expected = score(on_host, batch)
    found = fit(type(template)(**{**template.get_params(), "device": "cuda"}), place)
    monkeypatch.setattr(cuda_backend, "_VALUES_FROM_HOST", 3 * 1_100)
    FakeMembers.n_loaded = 0
    scores = score(found, place(batch))
    # Once per call, for any number of chunks.
    assert FakeMembers.n_loaded == {"QMS22": 2, "QMS22Ensemble": 3, "QMSClassifier": 1}[name]
    assert is_on_gpu(scores) == (where == "gpu")
    assert_alike(name, as_host(scores), expected)
    if name != "QMSClassifier":
        drop = found.explain(place(batch[:3])).drop
        assert_alike(name, drop, on_host.explain(batch[:3]).drop)
    if where == "gpu":
        with pytest.raises(ValueError, match="these rows are CuPy's, on a GPU, and device='cpu'"):
            score(found.set_params(device="cpu"), place(batch))
