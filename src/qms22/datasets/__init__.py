"""Data sets to evaluate detectors on: those of the paper, and the user's own."""

from qms22.datasets._columns import Rows
from qms22.datasets._dataset import Dataset, Fold
from qms22.datasets._keel import PaperResult, list_keel, load_keel, paper_table1
from qms22.datasets._table import load_folder, load_table

__all__ = [
    "Dataset",
    "Fold",
    "PaperResult",
    "Rows",
    "list_keel",
    "load_folder",
    "load_keel",
    "load_table",
    "paper_table1",
]
