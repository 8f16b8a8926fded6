"""Data sets for the evaluation of detectors: the paper's, ADBench's, and the user's own."""

from qms22_bench.datasets.adbench import load_adbench
from qms22_bench.datasets.dataset import Dataset, Fold
from qms22_bench.datasets.keel import PaperResult, list_keel, load_keel, paper_table1
from qms22_bench.datasets.labeled_rows import LabeledRows
from qms22_bench.datasets.user_tables import load_folder, load_table

__all__ = [
    "Dataset",
    "Fold",
    "LabeledRows",
    "PaperResult",
    "list_keel",
    "load_adbench",
    "load_folder",
    "load_keel",
    "load_table",
    "paper_table1",
]
