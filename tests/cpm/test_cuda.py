"""The GPU backend: its arithmetic on the host, its Python side, and the real thing on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from keel_files import real_keel
from rows_on_host import library, sweep_on_host
from tasks import KINDS, random_task, tasks_and_options

from qms22 import QMS22, QMS22Ensemble, QMSClassifier
from qms22._cpm.cuda import kernel as _kernel
from qms22._cpm.cuda import memory as _memory
from qms22._cpm.cuda import rows as _rows
from qms22._cpm.cuda import solver as _solver
from qms22._cpm.cuda.kernel import choose_shape, kernel_source
from qms22._cpm.cuda.memory import bytes_of_fits, columns_of, record_type
from qms22._cpm.cuda.rows import score_by_chunks, to_device
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.sweeps import (
    Solution,
    SolverOptions,
    cpm_rules,
    solve,
    solve_together,
    starting_point,
)
from qms22._cpm.task import Task, classification_task, detection_task
from qms22._runtime import devices as _device
from qms22._runtime.arrays import array_module, as_host, is_on_gpu, to_device_of
from qms22._runtime.devices import Gpu, need_cupy, require_memory, resolve_device
from qms22._runtime.validation import check_rows
from qms22.datasets import list_keel, load_keel

H200 = Gpu(n_multiprocessors=132, shared_bytes=232_448, has_clusters=True)


def assert_as_native(
    task: Task, options: SolverOptions, depth: int, expected: Solution | None = None
) -> None:
    expected = expected or solve(task, options)
    A, b, loss = sweep_on_host(task, options, depth)
    np.testing.assert_array_equal(A, expected.members.A)
    np.testing.assert_array_equal(b, expected.members.b)
    np.testing.assert_allclose(loss, expected.loss[1:], rtol=1e-9, atol=1e-12 * expected.loss[0])


# The arithmetic, compiled for the host ------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_record_is_laid_out_as_the_struct(precision: str) -> None:
    assert library().size_of_fit(precision == "float32") == record_type(precision).itemsize


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_members", [2, 3, 7])
def test_host_every_kind(kind: str, n_members: int, depth: int) -> None:
    task = random_task(kind, n_members, n_features=3, seed=n_members, n_rows=61)
    assert_as_native(task, SolverOptions(n_components=3, max_iter=4), depth)


@pytest.mark.parametrize("n_components", [1, 2, 5])
@pytest.mark.parametrize("n_features", [1, 2, 3, 8])
def test_host_every_place_of_a_turn(n_components: int, n_features: int) -> None:
    # Two entries a pass: with an even number of features they meet two components now and then.
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


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tasks_and_options())
def test_host_any_task(drawn: tuple[Task, SolverOptions]) -> None:
    task, options = drawn
    assert_as_native(task, options, depth=2)


def test_host_real_valued_rows_in_both_precisions() -> None:
    task = random_task("detection", 7, n_features=6, seed=3, n_rows=1_001)
    task = replace(task, X=np.random.RandomState(0).normal(0, 90, size=task.X.shape))
    assert_as_native(task, SolverOptions(max_iter=6), depth=2)
    single = SolverOptions(max_iter=6, dtype="float32")
    loss = sweep_on_host(task, single, depth=2)[2]
    assert loss[-1] == pytest.approx(solve(task, single).loss[-1], rel=0.01)


# The Python side, without a GPU -------------------------------------------------------------------


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(_device, "import_module", import_module)


@pytest.mark.usefixtures("no_cupy")
def test_without_cupy() -> None:
    with pytest.raises(
        ImportError, match=r"needs CuPy, .*\(No module named 'cupy'\); run pip install "
    ):
        resolve_device("cuda")
    assert resolve_device("auto") == "cpu"
    assert resolve_device("cpu") == "cpu"
    rows = np.arange(40.0).reshape(20, 2)
    with pytest.raises(ImportError, match="needs CuPy"):
        QMS22(device="cuda").fit(rows, unlabeled=rows)
    expected = QMS22(n_components=2, max_iter=2, random_state=0).fit(rows, unlabeled=rows)
    fallen_back = QMS22(n_components=2, max_iter=2, random_state=0, device="auto")
    fallen_back.fit(rows, unlabeled=rows)
    np.testing.assert_array_equal(fallen_back.A_, expected.A_)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDARuntimeError(Exception):
        pass

    def count() -> int:
        raise CUDARuntimeError("cudaErrorNoDevice")

    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(_device, "import_module", lambda name: cupy)
    with pytest.raises(RuntimeError, match=r"CUDA finds none \(cudaErrorNoDevice\); take device="):
        resolve_device("cuda")
    assert resolve_device("auto") == "cpu"
    runtime.getDeviceCount = lambda: 0
    with pytest.raises(RuntimeError, match="finds none"):
        resolve_device("cuda")


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device, "free_bytes", lambda: 10**9)
    require_memory(10**9, 1_000, "a fit")
    with pytest.raises(MemoryError, match=r"of 1,000,000 rows needs 4 GB on the GPU and 1 GB are "):
        require_memory(4 * 10**9, 1_000_000, "a fit")
    with pytest.raises(MemoryError, match="about 250,000 rows would fit: give fewer rows"):
        require_memory(4 * 10**9, 1_000_000, "a fit")


def test_memory_is_counted() -> None:
    task = random_task("weighted classes", 3, n_features=4, seed=0, n_rows=1_002)
    columns = columns_of(task.X, "float32", np)
    arrays = 1_004 * ((4 + 1) + 2 + 3 + 4 + 1) * 4 + 1_004 * 4
    assert columns.shape == (5, 1_004)
    assert bytes_of_fits([(task, 2)], "float32") == arrays + task.X.nbytes
    # Fits of the same rows share them.
    both = bytes_of_fits([(task, 2), (task, 2)], "float32")
    assert both == 2 * arrays - columns.nbytes + task.X.nbytes


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_rows", [1, 7, 300, 2_000, 5_000, 50_000, 10**6, 10**7, 10**9])
def test_shapes_hold_all_rows(n_rows: int, precision: str) -> None:
    for gpu in (H200, Gpu(20, 48 * 1024, has_clusters=False)):
        for n_fits in (1, 100):
            shape = choose_shape(n_rows, precision, gpu, n_fits)
            assert shape.n_threads % 32 == 0
            assert shape.n_threads <= _kernel.MOST_THREADS[precision]
            assert shape.rows_per_load <= _memory.rows_per_pack(precision)
            assert shape.shared_bytes < gpu.shared_bytes
            itemsize = np.dtype(precision).itemsize
            rows_of_block = shape.shared_bytes / (5 * itemsize)
            assert not shape.shared_bytes or rows_of_block * shape.n_blocks >= n_rows
            assert gpu.has_clusters or not shape.team.startswith("Cluster")
            source = kernel_source(shape.team, precision, shape.rows_per_load, True, 256)
            assert shape.team in source
            assert "#include" not in source


def test_shapes_grow_with_the_rows() -> None:
    teams = [choose_shape(n, "float32", H200).team for n in (200, 4_000, 10**6)]
    assert teams == ["Alone", "Cluster<8>", "Grid"]
    assert choose_shape(10**6, "float32", H200).shared_bytes > 0
    assert choose_shape(10**7, "float32", H200).shared_bytes == 0
    # Where there are more fits than clusters each has a block.
    assert choose_shape(4_000, "float32", H200, n_fits=100).team == "Alone"


def test_reference_is_for_the_cpu() -> None:
    with pytest.raises(ValueError, match="solver='reference' runs on the CPU"):
        SolverOptions(device="cuda", solver="reference")


class FakeArray(np.ndarray):
    """A NumPy array that passes for CuPy's: it will not be mixed with others."""

    def get(self) -> np.ndarray:
        return np.array(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        arrays = [array for array in inputs if isinstance(array, np.ndarray) and array.ndim]
        if not all(isinstance(array, FakeArray) for array in arrays):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        plain = [np.asarray(array) for array in inputs]
        out = kwargs.pop("out", (None,))[0]
        result = getattr(ufunc, method)(*plain, **kwargs)
        if out is None:
            return np.asarray(result).view(FakeArray) if np.ndim(result) else result
        np.asarray(out)[...] = result
        return out


@pytest.fixture
def fake_cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    def asarray(array: Any) -> FakeArray:
        return np.array(array).view(FakeArray)

    fake = SimpleNamespace(ndarray=FakeArray, asarray=asarray, divide=np.divide, clip=np.clip)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


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


def test_rows_of_the_gpu_are_checked(fake_cupy: Any) -> None:
    detector, rows = QMS22(), np.arange(12.0).reshape(6, 2)
    there = fake_cupy.asarray(rows)
    assert is_on_gpu(check_rows(detector, there, reset=True))
    assert detector.n_features_in_ == 2
    assert array_module(there) is fake_cupy
    assert is_on_gpu(to_device_of(rows, there))
    assert to_device_of(there, rows) is not there
    with pytest.raises(ValueError, match="unlabeled has 1 features, but QMS22 is expecting 2 feat"):
        check_rows(detector, fake_cupy.asarray(rows[:, :1]), name="unlabeled")
    with pytest.raises(ValueError, match="X has 1 dimension where 2 are expected"):
        check_rows(detector, fake_cupy.asarray(rows[0]))
    with pytest.raises(ValueError, match=r"X has shape \(0, 2\); give at least one row"):
        check_rows(detector, fake_cupy.asarray(rows[:0]))
    with pytest.raises(ValueError, match="X has dtype complex128; give real numbers"):
        check_rows(detector, fake_cupy.asarray(rows + 1j))
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 of X has 1 NaN .*first at row 3"):
        check_rows(detector, fake_cupy.asarray(rows))
    with pytest.raises(ValueError, match=r"CuPy's, on a GPU, and device='cpu'; take device='cuda'"):
        to_device(there, "cpu")


# On a GPU -----------------------------------------------------------------------------------------


def _why_no_gpu() -> str:
    try:
        need_cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


WHY_NO_GPU = _why_no_gpu()
on_gpu = pytest.mark.skipif(bool(WHY_NO_GPU), reason=f"no GPU to test on: {WHY_NO_GPU}")


def real_task(n_rows: int, n_features: int = 5, seed: int = 0) -> Task:
    rng = np.random.RandomState(seed)
    X = rng.normal(0, 80, size=(n_rows, n_features))
    X[: n_rows // 20] *= 2
    return detection_task(X, n_rows // 5, 4, rng)


def solve_there(task: Task, options: SolverOptions) -> Solution:
    return solve(task, replace(options, device="cuda"))


def assert_same(found: Solution, expected: Solution) -> None:
    np.testing.assert_array_equal(found.members.A, expected.members.A)
    np.testing.assert_array_equal(found.members.b, expected.members.b)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-9)


@pytest.fixture(params=["in shared memory", "in device memory"])
def small_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU as it is, and with too little shared memory for the rows."""
    if request.param == "in device memory":
        real = _device.describe_gpu(0)
        monkeypatch.setattr(_solver, "describe_gpu", lambda number: replace(real, shared_bytes=0))


@pytest.mark.cuda
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


@pytest.mark.cuda
@on_gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_members", [2, 5, 10])
def test_gpu_every_kind(kind: str, n_members: int) -> None:
    for n_features, n_components in ((1, 1), (2, 5), (4, 7)):
        task = random_task(kind, n_members, n_features, seed=1, n_rows=777)
        options = SolverOptions(n_components=n_components, alpha=0.8, max_iter=6, init_b=2000.0)
        assert_same(solve_there(task, options), solve(task, options))


@pytest.mark.cuda
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
        assert again.loss.tobytes() == first.loss.tobytes()


@pytest.mark.cuda
@on_gpu
def test_gpu_float32_is_close_to_float64() -> None:
    task = real_task(5_000)
    single = solve_there(task, SolverOptions(max_iter=20, dtype="float32"))
    double = solve(task, SolverOptions(max_iter=20))
    assert single.loss[-1] == pytest.approx(double.loss[-1], rel=0.01)


@pytest.mark.cuda
@on_gpu
@pytest.mark.parametrize("n_small", [3, 60])
def test_gpu_many_fits_in_one_launch(n_small: int) -> None:
    # With few a cluster each, with many a block; large ones come after each other.
    tasks = [real_task(150 + 29 * seed, 1 + seed % 4, seed) for seed in range(n_small)]
    tasks += [real_task(9_000, seed=7), replace(tasks[0], group=tasks[0].group[::-1].copy())]
    options = SolverOptions(n_components=4, max_iter=12)
    done: list[int] = []
    there = replace(options, device="cuda")
    together, watched = solve_together(tasks, there), solve_together(tasks, there, done.append)
    for task, found, again in zip(tasks, together, watched, strict=True):
        assert_same(found, solve(task, options))
        assert found.members.A.tobytes() == again.members.A.tobytes()
        assert found.n_iter == again.n_iter
    assert done == sorted(done)
    assert done[-1] == sum(solution.n_iter for solution in together)


@pytest.mark.cuda
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


@pytest.mark.cuda
@on_gpu
def test_gpu_on_all_keel_sets() -> None:
    names, tasks = zip(*keel_tasks(), strict=True)
    for name, task, found in zip(
        names, tasks, solve_together(tasks, SolverOptions(device="cuda")), strict=True
    ):
        expected = solve(task, SolverOptions())
        assert np.array_equal(found.members.A, expected.members.A), name
        assert np.array_equal(found.members.b, expected.members.b), name


@pytest.mark.cuda
@on_gpu
@pytest.mark.parametrize("order", ["C", "F"])
def test_gpu_scores_to_the_same_bits(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = need_cupy()
    task = real_task(3_000, 7)
    members = solve(task, SolverOptions(n_components=11, max_iter=4)).members
    there = cupy.asarray(task.X, order=order)
    for name in ("values", "outlier_scores"):
        found = getattr(members, name)(there)
        assert is_on_gpu(found)
        assert found.get().tobytes() == getattr(members, name)(task.X).tobytes()
    monkeypatch.setattr(_rows, "_ROWS_PER_CHUNK", 1_000)
    by_chunks = score_by_chunks(task.X, "cuda", members.outlier_scores)
    np.testing.assert_array_equal(by_chunks, members.outlier_scores(task.X))


@pytest.mark.cuda
@on_gpu
@pytest.mark.parametrize("scaling", ["maxabs", "standard", None])
def test_gpu_scales_to_the_same_bits(scaling: str | None) -> None:
    rows = np.random.RandomState(0).normal(3, 1, size=(70_000, 4)) * [1.0, 1e9, 1e-9, 0.0]
    there = need_cupy().asarray(rows)
    found, expected = FeatureScaler.learn(there, scaling), FeatureScaler.learn(rows, scaling)
    np.testing.assert_array_equal(found.center, expected.center)
    np.testing.assert_array_equal(found.factor, expected.factor)
    np.testing.assert_array_equal(as_host(found.transform(there)), expected.transform(rows))


@pytest.mark.cuda
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


@pytest.mark.cuda
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
    score = QMS22._outlier_scores

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(QMS22, "_outlier_scores", killed)
    with pytest.raises(KeyboardInterrupt):
        detector().fit(normal, unlabeled=batch)
    assert (tmp_path / "fit.npz").exists()
    monkeypatch.setattr(QMS22, "_outlier_scores", score)
    resumed = detector().fit(normal, unlabeled=batch)
    for mine, theirs in zip(resumed.restarts_, whole.restarts_, strict=True):
        np.testing.assert_array_equal(mine.A, theirs.A)
        np.testing.assert_array_equal(mine.b, theirs.b)
    assert len((tmp_path / "fit.jsonl").read_text().splitlines()) >= 2 * 12


@pytest.mark.cuda
@on_gpu
def test_gpu_ensemble() -> None:
    cupy = need_cupy()
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(900, 5)), rng.normal(size=(400, 5))
    batch[:30] += 5

    def detector(device: str) -> QMS22Ensemble:
        return QMS22Ensemble(max_iter=5, random_state=0, device=device)

    expected = detector("cpu").fit(normal, unlabeled=batch)
    from_host = detector("cuda").fit(normal, unlabeled=batch)
    there = detector("auto").fit(cupy.asarray(normal), unlabeled=cupy.asarray(batch))
    assert is_on_gpu(there.unlabeled_scores_)
    for found in (from_host, there):
        assert found.weight_ == expected.weight_
        np.testing.assert_array_equal(as_host(found.unlabeled_scores_), expected.unlabeled_scores_)
        np.testing.assert_array_equal(found.score_samples(batch), expected.score_samples(batch))
        np.testing.assert_array_equal(found.flag(0.1), expected.flag(0.1))
        np.testing.assert_array_equal(found.predict(batch), expected.predict(batch))


@pytest.mark.cuda
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


@pytest.mark.cuda
@on_gpu
def test_gpu_too_small_for_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device, "free_bytes", lambda: 10**5)
    with pytest.raises(MemoryError, match=r"a fit of 9,000 rows needs .* about [0-9,]+ rows would"):
        solve_there(real_task(9_000), SolverOptions())


@pytest.mark.cuda
@on_gpu
def test_gpu_fit_is_a_coordinate_perturbation() -> None:
    task, options = real_task(500), SolverOptions(n_components=2)
    A, b = starting_point(task.n_members, task.X.shape[1], options)
    solver = _solver.CudaSolver(task, A, b, cpm_rules(task, options), "float64")
    np.testing.assert_array_equal(solver.A, A)
    change, accepted = solver.sweep()
    assert change < 0 < accepted
    assert (solver.b != b).any()
