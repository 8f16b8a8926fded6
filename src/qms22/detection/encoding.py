"""Two tables as the matrices that a detector takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.warn import warn_user
from qms22.detection.aligning.periods import find_periods
from qms22.detection.marks.table_marks import MarkedRows
from qms22.estimators.marks import Marks
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import (
    Cells,
    Columns,
    count_rows,
    join_cells,
    missing_cells,
    take_rows,
)
from qms22.tables.columns.plans import NoColumnError


class EncodedTables(NamedTuple):
    """Two tables as matrices.

    Parameters
    ----------
    encoder : TabularEncoder
    normal_positions, positions : ndarray of int
        Positions of the rows that are used in the tables that were given.
    known : LazyRows
        The normal rows; a detector that learns from a draw of them encodes no others.
    rows : ndarray
        Those of the batch, encoded.
    marked : sequence of MarkedRows
        Those that are used.
    marks : Marks
        These rows, encoded.
    normal_cells, batch_cells : dict from str to Cells
        All columns of the rows that are used, as the encoder understands them.
    whole : tuple of dict from str to Cells
        The same of all rows, also of those that are dropped.
    """

    encoder: TabularEncoder
    normal_positions: NDArray[np.intp]
    positions: NDArray[np.intp]
    known: LazyRows
    rows: NDArray[np.float64]
    marked: Sequence[MarkedRows]
    marks: Marks
    normal_cells: dict[str, Cells]
    batch_cells: dict[str, Cells]
    whole: tuple[dict[str, Cells], dict[str, Cells]]


def encode_tables(
    normal: Columns,
    batch: Columns,
    encoder: TabularEncoder,
    *,
    marked: Sequence[MarkedRows] = (),
    names: tuple[str, str] = ("the normal table", "the unlabeled table"),
    is_whole: bool = True,
) -> EncodedTables:
    """Learn an encoder from the rows of both tables alike, and encode both.

    What a column is, its levels and its usual value do not depend on which table a row is in: a
    rare level of the batch is as rare as one of the normal table. A column that only says when rows
    were made is left out; see `find_periods`.

    Parameters
    ----------
    normal, batch : mapping of str to Cells
        Their columns, as they are stored.
    encoder : TabularEncoder
        It has learned nothing yet, and says which columns to leave out, what others are, and what
        to do with missing values.
    marked : sequence of MarkedRows
        Rows that are known to be anomalies or normal. The encoder does not learn from them, so that
        marks never change what a column is: a level that only they have stays unseen.
    names : tuple of str
        The names of the two tables in messages.
    is_whole : bool
        Whether these are all rows of the batch. If not, a level that none of them has counts as a
        rare one, where there are rare ones: else known-normal rows, which the encoder has seen,
        would have an advantage over the other rows of the batch.
    """
    n_normal, n_batch = count_rows(normal), count_rows(batch)
    places, positions = np.arange(n_normal), np.arange(n_batch)
    encoder, cells = _fit_both(encoder, normal, batch, names)
    if not is_whole:
        encoder._pool_unseen()
    normal_cells = {name: each.part(slice(n_normal)) for name, each in cells.items()}
    batch_cells = {name: each.part(slice(n_normal, None)) for name, each in cells.items()}
    whole = normal_cells, batch_cells
    with errors_named(names[0]):
        if encoder.missing == "drop":
            places = _complete_rows(encoder, normal_cells)
            normal_cells = take_rows(normal_cells, places)
        encoder._lazy_matrix(normal_cells)
    with errors_named(names[1]):
        if encoder.missing == "drop":
            positions = _complete_rows(encoder, batch_cells)
            batch_cells = take_rows(batch_cells, positions)
        encoder._lazy_matrix(batch_cells)
    if periods := find_periods(encoder, normal_cells, batch_cells):
        encoder._leave_out(periods)
    return EncodedTables(
        encoder,
        places,
        positions,
        LazyRows(encoder._lazy_matrix(normal_cells)),
        encoder._lazy_matrix(batch_cells)[:],
        *_encode_marked(encoder, marked),
        normal_cells,
        batch_cells,
        whole,
    )


def _fit_both(
    encoder: TabularEncoder, normal: Columns, batch: Columns, names: tuple[str, str]
) -> tuple[TabularEncoder, dict[str, Cells]]:
    """Learn from the rows of both tables alike; return them as the encoder understands them.

    Only if no column would be left, columns are what they are in the known-normal table: levels
    that recur there may be too many for both tables.
    """
    lacking = missing_cells(count_rows(normal)), missing_cells(count_rows(batch))
    everything = {
        name: join_cells(name, normal.get(name, lacking[0]), batch.get(name, lacking[1]))
        for name in dict.fromkeys([*normal, *batch])
    }
    try:
        return encoder, encoder._fit_cells(everything)
    except NoColumnError:
        with errors_named(names[0]):
            encoder.fit(normal)
        kinds = {name: encoder._plans_by_name[name].kind for name in encoder.groups_}
        encoder = TabularEncoder(ignore=encoder.ignore, missing=encoder.missing, kinds=kinds)
        return encoder, encoder._fit_cells(everything)
    except ValueError:
        # The message should name the table that the cells are in.
        for table, name in zip((normal, batch), names, strict=True):
            with errors_named(name):
                encoder.fit(table)
        raise


def _encode_marked(
    encoder: TabularEncoder, marked: Sequence[MarkedRows]
) -> tuple[list[MarkedRows], Marks]:
    """Return the marked rows that are used, as tables and encoded."""
    used = []
    matrices = [np.empty((0, len(encoder.typical_row_)))]
    for name, table, is_anomaly in marked:
        with errors_named(name):
            usable, matrix = encoder._transform_part(table)
        if n_dropped := len(table) - len(usable):
            warn_user(
                f"{name}: {n_dropped} of {len(table)} marked rows have missing values, and are not "
                "learned from",
            )
        used.append(MarkedRows(name, table.iloc[usable], is_anomaly[usable]))
        matrices.append(matrix)
    rows = np.concatenate(matrices)
    are_anomalies = np.concatenate([np.empty(0, dtype=bool), *(part.is_anomaly for part in used)])
    return used, Marks(rows[are_anomalies], rows[~are_anomalies])


@contextmanager
def errors_named(table: str) -> Iterator[None]:
    """Put the name of a table before what is wrong with it."""
    try:
        yield
    except ValueError as error:
        error.args = (f"{table}: {error}",)
        raise


def _complete_rows(encoder: TabularEncoder, cells: Columns) -> NDArray[np.intp]:
    """Return the positions of the rows without missing values; raise ValueError if none is left."""
    usable = encoder.usable_rows(cells)
    if not len(usable):
        raise ValueError("every row has missing values; impute them instead")
    return usable
