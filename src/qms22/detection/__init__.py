"""Detection on two tables: encode, fit, rank, flag, explain."""

# Names are imported on first use: pandas and scikit-learn take a second to import.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from qms22.detection.history import BatchHistory, HistoryEntry
    from qms22.detection.reasons import RowReason
    from qms22.detection.result import Detection
    from qms22.detection.run import detect
    from qms22.detection.scoring import score

__all__ = ["BatchHistory", "Detection", "HistoryEntry", "RowReason", "detect", "score"]

_HOMES = {
    "BatchHistory": "qms22.detection.history",
    "Detection": "qms22.detection.result",
    "HistoryEntry": "qms22.detection.history",
    "RowReason": "qms22.detection.reasons",
    "detect": "qms22.detection.run",
    "score": "qms22.detection.scoring",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
