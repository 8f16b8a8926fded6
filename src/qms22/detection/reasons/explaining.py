"""Why the flagged rows are suspicious."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22._runtime.stages import begin_stage
from qms22.checks.check import Shower
from qms22.decisions.comparison import Comparison
from qms22.detection.encoding import EncodedTables
from qms22.detection.findings.finding import Finding, find_findings
from qms22.detection.inputs import InputTables
from qms22.detection.reasons.blame import CLEARLY_ODD
from qms22.detection.reasons.row_reasons import (
    RowReason,
    blamed_reasons,
    cell_reasons,
    combination_reasons,
)
from qms22.detection.scorer import TableScorer
from qms22.tables import Table, TabularEncoder
from qms22.tables.columns.cells import Columns, take_rows
from qms22.tables.texts.words import number_text

if TYPE_CHECKING:
    from qms22.detection.result import Detection

# To find the cell to blame a row is looked at once per column, and few readers need the reasons of
# more rows.
MOST_EXPLAINED = 1000

# A finding is shown if its p-value is at most the usual level, or if hardly any normal row is like
# it: one in 500.
_LEVEL = 0.05
_MOST_NORMAL = 0.002

# Reasons that are not clearly odd come after what the detector says. Small tables have no surprises
# so large; there this share of normal rows counts.
_RARE = 0.01


def shower(encoder: TabularEncoder) -> Shower:
    """Return the function that writes numbers of columns as the table does."""
    plans = encoder._plans_by_name

    def show(name: str, value: float) -> str:
        # Numbers in texts have no plan of their own.
        return plans[name].show(value) if name in plans else number_text(value)

    return show


def rows_to_explain(scores: NDArray[np.float64], explained: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the most suspicious of the rows that are to be explained."""
    rows = np.flatnonzero(explained)
    return rows[np.argsort(-scores[rows], kind="stable")[:MOST_EXPLAINED]]


def _explain(
    scorer: TableScorer, table: Table, positions: NDArray[np.intp], read: Columns, normal: Columns
) -> dict[int, list[RowReason]]:
    """Return the reasons of some rows of a table, which the checks have read, by position.

    Each has at least one, the strongest first. The known-normal rows, if there are any, are to
    count those that are alike.
    """
    if not len(positions):
        return {}
    show, rows = shower(scorer.encoder), _as_written(read, table, positions)
    reasons = blamed_reasons(scorer.checks, rows, show)
    strengths = np.array([found[0].strength if found else 0.0 for found in reasons])
    shares = exact.exp(-scorer.checks.scale.scores(strengths))
    # Several cells that are odd by themselves are clearly odd together.
    in_all = np.array([sum(each.strength for each in found) for found in reasons])
    places = np.flatnonzero((in_all < CLEARLY_ODD) & (shares > _RARE))
    if len(places):
        some = take_rows(rows, places)
        _, matrix = scorer.encoder._transform_part(some)
        together = combination_reasons(scorer.detector, scorer.encoder, matrix, some, normal, show)
        for place, reason in zip(places.tolist(), together, strict=True):
            if reason is not None:
                others = [each for each in reasons[place] if each.columns[:1] != reason.columns[:1]]
                reasons[place] = [reason, *others[:1]]
    return dict(zip(positions.tolist(), reasons, strict=True))


def explain_batch(
    tables: InputTables, encoded: EncodedTables, scorer: TableScorer, rows: NDArray[np.intp]
) -> dict[int, list[RowReason]]:
    """Return the reasons of some rows of a batch, by position."""
    begin_stage("explaining")
    normal = scorer.checks.read(encoded.normal_cells)
    if not tables.is_batch_whole:
        return explain_read(scorer, tables.batch, rows, normal)
    # Among all rows: how often a row is there is a reason, too.
    read = scorer.checks.read(encoded.batch_cells)
    some = take_rows(read, np.searchsorted(encoded.positions, rows))
    return _explain(scorer, tables.batch, rows, some, normal)


def explain_read(
    scorer: TableScorer, table: Table, rows: NDArray[np.intp], normal: Columns
) -> dict[int, list[RowReason]]:
    """Read some rows of a table, and return their reasons by position."""
    typed = scorer.encoder._typed_cells(table.columns(rows=rows))
    return _explain(scorer, table, rows, scorer.checks.read(typed, is_part=True), normal)


def _as_written(columns: Columns, table: Table, rows: NDArray[np.intp]) -> Columns:
    """Return columns of some rows of a table, with numbers and dates also as the table has them."""
    names = [each for each in table.names if each in columns and not columns[each].is_text]
    texts = table.written(names, rows)
    return {**columns, **{each: replace(columns[each], written=texts[each]) for each in texts}}


def group_rows(
    encoded: EncodedTables,
    scorer: TableScorer,
    flagged: NDArray[np.bool_],
    reasons: Mapping[int, Sequence[RowReason]],
    comparison: Comparison | None,
) -> tuple[Finding, ...]:
    """Return the findings among the flagged rows that were explained."""
    begin_stage("grouping")
    rows = np.array(sorted(row for row in reasons if flagged[row]), dtype=np.intp)
    places = np.searchsorted(encoded.positions, rows)
    # Of a batch that is not read whole, only the rows that were drawn can be compared.
    is_read = encoded.positions[np.minimum(places, len(encoded.positions) - 1)] == rows
    rows, places = rows[is_read], places[is_read]
    names = scorer.checks.roles.names
    show = shower(encoded.encoder)
    normal, batch = (
        {name: scorer.checks.comparable(cells[name]) for name in names}
        for cells in (encoded.normal_cells, encoded.batch_cells)
    )
    columns = [
        [
            tuple(name for name in each.columns if name in names)
            for each in reasons[row]
            if not each.columns or (each.strength >= CLEARLY_ODD and {*each.columns} & {*names})
        ]
        for row in rows.tolist()
    ]
    shows = {name: partial(show, name) for name in names}
    found = find_findings(normal, batch, places, columns, shows)
    telling = []
    for each in found:
        is_significant = each.p_value is not None and each.p_value <= _LEVEL
        if is_significant or each.normal_share is None or each.normal_share <= _MOST_NORMAL:
            positions = encoded.positions[each.rows]
            fewest = None if comparison is None else comparison.fewest_outliers(positions)
            telling.append(replace(each, rows=positions, fewest_outliers=fewest))
    return tuple(telling)


def reasons_of(
    found: Detection, rows: NDArray[np.intp], cells: Columns | None = None
) -> list[list[RowReason] | None]:
    """Return the reasons of rows, by position; None where nothing was learned about single cells.

    Rows that were not explained have what is odd about their single cells. The cells, as the
    encoder understands them, are read if they are not given.
    """
    reasons: list[list[RowReason] | None] = [found.reasons.get(row) for row in rows.tolist()]
    if None in reasons and found.checks is not None and found.odd is not None:
        if cells is None:
            cells = found.encoder._typed_cells(found.source.columns(rows=rows))
        read, odd = _as_written(found.checks.read(cells), found.source, rows), found.odd.take(rows)
        of_cells = cell_reasons(found.checks, read, odd, shower(found.encoder))
        pairs = zip(reasons, of_cells, strict=True)
        reasons = [other if known is None else known for known, other in pairs]
    return reasons
