"""What a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells

if TYPE_CHECKING:
    import pandas as pd

    from qms22.decisions.curve import Curve
    from qms22.decisions.verdict import Verdict

# Positions of the columns of `PageContent.results`; their names may differ.
RANK, NAME, SCORE, FLAGGED, _, P_VALUE = range(6)


class PageReason(NamedTuple):
    """Why a row is suspicious.

    Parameters
    ----------
    columns : tuple of str
        The cells to highlight; the first one is to blame. May be empty.
    text : str
        A full statement.
    strength : float
        At least 0.
    """

    columns: tuple[str, ...]
    text: str
    strength: float


class PageFinding(NamedTuple):
    """Rows that are anomalous in the same way.

    Parameters
    ----------
    name : str
        What they share.
    ranks : sequence of int
        Their places in `PageContent.rows`.
    columns : tuple of str
        The columns that the name speaks of.
    normal_share : float or None
        The share of the known-normal rows that are like them, if it is known.
    p_value : float or None
    fewest_outliers : int or None
        How many of the rows are outliers at least, if it is known.
    """

    name: str
    ranks: Sequence[int] | NDArray[np.intp]
    columns: tuple[str, ...]
    normal_share: float | None
    p_value: float | None
    fewest_outliers: int | None = None


@dataclass(frozen=True, eq=False)
class PageContent:
    """What a page shows; rows come in order of rank.

    Parameters
    ----------
    title : str
    results : DataFrame of n_kept rows
        Rank, name, score, flag, reasons and, where there is one, p-value of the first rows. The
        flagged ones come first, all of them.
    rows : DataFrame of n_kept rows
        The same rows of the batch.
    scores : ndarray of shape (n_rows,)
        Of all rows, the highest first.
    reasons : sequence of n_kept sequences of PageReason
        Why each of `rows` is suspicious, the strongest reason first; None where it is not known.
    cells : mapping of str to Cells
        Columns of `rows`, as the encoder understands them.
    normal : mapping of str to Cells
        Columns of the known-normal rows. A column without them gets no histogram.
    n_normal : int
        How many known-normal rows there are.
    flagged_by : str
        What flagged the rows, such as "a false discovery rate of 0.1".
    is_rate : bool
        Whether a false discovery rate did: the other rows are not certain.
    curve : Curve, optional
        How many of the first rows are normal at most.
    truth : ndarray of bool of shape (n_rows,), optional
        Which of all rows are outliers.
    columns : sequence of mappings
        How each column was treated: "column", "kind" and "note".
    facts : mapping of str to str
        How the scores were made.
    verdict : Verdict, optional
        On the batch as a whole.
    answer : str
        How many rows are flagged: a sentence.
    remark : str
        What to know about the flagged rows, or why there are none.
    findings : sequence of PageFinding
        Largest first.
    history : sequence of mappings
        Earlier batches, oldest first: "when", "batch", "decision", "n_rows", "n_flagged"
        and "moved", a list of texts.
    notes : sequence of str
        How the files were read.
    id : str, optional
        The column that names the rows; by default they have numbers.
    marks : sequence of n_kept str
        What was known about `rows`: "unsure" or empty. May be empty as a whole.
    marked : DataFrame, optional
        Rows of the batch that were not searched because they are marked: a name, "anomaly" or
        "normal", and the columns of `rows`.
    normal_scores : ndarray, optional
        Scores of known-normal rows that were not learned from, on the scale of `scores`.
    """

    title: str
    results: pd.DataFrame
    rows: pd.DataFrame
    scores: NDArray[np.float64]
    reasons: Sequence[Sequence[PageReason] | None]
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
    findings: Sequence[PageFinding] = ()
    history: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    id: str | None = None
    marks: Sequence[str] = ()
    marked: pd.DataFrame | None = None
    normal_scores: NDArray[np.float64] | None = None

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which of the first rows are flagged."""
        flagged: NDArray[np.bool_] = self.results.iloc[:, FLAGGED].to_numpy(dtype=bool)
        return flagged
