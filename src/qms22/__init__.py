"""Semi-supervised anomaly detection by quadratic multiform separation."""

# Names are imported on first use: scikit-learn takes half a second to import, which `qms22 --help`
# does not need.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.lazy import lazy_names

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from qms22._runtime.build import build_info, show_build
    from qms22.detection import BatchHistory, Detection, HistoryEntry, detect, score
    from qms22.estimators.calibration import Calibration
    from qms22.estimators.classifier import QMSClassifier
    from qms22.estimators.conformal import ContaminationEstimate, RowsBeyond
    from qms22.estimators.ensemble import QMS22Ensemble
    from qms22.estimators.explain import Explanation
    from qms22.estimators.moved_columns import MovedColumn
    from qms22.estimators.outlier_bound import OutlierBound
    from qms22.estimators.pipelines import calibrate
    from qms22.estimators.qms22 import QMS22
    from qms22.estimators.verdict import Verdict
    from qms22.tables import TabularEncoder

__all__ = [
    "QMS22",
    "BatchHistory",
    "Calibration",
    "ContaminationEstimate",
    "Detection",
    "Explanation",
    "HistoryEntry",
    "MovedColumn",
    "OutlierBound",
    "QMS22Ensemble",
    "QMSClassifier",
    "RowsBeyond",
    "TabularEncoder",
    "Verdict",
    "__version__",
    "build_info",
    "calibrate",
    "detect",
    "score",
    "show_build",
]

_HOMES = {
    "BatchHistory": "qms22.detection.history",
    "Calibration": "qms22.estimators.calibration",
    "ContaminationEstimate": "qms22.estimators.conformal",
    "Detection": "qms22.detection.result",
    "Explanation": "qms22.estimators.explain",
    "HistoryEntry": "qms22.detection.history",
    "MovedColumn": "qms22.estimators.moved_columns",
    "OutlierBound": "qms22.estimators.outlier_bound",
    "QMS22": "qms22.estimators.qms22",
    "QMS22Ensemble": "qms22.estimators.ensemble",
    "QMSClassifier": "qms22.estimators.classifier",
    "RowsBeyond": "qms22.estimators.conformal",
    "TabularEncoder": "qms22.tables",
    "Verdict": "qms22.estimators.verdict",
    "build_info": "qms22._runtime.build",
    "calibrate": "qms22.estimators.pipelines",
    "detect": "qms22.detection.run",
    "score": "qms22.detection.scoring",
    "show_build": "qms22._runtime.build",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
