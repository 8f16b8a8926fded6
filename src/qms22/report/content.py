"""What a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells

if TYPE_CHECKING:
    from qms22.decisions.curve import Curve
    from qms22.decisions.verdict import Verdict
    from qms22.detection import ColumnException, Finding, HistoryEntry, RowReason

# Positions of the columns of `PageContent.results`; their names may differ.
RANK, NAME, SCORE, FLAGGED, _, P_VALUE = range(6)


class RowContext(NamedTuple):
    """What a row is seen beside: a sentence, and the same number of earlier rows of its entity.

    The `past` numbers are in order; other contexts have none. `here` is the number of the row.
    """

    text: str
    past: tuple[float, ...] = ()
    here: float | None = None


@dataclass(frozen=True, eq=False)
class PageContent:
    """What a page shows; rows come in order of rank.

    - `results`, `rows`: rank, name, score, flag, reasons and, where there is one, p-value of the
      first rows, and their columns in the batch. The flagged ones come first, all of them.
    - `scores`, `truth`: of all rows, the highest score first; which of them are outliers.
    - `reasons`, `marks`, `contexts`: of the first rows. The strongest reason of a row comes first,
      and None stands for unknown ones; a mark is "unsure" or empty; not all rows have a context.
    - `cells`, `normal`: columns of `rows` and of the `n_normal` known-normal rows, as the encoder
      understands them. A column without the latter gets no histogram.
    - `flagged_by`, `is_rate`: what flagged the rows, such as "a false discovery rate of 0.1", and
      whether it was such a rate, so that the other rows are not certain.
    - `columns`: how each column was treated ("column", "kind" and "note").
    - `findings`: largest first; their rows are places in `rows`.
    - `marked`: rows that were not searched because they are marked: a name, a mark, and columns.
    - `normal_scores`: of known-normal rows, on the scale of `scores`.
    - `noticed`: what is unusual about the batch as a whole, one sentence each.

    The others are as in `Detection`; `curve` is that of its comparison.
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
        return np.asarray(self.results.iloc[:, FLAGGED], dtype=bool)
