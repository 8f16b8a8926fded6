"""Tables of any kind, from the file to the matrix a detector takes."""

# Re-exports only, and only when asked for: pandas, pyarrow and scikit-learn take a second to import
# that `qms22 --help` need not wait for.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._lazy import lazy_names

if TYPE_CHECKING:
    from qms22.tabular._encoder import TabularEncoder
    from qms22.tabular._marker import read_mixed, split_marked
    from qms22.tabular._plan import ColumnInfo
    from qms22.tabular._read import read_table
    from qms22.tabular._source import TableSource, open_table

__all__ = [
    "ColumnInfo",
    "TableSource",
    "TabularEncoder",
    "open_table",
    "read_mixed",
    "read_table",
    "split_marked",
]

_HOMES = {
    "ColumnInfo": "qms22.tabular._plan",
    "TableSource": "qms22.tabular._source",
    "TabularEncoder": "qms22.tabular._encoder",
    "open_table": "qms22.tabular._source",
    "read_mixed": "qms22.tabular._marker",
    "read_table": "qms22.tabular._read",
    "split_marked": "qms22.tabular._marker",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
