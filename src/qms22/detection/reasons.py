"""Reasons why rows are suspicious, in terms of the columns of their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qms22.estimators.batch_detector import BatchDetector
from qms22.tables import TabularEncoder

if TYPE_CHECKING:
    import pandas as pd

_REASONS_PER_ROW = 5


class RowReason(NamedTuple):
    """One column that makes a row suspicious.

    Parameters
    ----------
    name : str
        The column.
    drop : float
        How much the score of the row drops if the column takes its usual value.
    value : object
        The value of the row in this column.
    typical : str
        The usual value.
    """

    name: str
    drop: float
    value: Any
    typical: str

    def __str__(self) -> str:
        is_float = isinstance(self.value, float | np.floating)
        value = f"{self.value:.6g}" if is_float else str(self.value)
        return f"{self.name} {value} (usually {self.typical})"


def find_reasons(
    detector: BatchDetector, encoder: TabularEncoder, table: pd.DataFrame
) -> list[list[RowReason]]:
    """Return the reasons of each row of a table, the strongest reason first.

    Parameters
    ----------
    detector : QMS22Ensemble or QMS22
    encoder : TabularEncoder
    table : DataFrame
        The rows to explain; each can be encoded.
    """
    if not len(table):
        return []
    _, rows = encoder.transform_part(table)
    explanation = detector.explain(rows, groups=encoder.groups_, typical=encoder.typical_row_)
    usual = encoder.typical_
    columns = {str(name): at for at, name in enumerate(table.columns)}
    return [
        [
            RowReason(
                reason.name,
                reason.drop,
                table.iloc[row, columns[reason.name]],
                usual[reason.name],
            )
            for reason in explanation.top(row, _REASONS_PER_ROW)
            if reason.name in columns
        ]
        for row in range(len(table))
    ]
