"""Shared set-up: nothing skipped for want of a switch, and the benchmarks' naive loop at hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Asks scikit-learn's estimator checks for its check of array-API inputs as well.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
