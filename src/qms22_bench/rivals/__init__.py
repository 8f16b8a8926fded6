"""The rivals of QMS22: other detectors with scikit-learn's interface, scored as the paper does."""

from qms22_bench.rivals.brm import BRM
from qms22_bench.rivals.doust import DOUST
from qms22_bench.rivals.dte import DTENonParametric
from qms22_bench.rivals.extended_forest import ExtendedIsolationForest
from qms22_bench.rivals.knn import KNNDetector
from qms22_bench.rivals.ockra import OCKRA

__all__ = [
    "BRM",
    "DOUST",
    "OCKRA",
    "DTENonParametric",
    "ExtendedIsolationForest",
    "KNNDetector",
]
