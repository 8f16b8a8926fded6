"""Tests that need a GPU, and tasks for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from qms22._cpm.task import Task, detection_task
from qms22._runtime.devices import need_cupy


def _why_no_gpu() -> str:
    try:
        need_cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


_WHY = _why_no_gpu()


def on_gpu(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that skips without a GPU."""
    skip = pytest.mark.skipif(bool(_WHY), reason=f"no GPU to test on: {_WHY}")
    marked: Callable[..., None] = pytest.mark.cuda(skip(test))
    return marked


def real_task(n_rows: int, n_features: int = 5, seed: int = 0) -> Task:
    rng = np.random.RandomState(seed)
    X = rng.normal(0, 80, size=(n_rows, n_features))
    X[: n_rows // 20] *= 2
    return detection_task(X, n_rows // 5, 4, rng)
