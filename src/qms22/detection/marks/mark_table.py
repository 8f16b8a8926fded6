"""A table of marks as an analyst writes it, and which rows of other tables it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables import Table
from qms22.tables.columns.column_names import find_column, free_name, match_names
from qms22.tables.columns.compare import compare_cells
from qms22.tables.texts.words import list_quoted, number_text, without_apostrophe

MARK, ROW, SOURCE = "mark", "row", "source"
ANOMALY, NORMAL, UNSURE = "anomaly", "normal", "unsure"
# The columns that tables of a `Detection` put before those of the batch or of known-normal rows.
RESULTS = (*("rank", ROW, SOURCE, "score", "flagged", "reasons", "p_value", "false_at_most", MARK),)
# What the column "source" says: which table a row is in.
OF_BATCH, OF_NORMAL = "batch", "normal"
# Words such as yes and 1 are not among them: they answer one analyst's "is it an anomaly?" and
# another one's "is it fine?".
_MEANINGS = (
    dict.fromkeys(("anomaly", "anomalous", "outlier"), ANOMALY)
    | dict.fromkeys(("normal", "ok", "inlier"), NORMAL)
    | dict.fromkeys(("unsure", "unknown"), UNSURE)
)


@dataclass(frozen=True, eq=False)
class MarkTable:
    """The rows of a table of marks that have a mark: "anomaly", "normal" or "unsure".

    `table` has the columns that the batch has as well, called as there. `key` is what names the
    rows: a column of the batch, "row" for positions in it, or None. A name may be empty.
    """

    source: Table
    table: pd.DataFrame
    key: str | None
    names: list[str]
    marks: list[str]

    @property
    def compared(self) -> list[str]:
        """The columns that tell whether a row is the one of that name in the batch."""
        return [str(name) for name in self.table.columns if name != self.key]

    @property
    def is_by_number(self) -> bool:
        """Whether rows are named by their positions in the batch."""
        return self.key == ROW and ROW not in self.table.columns

    def title(self, row: int) -> str:
        """Return what a row is called in messages."""
        name = self.names[row]
        return f"{self.key} {name}" if name else f"row {self.table.index[row]} of the file"


def split_by_table(source: Table, names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the rows that have a mark; return those about the batch, and about known-normal rows.

    If `names`, the columns of the batch, have one that is called "source", it tells nothing.
    """
    frame = _read_marked(source, names)
    if SOURCE not in frame.columns or SOURCE in _columns_of(names, list(frame.columns)).values():
        return frame, frame[:0]
    words = frame[SOURCE].map(_word).astype(str).str.lower()
    unknown = ~words.isin(["", OF_BATCH, OF_NORMAL])
    if unknown.any():
        raise ValueError(
            f"{source.name} has {frame[SOURCE][unknown].iloc[0]!r} in its column {SOURCE!r}, which "
            f"is not understood; write {OF_NORMAL} (a known-normal row), {OF_BATCH} or nothing"
        )
    return frame[words != OF_NORMAL], frame[words == OF_NORMAL]


def read_mark_table(
    frame: pd.DataFrame, source: Table, batch: Table, id_name: str | None
) -> MarkTable:
    """Read the marks of rows from `source`, and find the columns that tell which rows are meant.

    Columns of the batch may be called as in `Detection.table`.
    """
    if MARK in batch.names:
        raise ValueError(
            f"{batch.name} has a column {MARK!r} of its own, which would be confused with that of "
            "the marks; rename it"
        )
    columns = _columns_of(batch.names, list(frame.columns))
    key = id_name if id_name in columns else None
    if key is None and ROW in frame.columns and ROW not in columns.values():
        key = ROW
    names = [""] * len(frame) if key is None else row_names(frame[columns.get(key, ROW)])
    table = frame[list(columns.values())].set_axis(list(columns), axis=1)
    words = [_word(mark) for mark in frame[MARK]]
    marks = [_MEANINGS.get(word.lower(), "") for word in words]
    marked = MarkTable(source, table, key, names, marks)
    if "" in marks:
        row = marks.index("")
        raise ValueError(
            f"{source.name} marks {marked.title(row)} as {words[row]!r}, which is not a mark; "
            "write anomaly, normal or unsure, or leave it empty"
        )
    return marked


def _read_marked(source: Table, names: list[str]) -> pd.DataFrame:
    """Read the rows with a mark; the table may have many others, and be larger than memory.

    The columns "mark", "row" and "source" may also be written "Mark". A column that the batch has
    as well, its `names`, is none of them, unless it is written just so.
    """
    found = {find_column(word, source.names): word for word in (MARK, ROW, SOURCE)}
    ours = {
        column: word
        for column, word in found.items()
        if column is not None and (column == word or find_column(column, names) is None)
    }
    if MARK not in ours.values():
        there = list_quoted(source.names)
        raise ValueError(
            f"{source.name} has no column {MARK!r} with the marks; its columns are {there}"
        )
    source.check()
    chunks = (chunk.rename(columns=ours) for chunk in source.chunks())
    frame = pd.concat([chunk[[bool(_word(mark)) for mark in chunk[MARK]]] for chunk in chunks])
    if not len(frame):
        raise ValueError(
            f"{source.name} has no marks in its column {MARK!r}; write anomaly, normal or unsure "
            "there"
        )
    return _without_apostrophes(frame)


