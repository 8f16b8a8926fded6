"""What a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qms22.tables.cells import Cells

if TYPE_CHECKING:
    import pandas as pd

    from qms22.estimators.moved_columns import MovedColumn
    from qms22.estimators.verdict import Verdict

# Positions of the columns of `PageContent.results`; their names may differ.
RANK, NAME, SCORE, FLAGGED, _, P_VALUE = range(6)

# Column, drop of the score if it takes its usual value, value of the row, usual value.
PageReason: TypeAlias = tuple[str, float, Any, Any]


@dataclass(frozen=True, eq=False)
class PageContent:
    """What a page shows; rows come in order of rank.

    Parameters
    ----------
    title : str
    results : DataFrame of n_kept rows
        Rank, name, score, flag, reasons and, where there is one, p-value of the first rows, among
        which are all flagged ones.
    rows : DataFrame of n_kept rows
        The same rows of the batch.
    scores : ndarray of shape (n_rows,)
        Of all rows, the highest first.
    reasons : mapping of int to sequence of PageReason
        For some rows, by their places in `rows`: why they are suspicious.
    cells : mapping of str to Cells
        Columns of `rows`, as the encoder understands them.
    normal : mapping of str to Cells
        Columns of the known-normal rows. A column without them gets no histogram.
    n_normal : int
        How many known-normal rows there are.
    flagged_by : str
        What flagged the rows, such as "a false discovery rate of 0.1".
    truth : ndarray of bool of shape (n_rows,), optional
        Which of all rows are outliers.
    columns : sequence of mappings
        How each column was treated: "column", "kind" and "note".
    facts : mapping of str to str
        How the scores were made.
    verdict : Verdict, optional
        On the batch as a whole.
    moved : sequence of MovedColumn
        Columns that moved and that the sentence of the verdict does not name.
    remark : str
        What the verdict means for the flagged rows, or does not cover.
    """

    title: str
    results: pd.DataFrame
    rows: pd.DataFrame
    scores: NDArray[np.float64]
    reasons: Mapping[int, Sequence[PageReason]]
    cells: Mapping[str, Cells]
    normal: Mapping[str, Cells]
    n_normal: int
    flagged_by: str
    truth: NDArray[np.bool_] | None = None
    columns: Sequence[Mapping[str, str]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    moved: Sequence[MovedColumn] = ()
    remark: str = ""

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which of the first rows are flagged."""
        flagged: NDArray[np.bool_] = self.results.iloc[:, FLAGGED].to_numpy(dtype=bool)
        return flagged
