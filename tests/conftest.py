"""Set-up of all tests: scikit-learn, Hypothesis, benchmarks and tools as modules, the last line."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from browser import skipped_pages
from fake_cupy import fake_cupy  # noqa: F401
from fuzzing import register_profiles

# Without this variable scikit-learn skips its check of array-API inputs.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

register_profiles()

# A shell that runs the tests in the background lets them ignore Ctrl-C, which some of them send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for _folder in ("benchmarks", "docs/_tools"):
    sys.path.insert(0, str(Path(__file__).parent.parent / _folder))


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and a batch whose first five rows are outliers."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(80, 4))
    batch[:5] += 5
    return rng.normal(size=(200, 4)), batch


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print in the last line how many tests of pages were skipped, and how to run them."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
        if line := skipped_pages(reasons):
            reporter.write_line(line)
