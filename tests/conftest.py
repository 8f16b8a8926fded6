"""Set-up of all tests: scikit-learn, Hypothesis, and the benchmarks on the import path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fake_cupy import fake_cupy  # noqa: F401
from hypothesis import settings

# Without this variable scikit-learn skips its check of array-API inputs.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# No deadlines: tests run in parallel, on machines of any speed.
settings.register_profile("qms22", deadline=None)
settings.load_profile("qms22")

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
