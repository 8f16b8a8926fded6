"""The report of a detection run: one self-contained page that opens offline."""

from qms22.report.data import DetectionRun, ranking
from qms22.report.page import write_detection_report

__all__ = ["DetectionRun", "ranking", "write_detection_report"]
