"""Rows for the tests of the novelty detectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


def make_rows(n_rows: int = 150, n_features: int = 4, seed: int = 0) -> Rows:
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))
