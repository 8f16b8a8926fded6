"""Which device works, and rows on the way to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from qms22 import QMS22
from qms22._runtime import devices
from qms22._runtime.arrays import array_module, is_on_gpu, to_device_of
from qms22._runtime.devices import require_memory, resolve_device, to_device
from qms22._runtime.validation import check_rows


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(devices, "import_module", import_module)


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
    monkeypatch.setattr(devices, "import_module", lambda name: cupy)
    with pytest.raises(RuntimeError, match=r"CUDA finds none \(cudaErrorNoDevice\); use device="):
        resolve_device("cuda")
    assert resolve_device("auto") == "cpu"
    runtime.getDeviceCount = lambda: 0
    with pytest.raises(RuntimeError, match="finds none"):
        resolve_device("cuda")


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "free_bytes", lambda: 10**9)
    require_memory(10**9, 1_000, "a fit")
    with pytest.raises(MemoryError, match=r"of 1,000,000 rows needs 4 GB on the GPU and 1 GB are "):
        require_memory(4 * 10**9, 1_000_000, "a fit")
    with pytest.raises(MemoryError, match="about 250,000 rows would fit: give fewer rows"):
        require_memory(4 * 10**9, 1_000_000, "a fit")


def test_rows_of_the_gpu_are_checked(fake_cupy: Any) -> None:
    detector, rows = QMS22(), np.arange(12.0).reshape(6, 2)
    there = fake_cupy.asarray(rows)
    assert is_on_gpu(check_rows(detector, there, reset=True))
    assert detector.n_features_in_ == 2
    assert array_module(there) is fake_cupy
    assert is_on_gpu(to_device_of(rows, there))
    assert to_device_of(there, rows) is not there
    with pytest.raises(ValueError, match="X has 1 features, but QMS22 is expecting 2 feat"):
        check_rows(detector, fake_cupy.asarray(rows[:, :1]))
    with pytest.raises(ValueError, match="X has 1 dimension where 2 are expected"):
        check_rows(detector, fake_cupy.asarray(rows[0]))
    with pytest.raises(ValueError, match=r"X has shape \(0, 2\); give at least one row"):
        check_rows(detector, fake_cupy.asarray(rows[:0]))
    with pytest.raises(ValueError, match="X has dtype complex128; give real numbers"):
        check_rows(detector, fake_cupy.asarray(rows + 1j))
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 of X has 1 NaN .*first at row 3"):
        check_rows(detector, fake_cupy.asarray(rows))
    with pytest.raises(ValueError, match=r"CuPy's, on a GPU, and device='cpu'; use device='cuda'"):
        to_device(there, "cpu")
