"""Scaling and scores on a GPU have the bits of those on the CPU."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from gpus import on_gpu, real_task

from qms22 import QMS22, QMS22Ensemble, QMSClassifier
from qms22._cpm.backends import BACKENDS, solve
from qms22._cpm.cuda import backend as cuda_backend
from qms22._cpm.cuda.scores import CudaMembers
from qms22._cpm.members import MemberFunctions
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.solver_options import SolverOptions
from qms22._runtime.arrays import as_host, is_on_gpu
from qms22._runtime.devices import need_cupy


@pytest.mark.parametrize("scaling", ["maxabs", "standard", None])
def test_scaling_stays_where_the_rows_are(fake_cupy: Any, scaling: str | None) -> None:
    rows = np.random.RandomState(0).normal(size=(50, 3)) * [1.0, 1e200, 1e-200]
    there = fake_cupy.asarray(rows)
    found, expected = FeatureScaler.learn(there, scaling), FeatureScaler.learn(rows, scaling)
    for name in ("peak", "center", "factor"):
        assert type(getattr(found, name)) is np.ndarray
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    scaled = found.transform(there)
    assert is_on_gpu(scaled)
    np.testing.assert_array_equal(as_host(scaled), expected.transform(rows))


def test_coefficients_are_uploaded_row_by_row(fake_cupy: Any) -> None:
    A = np.random.RandomState(0).normal(size=(1, 4, 3))
    members = MemberFunctions(np.asfortranarray(A[0])[None], np.zeros((1, 4)), 1e-9)
    assert CudaMembers(members)._coefficients.flags.c_contiguous


@on_gpu
@pytest.mark.parametrize("order", ["C", "F"])
def test_gpu_scores_to_the_same_bits(order: Literal["C", "F"]) -> None:
    task = real_task(3_000, 7)
    members = solve(task, SolverOptions(n_components=11, max_iter=4)).members
    members = replace(members, A=np.asarray(members.A, order=order))
    there = need_cupy().asarray(task.X, order=order)
    loaded = BACKENDS["cuda"].load(members)
    for name in ("values", "outlier_scores"):
        for rows in (slice(None), slice(0, 1), slice(5, None, 3)):
            found = getattr(loaded, name)(there[rows])
            assert is_on_gpu(found)
            assert found.get().tobytes() == getattr(members, name)(task.X[rows]).tobytes()


@on_gpu
@pytest.mark.parametrize("n_free", [2 * 10**6, 10**12])
def test_gpu_scores_in_any_chunks(n_free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(900, 5)), rng.normal(size=(20_000, 5))
    expected = QMS22(max_iter=5, random_state=0, contamination=9).fit(normal, unlabeled=batch)
    found = QMS22(max_iter=5, random_state=0, contamination=9, device="cuda")
    monkeypatch.setattr(cuda_backend, "_VALUES_FROM_HOST", 3 * 2**13)
    found.fit(normal, unlabeled=batch)
    monkeypatch.setattr(cuda_backend, "free_bytes", lambda: n_free)
    for rows in (batch, need_cupy().asarray(batch)):
        np.testing.assert_array_equal(
            as_host(found.score_samples(rows)), expected.score_samples(batch)
        )


@on_gpu
@pytest.mark.parametrize("scaling", ["maxabs", "standard", None])
@pytest.mark.parametrize("order", ["C", "F"])
def test_gpu_scales_to_the_same_bits(scaling: str | None, order: Literal["C", "F"]) -> None:
    rows = np.random.RandomState(0).normal(3, 1, size=(70_000, 4)) * [1.0, 1e9, 1e-9, 0.0]
    there = need_cupy().asarray(rows, order=order)
    found, expected = FeatureScaler.learn(there, scaling), FeatureScaler.learn(rows, scaling)
    np.testing.assert_array_equal(found.center, expected.center)
    np.testing.assert_array_equal(found.factor, expected.factor)
    np.testing.assert_array_equal(as_host(found.transform(there)), expected.transform(rows))


@on_gpu
@pytest.mark.parametrize("n_restarts", [1, 3])
def test_gpu_detector(n_restarts: int) -> None:
    cupy = need_cupy()
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(900, 5)), rng.normal(size=(400, 5))
    batch[:10] += 5

    def detector(device: str) -> QMS22:
        return QMS22(
            max_iter=10, n_restarts=n_restarts, contamination=10, random_state=0, device=device
        )

    expected = detector("cpu").fit(normal, unlabeled=batch)
    from_host = detector("cuda").fit(normal, unlabeled=batch)
    there = detector("auto").fit(cupy.asarray(normal), unlabeled=cupy.asarray(batch))
    assert type(from_host.unlabeled_scores_) is np.ndarray
    assert is_on_gpu(there.unlabeled_scores_)
    for found in (from_host, there):
        np.testing.assert_array_equal(found.A_, expected.A_)
        np.testing.assert_array_equal(as_host(found.unlabeled_scores_), expected.unlabeled_scores_)
        np.testing.assert_array_equal(found.top_k(10), expected.top_k(10))
        assert found.offset_ == expected.offset_
        np.testing.assert_array_equal(found.typical_, expected.typical_)
        np.testing.assert_array_equal(found.score_samples(batch), expected.score_samples(batch))
        scores = found.score_samples(cupy.asarray(batch))
        assert is_on_gpu(scores)
        np.testing.assert_array_equal(as_host(scores), expected.score_samples(batch))
        np.testing.assert_array_equal(as_host(found.predict(batch)), expected.predict(batch))


@on_gpu
def test_gpu_ensemble() -> None:
    cupy = need_cupy()
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(900, 5)), rng.normal(size=(400, 5))
    batch[:30] += 5

    def detector(device: str) -> QMS22Ensemble:
        # In float32 fits on a GPU can differ from those on the CPU.
        return QMS22Ensemble(max_iter=5, dtype="float64", random_state=0, device=device)

    expected = detector("cpu").fit(normal, unlabeled=batch)
    from_host = detector("cuda").fit(normal, unlabeled=batch)
    there = detector("auto").fit(cupy.asarray(normal), unlabeled=cupy.asarray(batch))
    assert is_on_gpu(there.unlabeled_scores_)
    # Logarithms differ in their last bits.
    close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)
    for found in (from_host, there):
        assert found.weights_.keys() == expected.weights_.keys()
        close(list(found.weights_.values()), list(expected.weights_.values()))
        close(as_host(found.unlabeled_scores_), expected.unlabeled_scores_)
        close(found.score_samples(batch), expected.score_samples(batch))
        assert is_on_gpu(found.score_samples(cupy.asarray(batch)))
        np.testing.assert_array_equal(found.p_values(), expected.p_values())
        np.testing.assert_array_equal(found.flag(0.1), expected.flag(0.1))
        np.testing.assert_array_equal(found.predict(batch), expected.predict(batch))


@on_gpu
def test_gpu_classifier() -> None:
    cupy = need_cupy()
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(600, 4)), np.arange(600) % 3
    X += y[:, None]
    weights = rng.uniform(0.5, 1, size=600)
    expected = QMSClassifier(max_iter=8).fit(X, y, sample_weight=weights)
    for rows in (X, cupy.asarray(X)):
        found = QMSClassifier(max_iter=8, device="cuda").fit(rows, y, sample_weight=weights)
        np.testing.assert_array_equal(found.A_, expected.A_)
        np.testing.assert_array_equal(found.predict(rows), expected.predict(X))
        proba = found.predict_proba(rows)
        assert is_on_gpu(proba) == is_on_gpu(rows)
        np.testing.assert_allclose(as_host(proba), expected.predict_proba(X), rtol=1e-14)
