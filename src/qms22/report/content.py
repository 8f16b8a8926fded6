"""What a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells

if TYPE_CHECKING:
    import pandas as pd

    from qms22.decisions.curve import Curve
    from qms22.decisions.verdict import Verdict
    from qms22.detection import ColumnException, Finding, HistoryEntry, RowReason

# Positions of the columns of `PageContent.results`; their names may differ.
RANK, NAME, SCORE, FLAGGED, _, P_VALUE = range(6)


@dataclass(frozen=True)
class RowContext:
    """What a row is seen beside.

    Parameters
    ----------
    text : str
    past : tuple of float
        The same number of earlier rows of its entity, in order; empty for other contexts.
    here : float, optional
        The number of the row itself.
    """

    text: str
    past: tuple[float, ...] = ()
    here: float | None = None


@dataclass(frozen=True, eq=False)
class PageContent:
    """What a page shows; rows come in order of rank.

    Parameters
    ----------
    title : str
    results, rows : DataFrame of n_kept rows
        Rank, name, score, flag, reasons and, where there is one, p-value of the first rows, and
        their columns in the batch. The flagged ones come first, all of them.
    scores : ndarray of shape (n_rows,)
        Of all rows, the highest first.
    reasons : sequence of n_kept sequences of RowReason
        The strongest reason of a row first; None where they are not known.
    cells, normal : mapping of str to Cells
        Columns of `rows` and of known-normal rows, as the encoder understands them. A column
        without the latter gets no histogram.
    n_normal : int
        How many known-normal rows there are.
    flagged_by : str
        What flagged the rows, such as "a false discovery rate of 0.1".
    is_rate : bool
        Whether a false discovery rate did: the other rows are not certain.
    truth : ndarray of bool of shape (n_rows,), optional
        Which of all rows are outliers.
    columns : sequence of mappings
        How each column was treated: "column", "kind" and "note".
    findings : sequence of Finding
        Largest first; their rows are places in `rows`.
    marks : sequence of n_kept str
        What was known about `rows`: "unsure" or empty. May be empty as a whole.
    contexts : mapping of int to RowContext
        By places in `rows`; not all rows have one.
    marked : DataFrame, optional
        Rows of the batch that were not searched because they are marked: a name, "anomaly" or
        "normal", and the columns of `rows`.
    normal_scores : ndarray, optional
        Scores of known-normal rows that were not learned from, on the scale of `scores`.
    noticed : sequence of str
        What is unusual about the batch as a whole, one sentence each.
    curve, facts, verdict, answer, remark, history, exceptions, notes, id
        As in `Detection`; `curve` is that of its comparison.
    """

    title: str
    results: pd.DataFrame
    rows: pd.DataFrame
    scores: NDArray[np.float64]
    reasons: Sequence[Sequence[RowReason] | None]
    cells: Mapping[str, Cells]
    normal: Mapping[str, Cells]
    n_normal: int
    flagged_by: str
    is_rate: bool = False
    curve: Curve | None = None
    truth: NDArray[np.bool_] | None = None
    columns: Sequence[Mapping[str, str]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    answer: str = ""
    remark: str = ""
    findings: Sequence[Finding] = ()
    history: Sequence[HistoryEntry] = ()
    noticed: Sequence[str] = ()
    exceptions: Sequence[ColumnException] = ()
    notes: Sequence[str] = ()
    id: str | None = None
    marks: Sequence[str] = ()
    contexts: Mapping[int, RowContext] = field(default_factory=dict)
    marked: pd.DataFrame | None = None
    normal_scores: NDArray[np.float64] | None = None

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which of the first rows are flagged."""
        flagged: NDArray[np.bool_] = self.results.iloc[:, FLAGGED].to_numpy(dtype=bool)
        return flagged
