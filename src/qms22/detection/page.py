"""What the page of a detection shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qms22.detection.mark_table import MARK
from qms22.detection.reasons import RowReason
from qms22.detection.verdict import unnamed_moves
from qms22.report import PageContent, PageReason
from qms22.report.content import NAME

if TYPE_CHECKING:
    import pandas as pd

    from qms22.detection.result import Detection

# A page with more rows is slow to open; of a larger batch it holds the most suspicious ones.
MOST_ROWS_ON_PAGE = 100_000


def page_content(
    found: Detection, title: str, truth: ArrayLike | None, facts: Mapping[str, str]
) -> PageContent:
    """Return what the page of a detection shows.

    Parameters
    ----------
    found : Detection
    title : str
    truth : array-like of bool of shape (n_rows,), optional
        Which rows are outliers.
    facts : mapping of str to str
        How the result was made.
    """
    ranking = found.ranking
    flagged = np.flatnonzero(found.flagged[ranking])
    n_kept = max(MOST_ROWS_ON_PAGE, flagged[-1] + 1 if len(flagged) else 0)
    kept = ranking[:n_kept]
    rows = found.source.take(kept)
    encoder, normal = found.encoder, found.normal
    results, columns = found.beside(rows, kept, np.arange(1, len(kept) + 1))
    names = _shown_names(rows, columns, found.id)
    cells = encoder.typed_cells(rows)
    normal_cells = {} if normal is None else encoder.typed_cells(normal)
    return PageContent(
        title,
        results if found.marks is None else results.drop(columns=MARK),
        columns,
        found.scores[ranking],
<<<<<<< HEAD
        {
            rank: [
                (each.columns[0] if each.columns else "", each.strength, each.text, "")
                for each in found.reasons[row]
            ]
            for rank, row in enumerate(kept.tolist())
            if row in found.reasons
        },
        {name: cells for name, cells in encoder.typed_cells(rows).items() if name != found.id},
        normal={} if normal is None else encoder.typed_cells(normal),
=======
        [_reasons(found.reasons.get(row), names) for row in kept.tolist()],
        {names[name]: column for name, column in cells.items() if name in names},
        normal={names[name]: column for name, column in normal_cells.items() if name in names},
>>>>>>> 24f7d07 (Make the page one to work in: filters, findings, marks, reasons of every row)
        n_normal=0 if normal is None else len(normal),
        flagged_by=_rule(found),
        truth=None if truth is None else np.asarray(truth, dtype=bool)[ranking],
        columns=encoder.describe(),
        facts=facts,
        verdict=found.verdict,
        moved=() if found.verdict is None else unnamed_moves(found.verdict),
        remark=found.remark,
        id=found.id,
        marks=() if found.marks is None else found.marks.words(kept).tolist(),
        marked=_marked(found),
    )


def _shown_names(rows: pd.DataFrame, columns: pd.DataFrame, id_name: str | None) -> dict[str, str]:
    """Return what the columns of a batch are called on the page, where results have names too."""
    names = [str(name) for name in rows.columns if str(name) != str(id_name)]
    return dict(zip(names, map(str, columns.columns), strict=True))


def _reasons(reasons: list[RowReason] | None, names: dict[str, str]) -> list[PageReason] | None:
    """Return reasons with the names that columns have on the page."""
    if reasons is None:
        return None
    return [
        PageReason((names.get(reason.name, reason.name),), str(reason), max(reason.drop, 0.0))
        for reason in reasons
    ]


def _marked(found: Detection) -> pd.DataFrame | None:
    """Return the rows that were marked before and not searched: name, mark and columns."""
    if found.marks is None:
        return None
    rows: NDArray[np.intp] = found.marks.decided
    results, columns = found.beside(found.source.take(rows), rows, np.zeros_like(rows))
    named = results.iloc[:, [NAME]].assign(**{MARK: results[MARK]})
    return named.join(columns)


def _rule(found: Detection) -> str:
    """Return by what rule rows were flagged."""
    if found.fdr is not None:
        return f"a false discovery rate of {found.fdr:g}"
    return "the model" if found.normal is None else f"the top {np.count_nonzero(found.flagged)}"
