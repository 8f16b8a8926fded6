"""Marks: what an analyst found out about rows of a batch, of earlier ones, and known-normal rows.

>>> import pandas as pd
>>> from qms22.tables import open_table
>>> normal = pd.DataFrame({"order": ["A0"], "amount": [13.0]})
>>> batch = pd.DataFrame({"order": ["A1", "A2", "A3"], "amount": [12.0, 990.0, 14.0]})
>>> marks = pd.DataFrame({"order": ["A2", "A3"], "mark": ["anomaly", "unsure"]})
>>> tables = open_table(normal), open_table(batch)
>>> found = read_marks([open_table(marks)], *tables, id_name="order", ignore=["order"])
>>> print(found)
1 mark used: 1 anomaly, 0 normal
>>> found.decided  # an unsure row is still searched
array([1])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22._runtime.warn import warn_user
from qms22.detection.marks.mark_table import (
    ANOMALY,
    MARK,
    NORMAL,
    UNSURE,
    MarkTable,
    find_rows,
    read_mark_table,
    split_by_table,
)
from qms22.tables import Table
from qms22.tables.sources.frame_table import FrameTable
from qms22.tables.texts.words import list_quoted, list_some

# A mark is stored as its place here: a batch may have many rows. Decisions come after "unsure".
_WORDS = ("", UNSURE, ANOMALY, NORMAL)
_ANOMALY, _NORMAL = 2, 3

# A table of which every fifth row is an anomaly has not been checked, and is refused.
_MOST_REMOVED = 0.2


class MarkedRows(NamedTuple):
    """Rows that are known to be anomalies, or normal, and their name in messages."""

    name: str
    table: pd.DataFrame
    is_anomaly: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TableMarks:
    """What is known about rows of a batch, about known-normal rows and about rows of other tables.

    Parameters
    ----------
    codes, normal_codes : ndarray of int of shape (n_rows,)
        The mark of each row of the batch, and of each known-normal row.
    removed_rows : DataFrame
        The known-normal rows that are marked as anomalies.
    others : tuple of MarkedRows
        Rows of other tables.
    """

    codes: NDArray[np.int8]
    normal_codes: NDArray[np.int8]
    removed_rows: pd.DataFrame
    others: tuple[MarkedRows, ...]

    def words(self, rows: NDArray[np.intp], *, of_normal: bool = False) -> NDArray[np.object_]:
        """Return the marks of some rows of a table: "anomaly", "normal", "unsure" or empty."""
        codes = self.normal_codes if of_normal else self.codes
        return np.array(_WORDS, dtype=object)[codes[rows]]

    @property
    def anomalies(self) -> NDArray[np.intp]:
        """Positions of the rows of the batch that are marked as anomalies."""
        return np.flatnonzero(self.codes == _ANOMALY)

    @property
    def decided(self) -> NDArray[np.intp]:
        """Positions of the rows of the batch that are marked as anomalies, then of normal ones."""
        return np.append(self.anomalies, np.flatnonzero(self.codes == _NORMAL))

    @property
    def removed(self) -> NDArray[np.intp]:
        """Positions of the known-normal rows that are marked as anomalies."""
        return np.flatnonzero(self.normal_codes == _ANOMALY)

    def parts(self, normal: Table, batch: Table) -> list[MarkedRows]:
        """Return the rows to learn from: those of the two tables, and those of others."""
        rows, is_removed = self.decided, np.ones(len(self.removed_rows), dtype=bool)
        is_anomaly = self.words(rows) == ANOMALY
        of_batch = MarkedRows(f"{batch.name} (marked)", batch.take(rows), is_anomaly)
        of_normal = MarkedRows(f"{normal.name} (marked)", self.removed_rows, is_removed)
        return [part for part in (of_batch, of_normal, *self.others) if len(part.is_anomaly)]

    def __str__(self) -> str:
        n_others, n_removed = sum(len(part.table) for part in self.others), len(self.removed)
        n_marks = len(self.decided) + n_removed + n_others
        n_anomalies = n_removed + np.count_nonzero(self.words(self.decided) == ANOMALY)
        n_anomalies += sum(np.count_nonzero(part.is_anomaly) for part in self.others)
        return (
            f"{n_marks:,} mark{'' if n_marks == 1 else 's'} used: {n_anomalies:,} "
            f"anomal{'y' if n_anomalies == 1 else 'ies'}, {n_marks - n_anomalies:,} normal"
            + (f" ({n_others:,} of rows of other tables)" if n_others else "")
            + (f"; {n_removed:,} of the known-normal rows taken out" if n_removed else "")
        )


def read_marks(
    sources: Sequence[Table],
    normal: Table,
    batch: Table,
    id_name: str | None,
    ignore: Sequence[str],
) -> TableMarks:
    """Read marks from `sources`, and find the rows of the two tables that they are about.

    Rows that are not found are taken for rows of other tables, and learned from by their own cells.
    Of known-normal rows this holds for anomalies alone: one marked as normal, and not found, may
    still be in the table, where a twin that teaches would make it look too normal to be held out.

    See `detect` for their columns; each table may name rows in its own way. Columns to `ignore` are
    not learned from, and rows of other tables may lack them. Raise ValueError if there is no mark,
    if one is not understood, if marks contradict each other, if a row is not in its table and lacks
    columns to learn from, or if too few rows of a table are left.
    """
    of_batch, of_normal = (np.zeros(table.n_rows, dtype=np.int8) for table in (batch, normal))
    others: list[MarkedRows] = []
    for source in sources:
        about_batch, about_normal = split_by_table(source, batch.names)
        for frame, table, codes, used in (
            (about_batch, batch, of_batch, _WORDS),
            (about_normal, normal, of_normal, (ANOMALY,)),
        ):
            marked = read_mark_table(frame, source, table, id_name)
            positions, why_not = find_rows(marked, table)
            _add_marks(marked, positions, codes)
            is_unchecked = marked.is_by_number and not marked.compared
            if is_unchecked and (positions >= 0).any() and not isinstance(source, FrameTable):
                warn_user(
                    f"{source.name} names rows by number only, and they are taken for rows of "
                    f"{table.name}; keep another column of that table beside, by which they can be "
                    "checked"
                )
            unknown = {row: why for row, why in why_not.items() if marked.marks[row] in used}
            others.append(_other_rows(marked, unknown, table, ignore))
    _check_agreement(others)
    removed = normal.take(np.flatnonzero(of_normal == _ANOMALY))
    found = TableMarks(
        of_batch, of_normal, removed, tuple(each for each in others if len(each.table))
    )
    named = ", ".join(source.name for source in sources)
    if len(found.decided) == batch.n_rows:
        raise ValueError(
            f"{named} marks every row of {batch.name}, so no row is left to search; give a batch "
            "with other rows"
        )
    if len(removed) > _MOST_REMOVED * normal.n_rows:
        raise ValueError(
            f"{named} marks {len(removed):,} of the {normal.n_rows:,} known-normal rows of "
            f"{normal.name} as anomalies, more than {_MOST_REMOVED:.0%}; give a table of rows that "
            "have been checked"
        )
    return found


def _add_marks(marked: MarkTable, positions: NDArray[np.intp], codes: NDArray[np.int8]) -> None:
    before = codes.copy()
    for row in np.flatnonzero(positions >= 0).tolist():
        at, code = positions[row], _WORDS.index(marked.marks[row])
        if {before[at], code} == {_ANOMALY, _NORMAL}:
            raise ValueError(
                f"{marked.source.name} marks {marked.title(row)} as {_WORDS[code]}, and another "
                f"table of marks as {_WORDS[before[at]]}; keep one of the marks"
            )
        if {codes[at], code} == {_ANOMALY, _NORMAL}:
            raise _contradiction(marked, row)
        codes[at] = max(codes[at], code)


def _other_rows(
    marked: MarkTable, reasons: dict[int, str], batch: Table, ignore: Sequence[str]
) -> MarkedRows:
    """Return the rows that are not in the batch; raise ValueError if they lack columns."""
    name = marked.source.name
    lacking = [each for each in batch.names if each not in {*marked.table.columns, *ignore}]
    first = next(iter(reasons.values()), "")
    if reasons and lacking:
        raise ValueError(
            f"{name}: {first}, and the file lacks columns to learn from such rows "
            f"({list_quoted(lacking)}); correct the marks, or add the columns"
        )
    if reasons:
        are = "is" if len(reasons) == 1 else "are"
        warn_user(
            f"{name}: {len(reasons):,} of {len(marked.marks):,} marked rows {are} not in "
            f"{batch.name} and {are} taken for rows of other tables ({first})"
        )
    rows = [row for row in sorted(reasons) if marked.marks[row] != UNSURE]
    table = marked.table.iloc[rows].drop(columns=list(ignore), errors="ignore")
    is_anomaly = np.array([marked.marks[row] == ANOMALY for row in rows], dtype=bool)
    different = table.astype(str).assign(**{MARK: is_anomaly}).drop_duplicates()
    twice = different.duplicated(list(table.columns))
    if twice.any():
        raise _contradiction(marked, marked.table.index.get_loc(twice.idxmax()))
    return MarkedRows(name, table, is_anomaly)


def _check_agreement(others: Sequence[MarkedRows]) -> None:
    """Raise ValueError if tables of marks contradict each other about rows of other tables."""
    seen: dict[tuple[str, ...], tuple[bool, str]] = {}
    for name, table, is_anomaly in others:
        rows = table.astype(str)[sorted(table.columns)].itertuples(index=False, name=None)
        for row, mark in zip(rows, is_anomaly.tolist(), strict=True):
            before, other = seen.setdefault(row, (mark, name))
            if before != mark:
                raise ValueError(
                    f"{other} and {name} mark the same row of another table, one as anomaly and "
                    f"one as normal ({list_some(row)}); keep one of the marks"
                )


def _contradiction(marked: MarkTable, row: int) -> ValueError:
    return ValueError(
        f"{marked.source.name} marks {marked.title(row)} both as anomaly and as normal; keep one "
        "of the marks"
    )
