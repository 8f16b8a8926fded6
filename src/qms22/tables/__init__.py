"""Tables of any kind, from the file to the matrix that a detector takes.

- `formats`: which format a file has, and opens it. `encoder`: the matrix. `marker`: both tables in
  one, and known labels.
- `sources`: bytes to rows, one function per format; `table` has the `Table` that all others use.
- `databases`: rows of queries. `columns`: cells, what columns are, and how they become a matrix.
- `texts`: numbers, units, dates and words as people write them.
"""

# Names are imported on first use: pandas, pyarrow and scikit-learn take a second to import, which
# `qms22 --help` does not need.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.packages import lazy_names

if TYPE_CHECKING:
    from qms22._runtime.memory import memory_limit as memory_limit
    from qms22.tables.columns.plan import ColumnInfo as ColumnInfo
    from qms22.tables.encoder import TabularEncoder as TabularEncoder
    from qms22.tables.formats import open_table as open_table
    from qms22.tables.formats import read_table as read_table
    from qms22.tables.marker import outlier_labels as outlier_labels
    from qms22.tables.marker import read_mixed as read_mixed
    from qms22.tables.sources.table import Table as Table

_HOMES = {
    "ColumnInfo": "qms22.tables.columns.plan",
    "Table": "qms22.tables.sources.table",
    "TabularEncoder": "qms22.tables.encoder",
    "memory_limit": "qms22._runtime.memory",
    "open_table": "qms22.tables.formats",
    "outlier_labels": "qms22.tables.marker",
    "read_mixed": "qms22.tables.marker",
    "read_table": "qms22.tables.formats",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
