"""Views on a GPU have the bits of those on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpus import on_gpu
from numpy.typing import NDArray
from views_on_host import launch_on_host, library

from qms22 import _core
from qms22._runtime.arrays import as_host, is_on_gpu
from qms22._runtime.devices import need_cupy
from qms22.estimators.cuda import view_kernels as views
from qms22.estimators.cuda.view_kernels import (
    comparison_record,
    nearest_products,
    pack_nodes,
    pack_references,
    rows_record,
    trees_record,
)
from qms22.estimators.forest import BinnedRows, find_bins, fit_forest
from qms22.estimators.held_out import HeldOutScores, LearnedRows, hash_rows, log_mean
from qms22.estimators.nearest import mean_log_distances

NEIGHBORS = 16


@pytest.fixture
def gpu_on_host(fake_cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the kernels of views on the host, for arrays of the fake CuPy."""
    monkeypatch.setattr(views, "_launch", launch_on_host)
    return fake_cupy


def naive_products(
    rows: NDArray[Any], references: NDArray[Any], skip: NDArray[np.int64] | None, floor: float
) -> NDArray[np.float64]:
    """The product of (d_i + floor)^(2^-i), one row and one column after the other."""
    products = []
    for number, row in enumerate(rows):
        squared = np.zeros(len(references), dtype=rows.dtype)
        for column, value in enumerate(row):
            squared += (value - references[:, column]) ** 2
        if skip is not None and skip[number] >= 0:
            squared = np.delete(squared, skip[number])
        product = rows.dtype.type(1)
        for distance in np.sqrt(np.sort(squared)[:NEIGHBORS])[::-1]:
            product = np.sqrt(product * (distance + rows.dtype.type(floor)))
        products.append(product)
    return np.array(products, dtype=np.float64)


