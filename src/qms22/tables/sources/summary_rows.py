"""Rows between others that have sums of them, as "Subtotal,,,120.50"."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from qms22.tables.sources.header import is_value

_SUM = (
    r"(?:grand|sub|over ?all|zwischen|teil|end)?[ -]?"
    r"(?:totals?|sums?|summen?|gesamt(?:summe)?|ergebnis|totale|somme|suma|subtotales?|итого)"
)
# "Subtotal week 12", or "North total" as Excel writes it.
_LABEL = re.compile(rf"{_SUM}\b[^,;]{{0,20}}|[^,;]{{1,30}} {_SUM}\W?", re.IGNORECASE)
# A label, a number, and an empty cell that tells a sum from other rows.
_LEAST_COLUMNS = 3


def is_sum(cells: Sequence[str | None]) -> bool:
    """Return whether a row has nothing but a word such as "Subtotal", and numbers.

    >>> is_sum(["Subtotal week", None, None, "$ 11,775.22"])
    True
    >>> is_sum(["Subtotal week", None, "Berlin", "$ 11,775.22"])
    False
    """
    label, *others = [cell.strip() for cell in cells if cell is not None and cell.strip()] or [""]
    return bool(others) and _LABEL.fullmatch(label) is not None and all(map(is_value, others))


def sum_rows(batch: pa.RecordBatch) -> list[int]:
    """Return the positions of sums between the rows of a record batch of texts.

    Such a row has at most half of the cells that rows usually have, and its label is in no other
    row.
    """
    filled = _count_filled(batch)
    if filled is None:
        return []
    found = []
    for at in few_cells(filled):
        cells = [column[at].as_py() for column in batch.columns]
        if is_sum(cells):
            found.append((int(at), next(n for n, cell in enumerate(cells) if cell)))
    kept = np.ones(batch.num_rows, dtype=bool)
    kept[[at for at, _ in found]] = False
    others = {n: set(pc.unique(batch.column(n).filter(kept)).to_pylist()) for _, n in found}
    return [at for at, n in found if batch.column(n)[at].as_py() not in others[n]]


def without_rows(batch: pa.RecordBatch, rows: Sequence[int]) -> pa.RecordBatch:
    """Return a record batch without the rows at some positions."""
    kept = np.ones(batch.num_rows, dtype=bool)
    kept[rows] = False
    return batch.filter(pa.array(kept)) if len(rows) else batch


def few_cells(filled: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows that have at most half of the usual number of cells."""
    return np.flatnonzero(filled <= np.median(filled) / 2)


def sums_note(labels: Sequence[str], path: str) -> str:
    """Return a sentence about rows that were left out."""
    count = "1 row" if len(labels) == 1 else f"{len(labels)} rows"
    return f"{path}: {count} with sums between the others left out ({labels[0][:40]!r})"


def _count_filled(batch: pa.RecordBatch) -> NDArray[np.intp] | None:
    """Return the number of cells in each row; None if no row can have few of them."""
    columns = batch.columns
    n_full = sum(not column.null_count for column in columns)
    if len(columns) < _LEAST_COLUMNS or n_full > len(columns) / 2:
        return None
    filled = np.full(batch.num_rows, n_full)
    for column in columns:
        if column.null_count:
            filled += column.is_valid().to_numpy(zero_copy_only=False)
    return filled
