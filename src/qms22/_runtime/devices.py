"""Devices: the choice of one, the transfer of rows, and the memory of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from qms22._runtime.arrays import is_on_gpu
from qms22._runtime.validation import check_choice

DEVICES = ("cpu", "cuda", "auto")


def need_cupy() -> Any:
    """Import CuPy, or raise ImportError; raise RuntimeError if there is no GPU."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise ImportError(
            f"device='cuda' needs CuPy, which cannot be imported ({error}); run pip install "
            "'qms22[cuda]', or use device='cpu'"
        ) from error
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(_NO_DEVICE.format(error)) from error
    if not n_devices:
        raise RuntimeError(_NO_DEVICE.format("there is none"))
    return cupy


_NO_DEVICE = (
    "device='cuda' needs an NVIDIA GPU and its driver, and CUDA finds none ({}); use "
    "device='cpu', or device='auto' to use a GPU only if there is one"
)


def resolve_device(device: object) -> str:
    """Return "cpu" or "cuda" for the parameter `device` of an estimator.

    "cuda" raises as `need_cupy` does; "auto" means "cuda" if there is a GPU, else "cpu".
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
    """Return rows in the memory of a device, "cpu" or "cuda", copied only if they are elsewhere.

    CuPy rows with device "cpu" raise ValueError: a silent copy to the host would be slow.
    """
    if device == "cuda":
        return need_cupy().asarray(rows)
    if is_on_gpu(rows):
        raise ValueError(
            "these rows are CuPy's, on a GPU, and device='cpu'; use device='cuda', or pass a "
            "copy on the host, rows.get()"
        )
    return rows


@dataclass(frozen=True)
class Gpu:
    """Properties of a GPU that the shape of a launch depends on."""

    n_multiprocessors: int
    shared_bytes: int  # of a block, at most
    has_clusters: bool  # blocks can write into each other's shared memory (Hopper and newer)


@cache
def describe_gpu(number: int) -> Gpu:
    """Return the properties of a GPU by its number."""
    device = need_cupy().cuda.Device(number)
    return Gpu(
        n_multiprocessors=device.attributes["MultiProcessorCount"],
        shared_bytes=device.attributes["MaxSharedMemoryPerBlockOptin"],
        has_clusters=int(device.compute_capability) >= 90,
    )


def free_bytes() -> int:
    """Return the bytes that can still be allocated on the current GPU."""
    cupy = need_cupy()
    pooled = cupy.get_default_memory_pool().free_bytes()
    return int(cupy.cuda.Device().mem_info[0]) + int(pooled)


def require_memory(needed: int, n_rows: int, what: str) -> None:
    """Raise MemoryError if less than `needed` bytes are free for this many rows."""
    free = free_bytes()
    if needed > free:
        fitting = int(n_rows * (free / needed))
        raise MemoryError(
            f"{what} of {n_rows:,} rows needs {needed / 1e9:.3g} GB on the GPU and "
            f"{free / 1e9:.3g} GB are free; about {fitting:,} rows would fit: give fewer rows, "
            "use dtype='float32', or device='cpu'"
        )
