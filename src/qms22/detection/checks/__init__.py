"""Checks beside the score: what is odd about single cells and rows, in words."""

from qms22.detection.checks.table import OddCells, OwnOddness, TableChecks

__all__ = ["OddCells", "OwnOddness", "TableChecks"]
