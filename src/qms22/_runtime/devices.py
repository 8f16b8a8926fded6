"""Devices: which one works, how rows get there, and how much memory a GPU has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from qms22._runtime.arrays import is_on_gpu
from qms22._runtime.validation import check_choice

DEVICES = ("cpu", "cuda", "auto")


def need_cupy() -> Any:
    """Import CuPy, or say how to get it; require a GPU that answers.

    Raises
    ------
    ImportError
        Without CuPy.
    RuntimeError
        Without a GPU.
    """
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise ImportError(
            f"device='cuda' needs CuPy, which cannot be imported ({error}); run pip install "
            "'qms22[cuda]', or take device='cpu'"
        ) from error
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(_NO_DEVICE.format(error)) from error
    if not n_devices:
        raise RuntimeError(_NO_DEVICE.format("there is none"))
    return cupy


_NO_DEVICE = (
    "device='cuda' needs an NVIDIA GPU and its driver, and CUDA finds none ({}); take "
    "device='cpu', or device='auto' to use a GPU only where there is one"
)


def resolve_device(device: object) -> str:
    """Turn what the user asked for into "cpu" or "cuda".

    Parameters
    ----------
    device : {"cpu", "cuda", "auto"}
        "cuda" has to be there; "auto" means "cuda" where it is and "cpu" where it is not.
    """
    check_choice("device", device, DEVICES)
    if device == "cpu":
        return "cpu"
    try:
        need_cupy()
    except (ImportError, RuntimeError):
        if device == "auto":
            return "cpu"
        raise
    return "cuda"


def to_device(rows: Any, device: str) -> Any:
    """Return rows in the memory of a device, copied only if they are elsewhere.

    Parameters
    ----------
    rows : ndarray of NumPy or CuPy
    device : {"cpu", "cuda"}

    Raises
    ------
    ValueError
        If CuPy rows meet device "cpu": a silent copy to the host would hide a slow road.
    """
    if device == "cuda":
        return need_cupy().asarray(rows)
    if is_on_gpu(rows):
        raise ValueError(
            "these rows are CuPy's, on a GPU, and device='cpu'; take device='cuda', or hand over "
            "a copy for the CPU, rows.get()"
        )
    return rows


@dataclass(frozen=True)
class Gpu:
    """What launches are shaped by.

    Parameters
    ----------
    n_multiprocessors : int
    shared_bytes : int
        Shared memory that one block can have.
    has_clusters : bool
        Whether blocks can write into each other's shared memory (Hopper and newer).
    """

    n_multiprocessors: int
    shared_bytes: int
    has_clusters: bool


@cache
def describe_gpu(number: int) -> Gpu:
    """Describe the GPU of this number."""
    device = need_cupy().cuda.Device(number)
    return Gpu(
        n_multiprocessors=device.attributes["MultiProcessorCount"],
        shared_bytes=device.attributes["MaxSharedMemoryPerBlockOptin"],
        has_clusters=int(device.compute_capability) >= 90,
    )


def free_bytes() -> int:
    """Memory that the current GPU can still give."""
    cupy = need_cupy()
    pooled = cupy.get_default_memory_pool().free_bytes()
    return int(cupy.cuda.Device().mem_info[0]) + int(pooled)


def require_memory(needed: int, n_rows: int, what: str) -> None:
    """Complain where the GPU has less than `needed` bytes for this many rows."""
    free = free_bytes()
    if needed > free:
        fitting = int(n_rows * (free / needed))
        raise MemoryError(
            f"{what} of {n_rows:,} rows needs {needed / 1e9:.3g} GB on the GPU and "
            f"{free / 1e9:.3g} GB are free; about {fitting:,} rows would fit: give fewer rows, "
            "take dtype='float32', or device='cpu'"
        )
