"""Shared set-up: nothing skipped for want of a switch, and the benchmarks' naive loop at hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fake_cupy import fake_cupy  # noqa: F401

# Asks scikit-learn's estimator checks for its check of array-API inputs as well.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks of this project known."""
    config.addinivalue_line("markers", "cuda: needs an NVIDIA GPU and CuPy, and skips without them")
