"""Rows that tests of several estimators share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and a batch whose first five rows are outliers."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(80, 4))
    batch[:5] += 5
    return rng.normal(size=(200, 4)), batch
