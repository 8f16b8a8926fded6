"""Reasons for rows whose cells are usual one by one, and odd together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Shower, listed, share_of_rows, shown_cells
from qms22.checks.copies import cell_hashes
from qms22.detection.reasons.row_reasons import RowReason
from qms22.estimators.batch_detector import BatchDetector
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns

# More columns are hard to check at a glance, and one that counts for less than a third of the
# strongest adds little.
_MOST_COLUMNS = 3
_LEAST_PART = 0.3

# Numbers count as alike if at most 5 % of the normal rows are between them. A combination that more
# than 2 % of them have is no reason.
_NEAR = 0.05
_MOST_ALIKE = 0.02


def combination_reasons(
    detector: BatchDetector,
    encoder: TabularEncoder,
    matrix: NDArray[np.float64],
    rows: Columns,
    normal: Columns,
    show: Shower,
) -> list[RowReason | None]:
    """Return for each row two or three columns that are odd together; None if there are none.

    The detector tells, by the `matrix` of the rows, how much less suspicious a row is with the
    usual value of a column. The known-normal rows are to count those alike.
    """
    explanation = detector.explain(matrix, groups=encoder.groups_, typical=encoder.typical_row_)
    ascending = {name: np.sort(cells.values[cells.has_value]) for name, cells in normal.items()}
    reasons: list[RowReason | None] = []
    for row in range(len(matrix)):
        top = [reason for reason in explanation.top(row, _MOST_COLUMNS) if reason.name in rows]
        names = [each.name for each in top if each.drop >= _LEAST_PART * top[0].drop]
        is_alike = [
            _are_alike(rows[name], row, normal[name], ascending[name])
            for name in (names if normal else [])
        ]
        n_alike = int(np.logical_and.reduce(is_alike).sum()) if is_alike else 0
        # What no normal row has is odd without the other columns.
        is_one_alone = not all(each.any() for each in is_alike)
        is_frequent = is_alike and n_alike > _MOST_ALIKE * len(is_alike[0])
        if len(names) < 2 or is_one_alone or is_frequent:
            reasons.append(None)
            continue
        texts = [shown_cells(rows[name].take(np.array([row])), show)[0] for name in names]
        text = f"{listed(texts, _MOST_COLUMNS)} together"
        if is_alike:
            text += f", as in {share_of_rows(n_alike, len(is_alike[0]))}"
        strength = math.log((len(is_alike[0]) + 1) / (n_alike + 1)) if is_alike else 0.0
        reasons.append(RowReason(tuple(names), text, strength, "combination"))
    return reasons


def _are_alike(
    cells: Cells, row: int, normal: Cells, ascending: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which normal rows have about the value of a row; their numbers are `ascending`."""
    value, n = cells.values[row], len(ascending)
    if normal.is_text or np.isnan(value):  # a text, a word, or a missing cell
        same: NDArray[np.bool_] = cell_hashes(normal) == cell_hashes(cells)[row]
        return same
    reach = int(_NEAR * n)
    first = np.searchsorted(ascending, value, side="left") - reach
    last = np.searchsorted(ascending, value, side="right") + reach
    low, high = ascending[np.clip([first, last], 0, n - 1)] if n else (np.nan, np.nan)
    near: NDArray[np.bool_] = (normal.values >= low) & (normal.values <= high)
    return near
