"""The evaluation: data sets × detectors × seeds → results → tables, figures, report."""

from qms22.bench.run import run_benchmark
from qms22.bench.store import Result, Store

__all__ = ["Result", "Store", "run_benchmark"]
