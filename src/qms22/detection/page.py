"""What the page of a detection shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from qms22.detection.verdict import unnamed_moves
from qms22.report import PageContent

if TYPE_CHECKING:
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
    if found.marks is not None:
        results = results.drop(columns="mark")
    return PageContent(
        title,
        results,
        columns,
        found.scores[ranking],
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
        n_normal=0 if normal is None else len(normal),
        flagged_by=_rule(found),
        truth=None if truth is None else np.asarray(truth, dtype=bool)[ranking],
        columns=encoder.describe(),
        facts=facts,
        verdict=found.verdict,
        moved=() if found.verdict is None else unnamed_moves(found.verdict),
        remark=found.remark,
    )


def _rule(found: Detection) -> str:
    """Return by what rule rows were flagged."""
    if found.fdr is not None:
        return f"a false discovery rate of {found.fdr:g}"
    return "the model" if found.normal is None else f"the top {np.count_nonzero(found.flagged)}"