def _word(mark: Any) -> str:
    return "" if pd.isna(mark) else str(mark).strip()


def find_rows(marked: MarkTable, batch: Table) -> tuple[NDArray[np.intp], dict[int, str]]:
    """Find the rows of a batch that marks are about.

    A row is found if the batch has its name (or its row number), and the two agree in all columns
    that both tables have: names and numbers often occur again in other tables. Return the position
    of each, -1 if it is not found, and by row of the marks why it is not.
    """
    pairs = _candidates(marked, batch)
    positions = np.full(len(marked.marks), -1, dtype=np.intp)
    reasons = {row: _why_not_there(marked, row, batch.name) for row in range(len(positions))}
    for (row, at), difference in zip(pairs, _differences(marked, batch, pairs), strict=True):
        if difference:
            reasons[row] = f"{marked.title(row)} has {difference} in {batch.name}"
            continue
        if positions[row] >= 0:
            raise ValueError(
                f"{marked.source.name} marks {marked.title(row)}, which names several rows of "
                f"{batch.name} (rows {positions[row]} and {at}); mark rows by their numbers in a "
                f"column {ROW!r}, or make the names unique"
            )
        positions[row] = at
    return positions, {row: why for row, why in reasons.items() if positions[row] < 0}


def _differences(marked: MarkTable, batch: Table, pairs: list[tuple[int, int]]) -> list[str]:
    """Return how marked rows differ from rows of the batch; an empty text if they agree."""
    columns = marked.compared
    if not columns or not pairs:
        return [""] * len(pairs)
    rows, candidates = np.array(pairs).T
    different, places = np.unique(candidates, return_inverse=True)
    theirs = batch.take(different, columns).iloc[places].set_axis(columns, axis=1)
    ours = marked.table.iloc[rows][columns]
    agree = compare_cells(ours, theirs)
    first = np.argmin(agree, axis=1)
    return [
        "" if agree[at].all() else f"{columns[n]} {ours.iloc[at, n]}, but {theirs.iloc[at, n]}"
        for at, n in enumerate(first)
    ]


def row_names(column: pd.Series) -> list[str]:
    """Return the values of a column as names of rows, the same for 1, 1.0 and "1"."""
    return [
        ""
        if is_missing
        else (number_text(value) if isinstance(value, float) else str(value)).strip()
        for value, is_missing in zip(column, column.isna(), strict=True)
    ]


def _candidates(marked: MarkTable, batch: Table) -> list[tuple[int, int]]:
    """Return pairs of rows of the marks and positions in the batch that have the same name."""
    wanted: dict[str, list[int]] = {}
    for row, name in enumerate(marked.names):
        if name:
            wanted.setdefault(name, []).append(row)
    pairs: list[tuple[int, int]] = []
    if marked.is_by_number:
        for name, rows in wanted.items():
            if not name.isdecimal():
                raise ValueError(
                    f"{marked.source.name} marks row {name!r}, which is not a row number; rows "
                    "are counted from 0"
                )
            pairs += [(row, int(name)) for row in rows if int(name) < batch.n_rows]
    elif marked.key is not None:
        first = 0
        for chunk in batch.chunks([marked.key]):
            for at, name in enumerate(row_names(chunk.iloc[:, 0])):
                pairs += [(row, first + at) for row in wanted.get(without_apostrophe(name), ())]
            first += len(chunk)
    return pairs


def _why_not_there(marked: MarkTable, row: int, batch: str) -> str:
    if marked.key is None:
        return f"it has neither a column {ROW!r} nor one that id names"
    if not marked.names[row]:
        return f"{marked.title(row)} has no {marked.key}"
    return f"{batch} has no {marked.title(row)}"


def _without_apostrophes(frame: pd.DataFrame) -> pd.DataFrame:
    """Undo what `qms22 detect` does to texts, and headings, that look like formulas."""

    def plain(value: object) -> object:
        return without_apostrophe(value) if isinstance(value, str) else value

    frame = frame.rename(columns=lambda name: without_apostrophe(str(name)))
    texts = [name for name, dtype in frame.dtypes.items() if dtype.kind not in "iufbM"]
    return frame.assign(**{name: frame[name].map(plain) for name in texts})


def _columns_of(names: list[str], there: list[str]) -> dict[str, str]:
    """Return what columns of the batch are called in a table of marks, if it has them.

    A column that clashes with a result has another name in the table of a `Detection`.
    """
    others = [name for name in there if name not in RESULTS]
    matched = {known: name for name, known in match_names(others, names).items()}
    found = {}
    for name in names:
        renamed = free_name(name, {*RESULTS, *names}) if name in RESULTS else name
        found[name] = next((each for each in (renamed, name) if each in there), matched.get(name))
    return {name: column for name, column in found.items() if column is not None}
