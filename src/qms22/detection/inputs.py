"""The two tables of a search, and the rows that are drawn from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from qms22._runtime.chunks import draw_rows
from qms22._runtime.warn import warn_user
from qms22.detection.aligning.align import align_table, left_out
from qms22.detection.aligning.same_writing import match_writing
from qms22.detection.marks.table_marks import TableMarks
from qms22.detection.rows import TableLike
from qms22.detection.streaming import is_large, rows_to_draw
from qms22.tables import Table, open_table
from qms22.tables.columns.column_names import find_column
from qms22.tables.columns.date_parts import split_part
from qms22.tables.texts.words import list_quoted


class InputTables(NamedTuple):
    """Known-normal rows, rows to search, how many of each to draw at most, marks, and notes."""

    normal: Table
    batch: Table
    max_samples: int | None
    marks: TableMarks | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_batch_whole(self) -> bool:
        """Whether every row of the batch is drawn."""
        return self._is_whole(self.batch)

    @property
    def are_whole(self) -> bool:
        """Whether every row of both tables is drawn."""
        return self._is_whole(self.normal) and self._is_whole(self.batch)

    @property
    def is_scattered(self) -> bool:
        """Whether the batch is scored in parts on other machines; each may have copies of a row."""
        return self.batch.is_distributed and not self.is_batch_whole

    def _is_whole(self, table: Table) -> bool:
        return self.max_samples is None or table.n_rows <= self.max_samples


def open_tables(normal: TableLike, batch: TableLike, max_samples: int | None) -> InputTables:
    """Open two tables; read them if they fit into memory, or limit the rows to learn from."""
    known = open_table(normal, name="the normal frame")
    searched = open_table(batch, name="the batch")
    most_drawn = [table.most_drawn for table in (known, searched) if table.most_drawn is not None]
    if max_samples is None and most_drawn:
        max_samples = min(most_drawn)
    elif not most_drawn and is_large(known, searched):
        asked, max_samples = max_samples, rows_to_draw(max_samples, known, searched)
        if asked != max_samples:
            warn_user(
                f"{known.name} and {searched.name} are too large to hold in memory, and are read "
                f"part by part; at most {max_samples:,} rows of each are drawn to learn from "
                "(max_samples)"
            )
    elif max_samples is None:
        known, searched = known.load(), searched.load()
    searched.check()
    known.check()
    return InputTables(known, searched, max_samples)


def find_ignored(tables: InputTables, ignore: Sequence[str | int]) -> list[str]:
    """Return the columns to leave out, as the tables call them.

    They may be parts of a date, such as "sold (days)". Raise ValueError if no table has a column.
    """
    names, found = (tables.batch.names, tables.normal.names), []
    for asked in map(str, ignore):
        ways = [(asked, ""), split_part(asked)]
        columns = [(find_column(name, there), part) for name, part in ways for there in names]
        name = next((f"{column}{part}" for column, part in columns if column is not None), None)
        if name is None:
            listed = list_quoted(dict.fromkeys([*names[0], *names[1]]))
            raise ValueError(f"there is no column {asked!r} to ignore; the columns are {listed}")
        found.append(name)
    return found


def check_roles(
    tables: InputTables,
    id_name: str | None,
    roles: Mapping[str, str | None],
    unread: Collection[str],
) -> None:
    """Raise ValueError if a column of `by` or `time`, by its option, is not read."""
    for option, name in roles.items():
        if name not in unread:
            continue
        given = f"{option}={name!r}"
        if name == id_name:
            raise ValueError(f"{given} and id={name!r} name the same column; leave one of them out")
        if name not in tables.normal.names:
            raise ValueError(
                f"{given}: {tables.normal.name} has no such column; name another one, or add it to "
                "the known-normal rows"
            )
        raise ValueError(f"{given} is a column to ignore; leave one of the two options out")


def align_tables(
    tables: InputTables, ignore: Sequence[str], kinds: Mapping[str, str] | None = None
) -> tuple[InputTables, list[str]]:
    """Rename the columns of the known-normal table to the batch's, and convert its values.

    Columns of which the user has said the kind are not rewritten. Return the tables with notes,
    and the columns to leave out: those to `ignore`, and those that only one of the tables has.
    """
    normal, batch = tables.normal, tables.batch
    aligned = align_table(normal, batch.names, batch.name, ignore)
    ignored = [*ignore, *aligned.extra, *aligned.lacking]
    notes = [*dict.fromkeys([*normal.notes, *batch.notes]), *aligned.notes]
    notes += left_out(aligned.extra, normal.name, batch.name)
    notes += left_out(aligned.lacking, batch.name, normal.name)
    normal, batch, others = match_writing(aligned.table, batch, ignored, kinds)
    return tables._replace(normal=normal, batch=batch, notes=(*notes, *others)), ignored


def draw(tables: InputTables, seed: int | None) -> list[NDArray[np.intp]]:
    """Draw rows of both tables, or take all if there are few; return their positions.

    Known-normal rows marked as anomalies are left out, and so are the rows of the batch that are
    marked as anomalies or as normal.
    """
    rng = check_random_state(seed)
    places = [draw_rows(table.n_rows, tables.max_samples, rng) for table in tables[:2]]
    if tables.marks is not None:
        places[0] = np.setdiff1d(places[0], tables.marks.removed)
        places[1] = np.setdiff1d(places[1], tables.marks.decided)
    return places
