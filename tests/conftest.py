"""Set-up of all tests: an environment variable, and the benchmarks on the import path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fake_cupy import fake_cupy  # noqa: F401

# Without this variable scikit-learn skips its check of array-API inputs.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
