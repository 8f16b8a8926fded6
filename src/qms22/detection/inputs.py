"""The two tables of a search, and the rows that are drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.column_names import find_column
from qms22.tables.columns.date_parts import split_part
from qms22.tables.texts.words import list_some


class InputTables(NamedTuple):
    """Known-normal rows, rows to search, how many of each to draw at most, marks, and notes."""

    normal: Table
    batch: Table
    max_samples: int | None
    marks: TableMarks | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_searched(self) -> int:
        """Number of rows of the batch that are not marked as anomalies or as normal."""
        return self.batch.n_rows - (0 if self.marks is None else len(self.marks.decided))

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
    tables = InputTables(
        open_table(normal, name="the normal frame"),
        open_table(batch, name="the batch"),
        max_samples,
    )
    most_drawn = [table.most_drawn for table in tables[:2] if table.most_drawn is not None]
    if max_samples is None and most_drawn:
        tables = tables._replace(max_samples=min(most_drawn))
    elif max_samples is None and is_large(*tables[:2]):
        max_samples = rows_to_draw(len(tables.batch.names))
        warn_user(
            f"{tables.normal.name} and {tables.batch.name} are too large to hold in memory, "
            f"and are read part by part; at most {max_samples:,} rows of each are drawn to learn "
            "from (max_samples)",
        )
        tables = tables._replace(max_samples=max_samples)
    elif max_samples is None:
        tables = InputTables(tables.normal.load(), tables.batch.load(), None)
    tables.batch.check()
    tables.normal.check()
    return tables


def find_ignored(tables: InputTables, ignore: Sequence[str | int]) -> list[str]:
    """Return the columns to leave out, as the tables call them.

    They may be parts of a date, such as "sold (days)". Raise ValueError if no table has a column.
    """

    def find(name: str) -> str | None:
        return find_column(name, tables.batch.names) or find_column(name, tables.normal.names)

    found = []
    for asked in map(str, ignore):
        column, part = split_part(asked)
        if (name := find(asked)) is None and (name := find(column)) is not None:
            name += part
        if name is None:
            names = dict.fromkeys([*tables.batch.names, *tables.normal.names])
            listed = list_some([repr(each) for each in names])
            raise ValueError(f"there is no column {asked!r} to ignore; the columns are {listed}")
        found.append(name)
    return found


def align_tables(
    tables: InputTables, ignore: Sequence[str], kinds: Mapping[str, str] | None = None
) -> tuple[InputTables, list[str]]:
    """Call the columns of the known-normal table as the batch does, and write values as it does.

    Parameters
    ----------
    tables : InputTables
    ignore : sequence of str
        Columns of the batch that are left out.
    kinds : mapping of str to str, optional
        What columns are, where the user has said so; such columns are not rewritten.

    Returns
    -------
    tables : InputTables
        With notes about both tables.
    ignore : list of str
        The columns to leave out: these, and those that only one of the tables has.
    """
    normal, batch = tables.normal, tables.batch
    aligned = align_table(normal, batch.names, batch.name, ignore)
    notes = [*normal.notes, *(note for note in batch.notes if note not in normal.notes)]
    notes += aligned.notes
    notes += left_out(aligned.extra, normal.name, batch.name)
    notes += left_out(aligned.lacking, batch.name, normal.name)
    ignored = [*ignore, *aligned.extra, *aligned.lacking]
    normal, batch, others = match_writing(aligned.table, batch, ignored, kinds or ())
    notes += others
    return tables._replace(normal=normal, batch=batch, notes=tuple(notes)), ignored


class DrawnRows(NamedTuple):
    """Columns of some rows of two tables, as they were read, and positions of these rows there."""

    normal: dict[str, Cells]
    batch: dict[str, Cells]
    normal_positions: NDArray[np.intp]
    positions: NDArray[np.intp]


def draw(tables: InputTables, seed: int | None) -> DrawnRows:
    """Draw rows of two tables, or take all if there are few; leave out rows with a mark.

    These are the known-normal rows marked as anomalies, and the rows of the batch that are marked
    as anomalies or as normal.
    """
    rng = check_random_state(seed)
    places = [draw_rows(table.n_rows, tables.max_samples, rng) for table in tables[:2]]
    if tables.marks is not None:
        places[0] = np.setdiff1d(places[0], tables.marks.removed)
        places[1] = np.setdiff1d(places[1], tables.marks.decided)
    normal, batch = tables.normal.columns(rows=places[0]), tables.batch.columns(rows=places[1])
    return DrawnRows(normal, batch, *places)
