"""Tables of any kind, from the file to the matrix a detector takes."""

# Re-exports only, and only when asked for: pandas, pyarrow and scikit-learn take a second to import
# that `qms22 --help` need not wait for.
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qms22.tabular._encoder import TabularEncoder
    from qms22.tabular._marker import read_mixed, split_marked
    from qms22.tabular._plan import ColumnInfo
    from qms22.tabular._read import read_table

__all__ = ["ColumnInfo", "TabularEncoder", "read_mixed", "read_table", "split_marked"]

_HOMES = {
    "ColumnInfo": "qms22.tabular._plan",
    "TabularEncoder": "qms22.tabular._encoder",
    "read_mixed": "qms22.tabular._marker",
    "read_table": "qms22.tabular._read",
    "split_marked": "qms22.tabular._marker",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'qms22.tabular' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
