"""Columns that only say when the rows of a batch were made: dates, periods and counters.

A later date, month or order number is no reason to suspect a row. What is counted here in the
mixture of a calibration split does not change when its rows change places, and what is learned
comes from the known-normal rows that are not held out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qms22.tables import ColumnInfo, TabularEncoder

if TYPE_CHECKING:
    import pandas as pd

# The share of the batch that has to be outside the normal values. Measurements can be whole numbers
# too, and half of a batch can be anomalies: only if nearly all rows are outside, a column of whole
# numbers or levels is taken for a period or a counter.
_MOST_DATES = 1 / 2
_NEARLY_ALL = 0.9
# In a smaller batch, all rows may be anomalies.
_LEAST_ROWS = 10
# The levels of a period recur. The share of normal rows with a level of their own estimates how
# many held-out rows, of which there are up to 20 for each row of the batch, have unseen levels
# (Good and Turing): so few of them cannot make a period of a column.
_MOST_SINGLE = 0.02

_DATE_NOTE = "most of the batch is outside the normal dates; ignored"
_NUMBER_NOTE = (
    "nearly all of the batch is outside the normal range: looks like a period or a counter; ignored"
)
_LEVEL_NOTE = (
    "nearly all of the batch has levels that no normal row has: looks like a period; ignored"
)


def find_periods(
    encoder: TabularEncoder,
    normal: pd.DataFrame,
    known: NDArray[np.float64],
    rows: NDArray[np.float64],
    n_searched: int,
) -> dict[str, str]:
    """Return the columns to leave out because they only say when rows were made, with a note.

    - a date, if most rows are before or after all normal ones;
    - whole numbers, if nearly all rows are above or nearly all below all normal ones: a month, a
      year, a counter. Numbers with decimals are measurements and stay;
    - a category whose levels recur, if nearly all rows have levels that no normal row has.

    Whole numbers and categories stay if there are few rows, or if no other column would be left.

    Parameters
    ----------
    encoder : TabularEncoder
    normal : DataFrame
        The known-normal rows that the encoder has learned from.
    known, rows : ndarray
        These rows and those of the batch or of the mixture, encoded.
    n_searched : int
        How many of `rows` are of the batch; the others are held-out normal rows.

    Returns
    -------
    dict from str to str
    """
    typical = encoder.typical_row_
    dates, others = {}, {}
    for column in encoder.columns_:
        if not column.outputs:
            continue
        first, last = column.outputs[0], column.outputs[-1]
        if column.kind == "date":
            if sum(_count_outside(known[:, first], rows[:, first])) > _MOST_DATES * n_searched:
                dates[column.name] = _DATE_NOTE
        elif n_searched < _LEAST_ROWS:
            continue
        elif column.kind == "numeric":
            n_outside = _count_whole_outside(known[:, first], rows[:, first], typical[first])
            if n_outside > _NEARLY_ALL * n_searched:
                others[column.name] = _NUMBER_NOTE
        elif column.kind == "categorical":
            is_unseen = np.count_nonzero(rows[:, last]) > _NEARLY_ALL * n_searched
            if is_unseen and _share_of_single(encoder, column, normal) <= _MOST_SINGLE:
                others[column.name] = _LEVEL_NOTE
    is_any_left = len(dates) + len(others) < len(encoder.groups_)
    return {**dates, **others} if is_any_left else dates


def _count_outside(known: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[int, int]:
    """Count the values below and above all normal ones."""
    return int(np.count_nonzero(values < known.min())), int(np.count_nonzero(values > known.max()))


def _count_whole_outside(
    known: NDArray[np.float64], values: NDArray[np.float64], typical: float
) -> int:
    """Count the whole numbers on one side of the normal values; 0 if these are not whole.

    The typical value, which is imputed, need not be whole.
    """
    if not ((known == np.rint(known)) | (known == typical)).all():
        return 0
    return max(_count_outside(known, values[values == np.rint(values)]))


def _share_of_single(encoder: TabularEncoder, column: ColumnInfo, normal: pd.DataFrame) -> float:
    """Return the share of normal rows whose level no other normal row has."""
    cells = encoder.typed_cells(normal)[column.name]
    _, counts = np.unique(cells.values[~cells.missing], return_counts=True)
    return float(np.count_nonzero(counts == 1) / len(normal))
