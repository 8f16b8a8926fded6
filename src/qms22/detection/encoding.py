"""Two tables as the matrices that a detector takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.warn import warn_user
from qms22.checks.cases import staying_levels
from qms22.checks.copies import row_hashes
from qms22.checks.counting import LEAST_RECURRING
from qms22.checks.sequences.in_time import is_of_another_time, time_order
from qms22.checks.single import LEAST_ENTITIES
from qms22.checks.surprise import NumberReference
from qms22.detection.aligning.periods import CASES_NOTE, find_periods
from qms22.detection.marks.table_marks import MarkedRows
from qms22.estimators.marks import Marks
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import (
    Cells,
    Columns,
    count_rows,
    missing_cells,
    part_of_rows,
    take_rows,
)
from qms22.tables.columns.kinds import level_counts
from qms22.tables.columns.matrix import LazyMatrix
from qms22.tables.columns.plan import ColumnPlan
from qms22.tables.columns.refusals import NoColumnError
from qms22.tables.columns.typed import join_cells

# Known-normal rows among which the most similar one is looked for.
_MOST_COMPARED = 7000
# Numbers of a row with a new level are no further out than this for a detector.
_USUAL = (0.01, 0.99)


class EncodedTables(NamedTuple):
    """The rows of two tables that are used: positions, matrices, and columns with their cells.

    `known` and `rows` are the normal rows and those of the batch, encoded, and `marks` the marked
    ones. `whole` has the columns of both tables with all rows, also those that are dropped.
    """

    encoder: TabularEncoder
    normal_positions: NDArray[np.intp]
    positions: NDArray[np.intp]
    known: LazyRows
    rows: NDArray[np.float64]
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
    may_move: Mapping[str, str] | None = None,
) -> EncodedTables:
    """Learn an encoder from the rows of both tables alike, and encode both.

    What a column is, its levels and its usual value do not depend on which table a row is in: a
    rare level of the batch is as rare as one of the normal table. A column that only says when rows
    were made is left out; see `find_periods`. So are columns that `may_move`, with a note why.

    The encoder does not learn from `marked` rows, so that marks never change what a column is: a
    level that only they have stays unseen. Unless the batch `is_whole`, a level that none of these
    rows has counts as a rare one, where there are rare ones: else known-normal rows, which the
    encoder has seen, would have an advantage over the other rows of the batch. `names` are those
    of the two tables in messages.
    """
    n_normal = count_rows(normal)
    encoder, cells = _fit_both(encoder, normal, batch, names)
    if not is_whole:
        encoder._change_plans(ColumnPlan.pool_unseen)
    whole = (part_of_rows(cells, slice(n_normal)), part_of_rows(cells, slice(n_normal, None)))
    places, normal_cells, known = _encode(encoder, whole[0], names[0])
    positions, batch_cells, _ = _encode(encoder, whole[1], names[1])
    left_out = {name: why for name, why in (may_move or {}).items() if name in encoder.groups_}
    if left_out := find_periods(encoder, normal_cells, batch_cells) | left_out:
        encoder._leave_out(left_out, [name for name in left_out if left_out[name] == CASES_NOTE])
        known = encoder._lazy_matrix(normal_cells)
    encoder._moves = _moves(encoder, normal_cells, batch_cells)
    neutral = _staying_levels(encoder, normal_cells, batch_cells)
    encoder._change_plans(lambda plan: replace(plan, neutral=neutral.get(plan.name, ())))
    _, rows = encoder._transform_part(batch_cells)
    if is_whole:
        # Parts of a large batch are encoded one by one, and without this.
        _fill_in(encoder, neutral, normal_cells, batch_cells, rows)
    matrices = LazyRows(known), rows, _encode_marked(encoder, marked)
    return EncodedTables(encoder, places, positions, *matrices, normal_cells, batch_cells, whole)


def _moves(
    encoder: TabularEncoder, normal: Columns, batch: Columns
) -> dict[str, tuple[float, float]]:
    """Return by how much columns of numbers have moved, where the whole batch has."""
    moves: dict[str, tuple[float, float]] = {}
    for name in _used(encoder, "number"):
        reference = NumberReference.learn(normal[name].values)
        if reference is not None:
            aligned = reference.aligned(batch[name].values)
            moves |= {} if aligned is reference else {name: aligned.move}
    return moves


def _used(encoder: TabularEncoder, kind: str) -> list[str]:
    """Return the columns of a kind that are used."""
    return [column.name for column in encoder.columns_ if column.kind == kind and column.outputs]


def _staying_levels(
    encoder: TabularEncoder, normal: Columns, batch: Columns
) -> dict[str, tuple[str, ...]]:
    """Return the levels of categories that are new in a later batch and there all along.

    What the whole batch does makes none of its rows suspicious. Of many, such as customers, those
    with several rows are enough: a new level would tell the batch from the known-normal rows.
    """
    if not is_of_another_time(normal, batch):
        return {}
    known, recurring = {}, {}
    for name in _used(encoder, "category"):
        cells, new = normal[name], batch[name]
        codes = np.unique(cells.values[cells.has_value])
        known[name] = levels = [cells.levels[code] for code in codes]
        if len(levels) >= LEAST_ENTITIES:
            is_new = new.level_places(levels) < 0
            several = compress(new.levels, is_new & (level_counts(new) >= LEAST_RECURRING))
            recurring[name] = tuple(several)
    return staying_levels(known, take_rows(batch, time_order(batch))) | recurring


def _fill_in(
    encoder: TabularEncoder,
    neutral: Mapping[str, tuple[str, ...]],
    normal: Columns,
    batch: Columns,
    rows: NDArray[np.float64],
) -> None:
    """Fill in the matrix of a batch, in place, where rows have levels that say nothing.

    Of a new supplier a detector knows nothing: it should look like the known one that is most like
    it, and not like none. Its prices, or the odometer of a new bus, may be higher than all others.
    """
    is_new = {name: batch[name].is_among(levels) for name, levels in neutral.items() if levels}
    if not is_new:
        return
    places = np.flatnonzero(np.any(list(is_new.values()), axis=0))
    # In an order that depends on values alone, not on the order in which rows are given.
    drawn = row_hashes(normal, list(encoder.groups_)).argsort(kind="stable")[:_MOST_COMPARED]
    known = encoder._lazy_matrix(normal)[drawn]
    numbers = [encoder.groups_[name][0] for name in _used(encoder, "number")]
    inside = np.clip(rows[:, numbers], *np.quantile(known[:, numbers], _USUAL, axis=0))
    rows[places[:, np.newaxis], numbers] = inside[places]
    spreads = known.std(axis=0)
    for name in is_new:
        spreads[list(encoder.groups_[name])] = 0.0
    others = np.flatnonzero(spreads)
    # Here, as its import takes as long as a small search, and few batches need it.
    from sklearn.neighbors import NearestNeighbors

    # Not by products of matrices, whose last bits depend on the CPU.
    model = NearestNeighbors(n_neighbors=1, algorithm="kd_tree")
    model.fit(known[:, others] / spreads[others])
    alike = rows[places[:, np.newaxis], others] / spreads[others]
    sources = np.zeros(len(rows), dtype=np.intp)
    sources[places] = model.kneighbors(alike, return_distance=False)[:, 0]
    for name, is_filled in is_new.items():
        to = np.array(encoder.groups_[name])
        rows[np.flatnonzero(is_filled)[:, np.newaxis], to] = known[sources[is_filled]][:, to]


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


def _encode(
    encoder: TabularEncoder, cells: dict[str, Cells], name: str
) -> tuple[NDArray[np.intp], dict[str, Cells], LazyMatrix]:
    """Return the rows that are used: positions, columns and matrix."""
    rows = np.arange(count_rows(cells))
    with errors_named(name):
        if encoder.missing == "drop":
            rows = encoder.usable_rows(cells)
            if not len(rows):
                raise ValueError("every row has missing values; impute them instead")
            cells = take_rows(cells, rows)
        return rows, cells, encoder._lazy_matrix(cells)


def _encode_marked(encoder: TabularEncoder, marked: Sequence[MarkedRows]) -> Marks:
    are_anomalies = [np.empty(0, dtype=bool)]
    matrices = [np.empty((0, len(encoder.typical_row_)))]
    for name, table, is_anomaly in marked:
        with errors_named(name):
            usable, matrix = encoder._transform_part(table)
        if n_dropped := len(table) - len(usable):
            warn_user(
                f"{name}: missing values in {n_dropped:,} of {len(table):,} marked rows, which are "
                "not learned from"
            )
        are_anomalies.append(is_anomaly[usable])
        matrices.append(matrix)
    rows, is_outlier = np.concatenate(matrices), np.concatenate(are_anomalies)
    return Marks(rows[is_outlier], rows[~is_outlier])


@contextmanager
def errors_named(table: str) -> Iterator[None]:
    """Put the name of a table before what is wrong with it."""
    try:
        yield
    except ValueError as error:
        error.args = (f"{table}: {error}",)
        raise
