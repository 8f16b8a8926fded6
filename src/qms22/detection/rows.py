"""Rows of a batch: their names, those to flag, and the reasons of some."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qms22.detection.reasons import RowReason, find_reasons
from qms22.detection.streaming import most_suspicious
from qms22.estimators.batch_detector import BatchDetector
from qms22.tables import TableSource, TabularEncoder
from qms22.tables.words import list_some

# A file, an open table, or a data frame of any library.
Table: TypeAlias = "str | Path | TableSource | Any"

# To explain a row it is scored once per column, and few readers need the reasons of more rows.
MOST_EXPLAINED = 1000


def check_id(source: TableSource, id: str | int | None) -> str | None:  # noqa: A002
    """Return the name of the column `id`; raise ValueError if there is none."""
    if id is None or str(id) in source.names:
        return None if id is None else str(id)
    there = list_some([repr(name) for name in source.names])
    raise ValueError(f"{source.name} has no column {id!r} to name rows; its columns are {there}")


def count_scored(scores: NDArray[np.float64]) -> int:
    """Return how many rows have a score."""
    return int(np.count_nonzero(~np.isnan(scores)))


def flag_top(scores: NDArray[np.float64], k: int) -> NDArray[np.bool_]:
    """Flag the k most suspicious rows, or all that have a score."""
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[most_suspicious(scores, min(k, count_scored(scores)))] = True
    return flagged


def explain_rows(
    source: TableSource,
    encoder: TabularEncoder,
    detector: BatchDetector,
    scores: NDArray[np.float64],
    explained: NDArray[np.bool_],
) -> dict[int, list[RowReason]]:
    """Return the reasons of the most suspicious of some rows, by position."""
    rows = np.flatnonzero(explained)
    rows = rows[np.argsort(-scores[rows], kind="stable")[:MOST_EXPLAINED]]
    if not len(rows):
        return {}
    reasons = find_reasons(detector, encoder, source.take(rows))
    return dict(zip(rows.tolist(), reasons, strict=True))
