"""Semi-supervised anomaly detection by quadratic multiform separation."""

# Re-exports only, and only when asked for: importing scikit-learn takes half a second that
# `qms22 --help` need not wait for.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from qms22._build import build_info, show_build
    from qms22._classifier import QMSClassifier
    from qms22._conformal import ContaminationEstimate
    from qms22._detector import QMS22
    from qms22._ensemble import QMS22Ensemble
    from qms22._explain import Explanation
    from qms22.tabular import TabularEncoder

__all__ = [
    "QMS22",
    "ContaminationEstimate",
    "Explanation",
    "QMS22Ensemble",
    "QMSClassifier",
    "TabularEncoder",
    "__version__",
    "build_info",
    "show_build",
]

_HOMES = {
    "ContaminationEstimate": "qms22._conformal",
    "Explanation": "qms22._explain",
    "QMS22": "qms22._detector",
    "QMS22Ensemble": "qms22._ensemble",
    "QMSClassifier": "qms22._classifier",
    "TabularEncoder": "qms22.tabular",
    "build_info": "qms22._build",
    "show_build": "qms22._build",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
