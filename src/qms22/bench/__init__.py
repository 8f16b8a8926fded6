"""The evaluation: data sets × detectors × seeds → results → tables, figures, report."""

from qms22.bench.run import run_benchmark
from qms22.bench.store import FitResult, Store

__all__ = ["FitResult", "Store", "run_benchmark"]
