"""Detection on two tables: encode, fit, rank, flag, explain."""

# Names are imported on first use: pandas and scikit-learn take a second to import.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from qms22.detection.comparison import Comparison
    from qms22.detection.findings import Finding
    from qms22.detection.history import BatchHistory, HistoryEntry
    from qms22.detection.marks import TableMarks
    from qms22.detection.reasons import RowReason
    from qms22.detection.result import Detection
    from qms22.detection.run import detect
    from qms22.detection.scoring import score

__all__ = [
    "BatchHistory",
    "Comparison",
    "Detection",
    "Finding",
    "HistoryEntry",
    "RowReason",
    "TableMarks",
    "detect",
    "score",
]

_HOMES = {
    "BatchHistory": "qms22.detection.history",
    "Comparison": "qms22.detection.comparison",
    "Detection": "qms22.detection.result",
    "Finding": "qms22.detection.findings",
    "HistoryEntry": "qms22.detection.history",
    "RowReason": "qms22.detection.reasons",
    "TableMarks": "qms22.detection.marks",
    "detect": "qms22.detection.run",
    "score": "qms22.detection.scoring",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
