"""What the page of a detection shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from qms22._runtime.chunks import spread_rows
from qms22.detection.marks.mark_table import MARK
from qms22.detection.reasons.explaining import reasons_of
from qms22.detection.results.result_table import beside
from qms22.detection.results.row_context import row_contexts
from qms22.report.content import NAME, PageContent
from qms22.tables.columns.cells import Columns, part_of_rows
from qms22.tables.texts.words import join_notes

if TYPE_CHECKING:
    from qms22.detection.result import Detection

# A page with more rows is slow to open; of a larger batch it holds the most suspicious ones.
MOST_ROWS_ON_PAGE = 100_000

# A histogram of more known-normal rows looks the same, and to read them takes seconds.
_MOST_NORMAL = 20_000


def page_content(
    found: Detection, title: str, truth: ArrayLike | None, facts: Mapping[str, str]
) -> PageContent:
    """Return what the page of a detection shows; see `Detection.report`."""
    ranking, typical = found.ranking, found.encoder.typical_
    kept = ranking[: max(MOST_ROWS_ON_PAGE, found.n_flagged)]
    rows = found.source.take(kept)
    results, columns = beside(found, rows, kept)
    # What the columns of the batch are called on the page, where results have names, too.
    own = [str(name) for name in rows.columns if str(name) != found.id]
    names = dict(zip(own, map(str, columns.columns), strict=True))
    cells, normal_cells = _columns(found, kept)

    def renamed(blamed: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in blamed)

    reasons = [
        of_row and [each._replace(columns=renamed(each.columns)) for each in of_row]
        for of_row in reasons_of(found, kept, cells)
    ]
    places = [np.flatnonzero(np.isin(kept, each.rows)) for each in found.findings]
    findings = [
        replace(each, rows=of_kept, columns=renamed(each.columns))
        for each, of_kept in zip(found.findings, places, strict=True)
    ]
    return PageContent(
        title,
        results if found.marks is None else results.drop(columns=MARK),
        columns,
        found.scores[ranking],
        reasons,
        {names[name]: column for name, column in cells.items() if name in names},
        normal={names[name]: column for name, column in normal_cells.items() if name in names},
        n_normal=found.n_normal,
        flagged_by=_rule(found),
        is_rate=found.fdr is not None,
        curve=None if found.comparison is None else found.comparison.curve,
        truth=None if truth is None else _read_truth(truth, found.scores.shape)[ranking],
        columns=[
            {
                "column": column.name,
                "kind": column.kind,
                "typical": typical.get(column.name, ""),
                "note": column.note,
            }
            for column in found.encoder.columns_
        ],
        facts=facts,
        verdict=found.verdict,
        answer=found.answer,
        remark=found.remark,
        noticed=[each.text for each in found.noticed],
        notes=join_notes(found.notes),
        id=found.id,
        marks=() if found.marks is None else found.marks.words(kept).tolist(),
        contexts=row_contexts(found, kept),
        marked=_marked(found),
        normal_scores=None if found.comparison is None else found.comparison.ruler.ascending,
        findings=findings,
        history=found.history,
        exceptions=found.exceptions,
    )


def _read_truth(given: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return labels; raise ValueError unless there is True or False, or 1 or 0, for each row."""
    truth = np.asarray(given)
    if truth.shape != shape:
        raise ValueError(
            f"truth must be of shape {shape}, one value per row of the batch; got shape "
            f"{truth.shape}"
        )
    if not np.isin(truth, (0, 1)).all():
        raise ValueError("truth must hold True or 1 for outliers, and False or 0 for the rest")
    return truth.astype(bool)


def _columns(found: Detection, kept: NDArray[np.intp]) -> tuple[Columns, Columns]:
    """Return the columns of the rows of the page, and of known-normal rows for histograms."""
    normal = spread_rows(found.n_normal, _MOST_NORMAL)
    if found.normal_positions is not None:
        normal = found.normal_positions[normal]
    if found.columns is not None:
        return part_of_rows(found.columns[1], kept), part_of_rows(found.columns[0], normal)
    read, table = found.encoder._typed_cells, found.normal_table
    of_normal = {} if table is None else read(table.columns(rows=normal))
    return read(found.source.columns(rows=kept)), of_normal


def _marked(found: Detection) -> pd.DataFrame | None:
    """Return the rows that were marked before and not searched: name, mark and columns."""
    if found.marks is None:
        return None
    results, columns = beside(found, found.source.take(found._decided), found._decided)
    return pd.concat([results.iloc[:, [NAME]], results[MARK], columns], axis=1)


def _rule(found: Detection) -> str:
    if found.fdr is not None:
        return f"a false discovery rate of {found.fdr:g}"
    return "the model" if found.normal_table is None else f"the top {found.n_flagged:,}"
