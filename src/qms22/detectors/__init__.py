"""Other detectors with scikit-learn's interface, and a registry that builds them by name."""

# Names are imported on first use: a list of detectors does not need scikit-learn.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from qms22.detectors.brm import BRM
    from qms22.detectors.doust import DOUST
    from qms22.detectors.dte import DTENonParametric
    from qms22.detectors.dte_network import DTE
    from qms22.detectors.extended_forest import ExtendedIsolationForest
    from qms22.detectors.forest import OutOfBagForest
    from qms22.detectors.knn import KNNDetector
    from qms22.detectors.ockra import OCKRA

__all__ = [
    "BRM",
    "DOUST",
    "DTE",
    "OCKRA",
    "DTENonParametric",
    "ExtendedIsolationForest",
    "KNNDetector",
    "OutOfBagForest",
]

_HOMES = {
    "BRM": "qms22.detectors.brm",
    "DOUST": "qms22.detectors.doust",
    "DTE": "qms22.detectors.dte_network",
    "DTENonParametric": "qms22.detectors.dte",
    "ExtendedIsolationForest": "qms22.detectors.extended_forest",
    "KNNDetector": "qms22.detectors.knn",
    "OCKRA": "qms22.detectors.ockra",
    "OutOfBagForest": "qms22.detectors.forest",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
