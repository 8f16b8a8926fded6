"""Marks: what an analyst found out about rows of a batch, and of earlier ones.

>>> import pandas as pd
>>> from qms22.tables import open_table
>>> batch = pd.DataFrame({"order": ["A1", "A2", "A3"], "amount": [12.0, 990.0, 14.0]})
>>> marks = pd.DataFrame({"order": ["A2", "A3"], "mark": ["anomaly", "unsure"]})
>>> found = read_marks(marks, open_table(batch), id_name="order", ignore=["order"])
>>> print(found)
1 mark used: 1 anomaly, 0 normal
>>> found.decided  # an unsure row is still searched
array([1])
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.detection.mark_table import (
    ANOMALY,
    MARK,
    NORMAL,
    UNSURE,
    MarkTable,
    find_rows,
    read_mark_table,
)
from qms22.detection.rows import Table
from qms22.tables import TableSource, open_table
from qms22.tables.frame_source import FrameSource
from qms22.tables.words import list_some

if TYPE_CHECKING:
    import pandas as pd

# A mark is stored as its place here: a batch may have many rows.
_WORDS = ("", UNSURE, ANOMALY, NORMAL)


class MarkedRows(NamedTuple):
    """Rows that are known to be anomalies, or normal.

    Parameters
    ----------
    name : str
        The name of the rows in messages.
    table : DataFrame
    is_anomaly : ndarray of bool
    """

    name: str
    table: pd.DataFrame
    is_anomaly: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TableMarks:
    """What is known about rows of a batch, and about rows of other tables.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The mark of each row of the batch.
    others : MarkedRows
        Rows of other tables.
    """

    codes: NDArray[np.int8]
    others: MarkedRows

    def words(self, rows: NDArray[np.intp]) -> NDArray[np.object_]:
        """Return the marks of some rows of the batch: "anomaly", "normal", "unsure" or empty."""
        return np.array(_WORDS, dtype=object)[self.codes[rows]]

    @property
    def decided(self) -> NDArray[np.intp]:
        """Positions of the rows of the batch that are marked as anomalies, then of normal ones."""
        anomalies = np.flatnonzero(self.codes == _WORDS.index(ANOMALY))
        return np.concatenate([anomalies, np.flatnonzero(self.codes == _WORDS.index(NORMAL))])

    def parts(self, batch: TableSource) -> list[MarkedRows]:
        """Return the rows to learn from: those of the batch, and those of other tables."""
        rows = self.decided
        is_anomaly = self.words(rows) == ANOMALY
        of_batch = MarkedRows(f"{batch.name} (marked)", batch.take(rows), is_anomaly)
        return [part for part in (of_batch, self.others) if len(part.is_anomaly)]

    def __str__(self) -> str:
        words = self.words(self.decided)
        n_marks, n_others = len(words) + len(self.others.table), len(self.others.table)
        n_anomalies = np.count_nonzero(words == ANOMALY) + np.count_nonzero(self.others.is_anomaly)
        return (
            f"{n_marks} mark{'' if n_marks == 1 else 's'} used: {n_anomalies} "
            f"anomal{'y' if n_anomalies == 1 else 'ies'}, {n_marks - n_anomalies} normal"
            + (f" ({n_others} of rows of other tables)" if n_others else "")
        )


def read_marks(
    marks: Table, batch: TableSource, id_name: str | None, ignore: Sequence[str]
) -> TableMarks:
    """Read marks, and find the rows of the batch that they are about.

    Rows that are not in the batch are taken for rows of other tables, and learned from by their own
    cells.

    Parameters
    ----------
    marks : path, TableSource or data frame
        With a column "mark" ("anomaly", "normal", "unsure" or empty) and, to say which rows are
        meant, the column `id_name`, or "row" with positions in the batch.
    batch : TableSource
    id_name : str or None
        The column of the batch that names its rows.
    ignore : sequence of str
        Columns that are not learned from, which rows of other tables may lack.

    Raises
    ------
    ValueError
        If there is no mark, if one is not understood, if marks contradict each other, or if a row
        is not in the batch and lacks columns to learn from.
    """
    if MARK in batch.names:
        raise ValueError(
            f"{batch.name} has a column {MARK!r} of its own, which cannot be told from that of the "
            "marks; rename it"
        )
    source = open_table(marks)
    marked = read_mark_table(source, batch, id_name)
    positions, reasons = find_rows(marked, batch)
    codes = np.zeros(batch.n_rows, dtype=np.int8)
    for row in np.flatnonzero(positions >= 0).tolist():
        at, code = positions[row], _WORDS.index(marked.marks[row])
        if {_WORDS[codes[at]], _WORDS[code]} == {ANOMALY, NORMAL}:
            raise _contradiction(marked, row)
        codes[at] = max(codes[at], code)  # a decision counts more than "unsure"
    if codes.any() and marked.is_by_number and not marked.compared:
        _warn_unchecked(source, batch)
    found = TableMarks(codes, _other_rows(marked, reasons, batch, ignore))
    if len(found.decided) == batch.n_rows:
        raise ValueError(
            f"{source.name} marks every row of {batch.name}, which leaves none to search; give a "
            "batch with other rows"
        )
    return found


def _other_rows(
    marked: MarkTable, reasons: dict[int, str], batch: TableSource, ignore: Sequence[str]
) -> MarkedRows:
    """Return the rows that are not in the batch; raise ValueError if they lack columns."""
    name = marked.source.name
    lacking = [
        repr(column)
        for column in batch.names
        if column not in marked.table.columns and column not in ignore
    ]
    first = next(iter(reasons.values()), "")
    if reasons and lacking:
        raise ValueError(
            f"{name}: {first}, and the file lacks columns to learn from such rows "
            f"({list_some(lacking)}); correct the marks, or add the columns"
        )
    if reasons:
        warnings.warn(
            f"{name}: {len(reasons)} of {len(marked.marks)} marked rows are not in {batch.name} "
            f"and are taken for rows of other tables ({first})",
            stacklevel=4,
        )
    rows = [row for row in sorted(reasons) if marked.marks[row] != UNSURE]
    table = marked.table.iloc[rows].drop(columns=list(ignore), errors="ignore")
    is_anomaly = np.array([marked.marks[row] == ANOMALY for row in rows], dtype=bool)
    texts = table.astype(str)
    different = texts.assign(**{MARK: is_anomaly}).drop_duplicates()
    twice = different.duplicated(list(texts.columns))
    if twice.any():
        raise _contradiction(marked, marked.table.index.get_loc(twice.idxmax()))
    return MarkedRows(name, table, is_anomaly)


def _contradiction(marked: MarkTable, row: int) -> ValueError:
    return ValueError(
        f"{marked.source.name} marks {marked.title(row)} both as anomaly and as normal; keep one "
        "of the marks"
    )


def _warn_unchecked(source: TableSource, batch: TableSource) -> None:
    """Warn that row numbers alone do not tell whether marks are about this batch."""
    if not isinstance(source, FrameSource):
        warnings.warn(
            f"{source.name} names rows by number alone, and they are taken for rows of "
            f"{batch.name}; keep another column of that table beside, by which they can be checked",
            stacklevel=4,
        )
