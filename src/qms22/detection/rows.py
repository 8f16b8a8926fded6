"""Rows of a batch: their names, those to flag, and the reasons of some."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from qms22._runtime.visible_text import one_line
from qms22.tables import Table
from qms22.tables.columns.column_names import find_column
from qms22.tables.texts.words import list_quoted

# A file, an open table, or a data frame of any library.
TableLike: TypeAlias = "str | Path | Table | Any"

# Scores that are sorted at a time: half a MiB.
_RANKED_AT_ONCE = 1 << 16


def check_column(source: Table, option: str, column: str | int | None, use: str) -> str | None:
    """Return the name of a column that an option names; raise ValueError if there is none."""
    if not isinstance(column, Hashable):
        raise ValueError(f"{option} must be the name of one column; got {column!r}")
    name = None if column is None else find_column(str(column), source.names)
    if column is not None and name is None:
        there = list_quoted(source.names)
        raise ValueError(
            f"{one_line(source.name)} has no column {column!r} for {use}; its columns are {there}"
        )
    return name


def note_repeated(source: Table, id_name: str | None) -> list[str]:
    """Return a note if several rows have the same name; the column is read as a whole."""
    if id_name is None:
        return []
    column = pd.concat([chunk.iloc[:, 0] for chunk in source.chunks([id_name])])
    column = column.dropna().astype(str)
    names = column[column.duplicated()].unique()
    if not len(names):
        return []
    names_occur = "1 name occurs" if len(names) == 1 else f"{len(names):,} names occur"
    repeated = f"{names_occur} more than once, such as {names[0]!r}"
    remedy = "marks of such rows need another column that tells them apart"
    return [f"column {id_name!r}: {repeated}; {remedy}"]


def count_scored(scores: NDArray[np.float64]) -> int:
    """Return how many rows have a score."""
    return int(np.count_nonzero(~np.isnan(scores)))


def flag_top(scores: NDArray[np.float64], k: int) -> NDArray[np.bool_]:
    """Flag the k most suspicious rows, or all that have a score."""
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[most_suspicious(scores, min(k, count_scored(scores)))] = True
    return flagged


def most_suspicious(scores: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the positions of the k highest scores, highest first; at ties the lower position.

    NaN stands for rows that do not count. It takes little memory beside the scores.
    """
    best = np.empty(0, dtype=np.intp)
    for part in gen_batches(len(scores), max(k, _RANKED_AT_ONCE)):
        best = np.concatenate([best, np.arange(part.start, part.stop)])
        best = best[np.argsort(-scores[best], kind="stable")[:k]]
    return best