def test_records_are_laid_out_as_the_structs() -> None:
    for which, dtype in enumerate(("float64", "float32")):
        rows = np.zeros((3, 2), dtype=dtype)
        record = comparison_record(rows, pack_references(rows), 3, None, 0.5)
        assert library().size_of(which) == record.itemsize
    nodes = pack_nodes(*(np.zeros(4, dtype=kind) for kind in (np.int32, np.uint8, np.int32)))
    record = trees_record(nodes, np.zeros(4, dtype=np.float32), np.array([0, 4]))
    assert library().size_of(2) == record.itemsize
    assert library().size_of(3) == nodes.itemsize * nodes.shape[1]
    assert library().size_of(4) == rows_record(np.zeros((3, 2))).itemsize


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_references", [1, 2, 7, 8, 15, 16, 17, 100])
@pytest.mark.parametrize("n_features", [1, 3, 300, 1_100])
def test_host_distances(gpu_on_host: Any, dtype: str, n_references: int, n_features: int) -> None:
    rng = np.random.RandomState(n_references)
    rows = rng.normal(0, 50, size=(40, n_features)).astype(dtype)
    references = rng.normal(0, 50, size=(n_references, n_features)).astype(dtype)
    references[: n_references // 3] = references[-1]  # ties
    rows[: min(5, n_references)] = references[:5]
    skips: list[Any] = [None]
    if n_references > 1:
        skips.append(np.arange(40) % (n_references + 1) - 1)
    for skip in skips:
        for order in ("C", "F"):
            there = gpu_on_host.asarray(np.asarray(rows, order=order))
            found = nearest_products(there, references, skip=skip, floor=1e-3)
            assert is_on_gpu(found)
            expected = naive_products(rows, references, skip, 1e-3)
            assert as_host(found).tobytes() == expected.tobytes()
            score = mean_log_distances(rows, references, skip=skip)
            there_too = as_host(mean_log_distances(there, references, skip=skip))
            np.testing.assert_allclose(there_too, score, rtol=1e-14)  # logarithms of its own


def rows_and_labels(n: int, p: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(n, p))
    rows[:, 0] = np.rint(rows[:, 0])
    return rows, (np.arange(n) < n // 3).astype(float)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_features", [1, 5, 300])
def test_host_forest(gpu_on_host: Any, dtype: str, n_features: int) -> None:
    rows, labels = rows_and_labels(600, n_features)
    forest = fit_forest(BinnedRows.of(rows), labels, n_trees=20, seed=3)
    rows = (2 * rows[:77]).astype(dtype)
    expected = forest.score_bins(find_bins(rows, forest.edges))
    for order in ("C", "F"):
        there = gpu_on_host.asarray(np.asarray(rows, order=order))
        found = forest.score_bins(find_bins(there, forest.edges))
        assert is_on_gpu(found)
        assert as_host(found).tobytes() == expected.tobytes()


@pytest.mark.parametrize("n_features", [1, 5])
def test_host_learned_rows(gpu_on_host: Any, n_features: int) -> None:
    rng = np.random.RandomState(0)
    rows, scores = np.rint(3 * rng.normal(size=(90, n_features))), rng.uniform(size=90)
    rows[:20] *= -1.0  # among them are negative zeros
    learned = LearnedRows.of(hash_rows(rows[:40]), scores[:40] + 1)
    for order in ("C", "F"):
        there = gpu_on_host.asarray(np.asarray(rows, order=order))
        np.testing.assert_array_equal(as_host(hash_rows(there)), hash_rows(rows))
        replaced = learned.replace(gpu_on_host.asarray(scores), hash_rows(there))
        assert is_on_gpu(replaced)
        np.testing.assert_array_equal(as_host(replaced), learned.replace(scores, hash_rows(rows)))


def test_p_values_stay_where_the_scores_are(gpu_on_host: Any) -> None:
    rng = np.random.RandomState(0)
    scores, held_out = (np.rint(10 * rng.normal(size=n)) for n in (90, 40))
    ruler = HeldOutScores.of(gpu_on_host.asarray(held_out))
    assert type(ruler.ascending) is np.ndarray
    there = ruler.log_p_values(gpu_on_host.asarray(scores))
    assert is_on_gpu(there)
    np.testing.assert_allclose(as_host(there), ruler.log_p_values(scores), rtol=1e-14)


def test_means_and_sums_on_a_gpu(gpu_on_host: Any) -> None:
    rng = np.random.RandomState(0)
    logarithms = [-rng.exponential(9, size=50) for _ in range(3)]
    logarithms[1][:9] = logarithms[0][:9]
    there = log_mean([gpu_on_host.asarray(terms) for terms in logarithms])
    assert is_on_gpu(there)
    np.testing.assert_allclose(as_host(there), log_mean(logarithms), rtol=1e-14)
    total = gpu_on_host.asarray(logarithms[0].copy())
    views.add_weighted(total, 0.3, there)
    np.testing.assert_array_equal(as_host(total), logarithms[0] + 0.3 * as_host(there))


@on_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_features", [1, 10, 200, 1_200])
@pytest.mark.parametrize("n_references", [1, 13, 16, 600])
def test_gpu_distances(dtype: str, n_features: int, n_references: int) -> None:
    cupy, rng = need_cupy(), np.random.RandomState(0)
    rows = rng.normal(0, 50, size=(1_001, n_features)).astype(dtype)
    references = rng.normal(0, 50, size=(n_references, n_features)).astype(dtype)
    references[: n_references // 3] = references[-1]
    rows[: min(99, n_references)] = references[:99]
    skips = [None] if n_references == 1 else [None, np.arange(1_001) % (n_references + 1) - 1]
    for skip in skips:
        expected = _core.nearest_products(rows, references, skip=skip, floor=1e-3)
        for order in ("C", "F"):
            there = cupy.asarray(rows, order=order)
            found = nearest_products(there, references, skip=skip, floor=1e-3)
            assert as_host(found).tobytes() == expected.tobytes()
        np.testing.assert_allclose(
            as_host(mean_log_distances(there, references, skip=skip)),
            mean_log_distances(rows, references, skip=skip),
            rtol=1e-13,
            atol=1e-13,
        )


@on_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_features", [1, 10, 300])
def test_gpu_forest(dtype: str, n_features: int) -> None:
    rows, labels = rows_and_labels(3_000, n_features)
    forest = fit_forest(BinnedRows.of(rows), labels, n_trees=50, seed=3)
    rows = (2 * rows[:777]).astype(dtype)
    expected = forest.score_bins(find_bins(rows, forest.edges))
    for order in ("C", "F"):
        there = need_cupy().asarray(rows, order=order)
        found = forest.score_bins(find_bins(there, forest.edges))
        assert as_host(found).tobytes() == expected.tobytes()


@on_gpu
@pytest.mark.parametrize("n_features", [1, 12])
def test_gpu_learned_rows(n_features: int) -> None:
    cupy, rng = need_cupy(), np.random.RandomState(0)
    rows, scores = np.rint(9 * rng.normal(size=(900, n_features))), rng.uniform(size=900)
    learned = LearnedRows.of(hash_rows(rows[:300]), scores[:300] + 1)
    for order in ("C", "F"):
        there = cupy.asarray(rows, order=order)
        np.testing.assert_array_equal(as_host(hash_rows(there)), hash_rows(rows))
        replaced = learned.replace(cupy.asarray(scores), hash_rows(there))
        np.testing.assert_array_equal(as_host(replaced), learned.replace(scores, hash_rows(rows)))


@on_gpu
def test_gpu_p_values() -> None:
    cupy, rng = need_cupy(), np.random.RandomState(0)
    scores, held_out = (np.rint(100 * rng.normal(size=n)) for n in (9_000, 4_000))
    ruler = HeldOutScores.of(held_out)
    np.testing.assert_allclose(
        as_host(ruler.log_p_values(cupy.asarray(scores))), ruler.log_p_values(scores), rtol=1e-13
    )
