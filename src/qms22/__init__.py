"""Semi-supervised anomaly detection by quadratic multiform separation."""

# Names are imported on first use: scikit-learn takes half a second to import, which `qms22 --help`
# does not need.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.packages import lazy_names

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from qms22._runtime.build import build_info as build_info
    from qms22._runtime.build import show_build as show_build
    from qms22.decisions.moved_columns import MovedColumn as MovedColumn
    from qms22.decisions.verdict import Verdict as Verdict
    from qms22.detection import BatchHistory as BatchHistory
    from qms22.detection import Detection as Detection
    from qms22.detection import HistoryEntry as HistoryEntry
    from qms22.detection import detect as detect
    from qms22.detection import score as score
    from qms22.estimators.classifier import QMSClassifier as QMSClassifier
    from qms22.estimators.ensemble import QMS22Ensemble as QMS22Ensemble
    from qms22.estimators.explain import Explanation as Explanation
    from qms22.estimators.qms22 import QMS22 as QMS22
    from qms22.tables import TabularEncoder as TabularEncoder

_HOMES = {
    "BatchHistory": "qms22.detection.history.history_file",
    "Detection": "qms22.detection.result",
    "Explanation": "qms22.estimators.explain",
    "HistoryEntry": "qms22.detection.history.history_entry",
    "MovedColumn": "qms22.decisions.moved_columns",
    "QMS22": "qms22.estimators.qms22",
    "QMS22Ensemble": "qms22.estimators.ensemble",
    "QMSClassifier": "qms22.estimators.classifier",
    "TabularEncoder": "qms22.tables",
    "Verdict": "qms22.decisions.verdict",
    "build_info": "qms22._runtime.build",
    "detect": "qms22.detection.run",
    "score": "qms22.detection.scoring",
    "show_build": "qms22._runtime.build",
}

__all__ = ["__version__", *_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
