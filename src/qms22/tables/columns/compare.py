"""Whether rows of two tables are the same, if one of them was opened in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables.columns.arrow_columns import frame_cells
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.typed import to_numbers
from qms22.tables.texts.date_format import DateFormat
from qms22.tables.texts.number_format import NumberFormat
from qms22.tables.texts.words import (
    NA,
    canonical,
    without_apostrophe,
)

# Spreadsheets write as many digits of a number as they show, and may leave out seconds.
_RELATIVE_ERROR = 1e-6
_MINUTE = 60e6  # microseconds


def compare_cells(first: pd.DataFrame, second: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which cells of two tables agree.

    Numbers may be rounded, dates may be in other formats, and a text may have an apostrophe before
    what a spreadsheet would take for a formula. Both tables have as many rows, and the same columns
    in the same order.
    """
    agree = np.ones((len(first), first.shape[1]), dtype=bool)
    columns = zip(frame_cells(first) or [], frame_cells(second) or [], strict=True)
    for at, (one, other) in enumerate(columns):
        if "other" not in (one.form, other.form):  # lists and the like cannot be compared
            # "NA" is a value where it is one of many codes, and may be alone in the other table.
            lacking = [cells.missing | cells.is_among((NA,)) for cells in (one, other)]
            agree[:, at] = _same_values(one, other) & ~one.missing & ~other.missing
            agree[:, at] |= lacking[0] & lacking[1]
    return agree


def _same_values(first: Cells, second: Cells) -> NDArray[np.bool_]:
    """Return which cells agree; what it returns for missing ones has no meaning."""
    ours, theirs = (to_numbers(cells, "number", NumberFormat().read) for cells in (first, second))
    if ours.words is None and theirs.words is None:
        are_close: NDArray[np.bool_] = np.isclose(
            ours.values, theirs.values, rtol=_RELATIVE_ERROR, atol=0
        )
        return are_close
    texts = [np.array([_text(value) for value in each.to_array()]) for each in (first, second)]
    same: NDArray[np.bool_] = texts[0] == texts[1]
    for stamps in _dates(first):
        for others in _dates(second):
            same = same | (np.abs(stamps - others) < _MINUTE)
    return same


def _text(value: object) -> str:
    return canonical(without_apostrophe(str(value)))


def _dates(cells: Cells) -> Iterator[NDArray[np.float64]]:
    """Yield a column as dates in each order of day and month that fits it."""
    for month_first in ("", "-./"):
        dates = to_numbers(cells, "date", DateFormat(month_first=month_first).read)
        if dates.words is None:
            yield dates.values
