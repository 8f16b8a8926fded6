"""The whole job on two tables: encode, fit, rank, explain.

What `qms22 detect` does is done here, so that a script gets the same result as the command:

>>> import pandas as pd
>>> from sklearn.datasets import load_iris
>>> from qms22.detection.run import detect
>>> iris = load_iris(as_frame=True).data.rename(columns=lambda name: name.removesuffix(" (cm)"))
>>> normal, batch = iris[:40], iris[40:56]  # setosas; ten more of them, and six strangers
>>> found = detect(normal, batch, k=6, seed=0)
>>> sorted(found.top.tolist())
[10, 11, 12, 13, 14, 15]
>>> found.reasons[0][0].name
'petal length'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from qms22._runtime.validation import check_choice, check_count
from qms22.detection.calibration import calibrate_tables
from qms22.detection.encoding import encode_tables
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.conformal import ContaminationEstimate
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.estimators.qms22 import QMS22
from qms22.estimators.thresholds import threshold
from qms22.tables import TabularEncoder

if TYPE_CHECKING:
    import pandas as pd

    from qms22.models import SavedModel

PRESETS: dict[str, type[BatchDetector]] = {"recommended": QMS22Ensemble, "paper": QMS22}

DEFAULT_TOP = 50

# Reasons cost a scoring of every row once per column; beyond this nobody reads them.
MOST_EXPLAINED = 1000

_REASONS_PER_ROW = 5


class RowReason(NamedTuple):
    """Why a row is suspicious: one column.

    Parameters
    ----------
    name : str
        The column.
    drop : float
        The drop of the score if it had its usual value.
    value : object
        The value it has.
    typical : str
        The value that would have been usual.
    """

    name: str
    drop: float
    value: Any
    typical: str

    def __str__(self) -> str:
        return f"{self.name} {_shown(self.value)} (usually {self.typical})"


@dataclass(frozen=True, eq=False)
class Detection:
    """What was found in a batch.

    Parameters
    ----------
    encoder : TabularEncoder
    detector : QMS22Ensemble or QMS22
    normal, unlabeled : DataFrame
        The rows that took part, as they were given.
    positions : ndarray of shape (n_unlabeled,)
        Where these unlabeled rows stood in the batch, before rows with missing values were dropped.
    scores : ndarray of shape (n_unlabeled,)
        Higher is more suspicious.
    top : ndarray of shape (n_flagged,)
        The flagged rows of `unlabeled`, most suspicious first.
    reasons : list of list of RowReason
        For the first of them, at most `MOST_EXPLAINED`: the columns that make them suspicious, the
        strongest reason first.
    p_values : ndarray of shape (n_unlabeled,) or None
        Where rows were flagged by a false discovery rate.
    contamination : ContaminationEstimate or None
        The share of outliers in the batch, likewise.
    """

    encoder: TabularEncoder
    detector: BatchDetector
    normal: pd.DataFrame
    unlabeled: pd.DataFrame
    positions: NDArray[np.intp]
    scores: NDArray[np.float64]
    top: NDArray[np.intp]
    reasons: list[list[RowReason]]
    p_values: NDArray[np.float64] | None = None
    contamination: ContaminationEstimate | None = None

    def table(self, id_column: str | None = None) -> pd.DataFrame:
        """Give all unlabeled rows: the flagged ones, then the others, most suspicious first.

        Parameters
        ----------
        id_column : str, optional
            A column that names the rows; their position in the batch where not given.

        Returns
        -------
        DataFrame
            Columns "rank" (from 1), "row" (or the name of `id_column`), "score", "flagged",
            "reasons", "p_value" where there are p-values, and those of the batch.
        """
        flagged = np.zeros(len(self.scores), dtype=bool)
        flagged[self.top] = True
        order = np.lexsort((np.arange(len(flagged)), -self.scores, ~flagged))
        reasons = np.full(len(self.scores), "", dtype=object)
        for row, why in zip(self.top, self.reasons, strict=False):
            reasons[row] = "; ".join(map(str, why))
        rest = self.unlabeled.iloc[order].reset_index(drop=True)
        return with_results(
            rest,
            id_column,
            rank=np.arange(1, len(order) + 1),
            row=self.positions[order],
            score=self.scores[order],
            flagged=flagged[order],
            reasons=reasons[order],
            p_value=None if self.p_values is None else self.p_values[order],
        )


def with_results(
    table: pd.DataFrame, id_column: str | None, **results: NDArray[Any] | None
) -> pd.DataFrame:
    """Put results before the columns of a table, and its `id_column` in place of "row"."""
    given: list[tuple[str, Any]] = [
        (name, values) for name, values in results.items() if values is not None
    ]
    if id_column is not None:
        names = table.pop(id_column)
        given = [(id_column, names) if name == "row" else (name, values) for name, values in given]
    for at, (name, values) in enumerate(given):
        # A column of the table may be called "score" as well: ours come first, theirs stay.
        table.insert(at, name, values, allow_duplicates=True)
    return table


def detect(
    normal: pd.DataFrame,
    unlabeled: pd.DataFrame,
    *,
    k: int | None = None,
    fdr: float | None = None,
    ignore: Sequence[str] = (),
    missing: str = "error",
    preset: str = "recommended",
    seed: int | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Detection:
    """Find the most suspicious rows of a table, knowing another one to be normal.

    Parameters
    ----------
    normal, unlabeled : DataFrame
        T and S, with the same columns; of any kind (see `TabularEncoder`).
    k : int, optional
        How many rows to flag; 50 where not given, or all if there are fewer.
    fdr : float, optional
        Instead of `k`: flag rows so that of the flagged ones at most this share is expected to be
        normal. It takes one more fit.
    ignore : sequence of str
        Columns to leave out.
    missing : {"error", "impute", "drop"}
        What to do with missing values.
        (Dates that mostly lie beyond the normal ones are left out: that today's rows are later
        than last month's is no reason to suspect them.)
    preset : {"recommended", "paper"}
        Settings of the detector.
    seed : int or None
        Shuffles; None gives another result each time.
    n_jobs : int or None
        Threads; -1 means all cores.
    verbose : int
        Above 0 a progress bar is shown on standard error.

    Returns
    -------
    Detection
    """
    check_request(k, fdr, preset)
    encoded = encode_tables(normal, unlabeled, ignore=ignore, missing=missing)
    normal, unlabeled, rows = encoded.normal, encoded.batch, encoded.rows
    k = count_top(k, len(unlabeled))
    detector = PRESETS[preset](
        contamination=k if fdr is None else "auto",
        random_state=seed,
        n_jobs=n_jobs,
        verbose=verbose,
    ).fit(encoded.known, unlabeled=rows)
    scores = detector.unlabeled_scores_
    if fdr is None:
        top, p_values, contamination = detector.top_k(k), None, None
    else:
        calibration = calibrate_tables(
            normal,
            unlabeled,
            detector,
            ignore=ignore,
            seed=check_random_state(seed).randint(2**31 - 1),
        )
        flagged = np.flatnonzero(calibration.flag(fdr))
        top = flagged[np.argsort(-scores[flagged], kind="stable")]
        p_values, contamination = calibration.p_values(), calibration.estimate_contamination()
        # New rows are judged by the line that flags as many.
        detector.offset_ = -threshold(scores, len(top))
    reasons = explain_rows(detector, encoded.encoder, unlabeled, rows, top[:MOST_EXPLAINED])
    return Detection(
        encoded.encoder,
        detector,
        normal,
        unlabeled,
        encoded.positions,
        scores,
        top,
        reasons,
        p_values,
        contamination,
    )


def check_request(k: int | None, fdr: float | None, preset: str) -> None:
    """Complain of what makes no sense whatever the tables hold."""
    check_choice("preset", preset, tuple(PRESETS))
    if k is not None and fdr is not None:
        raise ValueError("k and fdr both say how many rows to flag; give one of them")
    if k is not None:
        check_count("k", k)


def count_top(k: int | None, n_rows: int) -> int:
    """Tell how many rows to flag."""
    if k is not None and k > n_rows:
        raise ValueError(f"k={k} is more than the {n_rows} unlabeled rows there are")
    return min(DEFAULT_TOP, n_rows) if k is None else k


def score_table(
    model: SavedModel, table: pd.DataFrame, *, k: int | None = None, id_column: str | None = None
) -> pd.DataFrame:
    """Score the rows of another table by a saved model.

    Parameters
    ----------
    model : SavedModel
        With an encoder, as `qms22 detect --save-model` writes it.
    table : DataFrame
    k : int, optional
        How many rows to flag; those beyond the detector's line where not given.
    id_column : str, optional
        A column that names the rows.

    Returns
    -------
    DataFrame
        As `Detection.table` gives it.
    """
    if model.encoder is None:
        raise ValueError("the model has no encoder for tables; make one by 'qms22 detect'")
    if id_column is not None and id_column not in table.columns:
        raise ValueError(f"the table has no column {id_column!r} to name the rows")
    positions = np.arange(len(table))
    if model.encoder.missing == "drop":
        positions = model.encoder.usable_rows(table)
        table = table.iloc[positions]
    rows = model.encoder.transform(table)
    scores = -model.detector.score_samples(rows)
    n_flagged = int((model.detector.decision_function(rows) < 0).sum()) if k is None else k
    if n_flagged > len(scores):
        raise ValueError(f"k={k} is more than the {len(scores)} rows there are")
    top = np.argsort(-scores, kind="stable")[:n_flagged]
    reasons = explain_rows(model.detector, model.encoder, table, rows, top[:MOST_EXPLAINED])
    found = Detection(
        model.encoder, model.detector, table.iloc[:0], table, positions, scores, top, reasons
    )
    return found.table(id_column)


def explain_rows(
    detector: BatchDetector,
    encoder: TabularEncoder,
    table: pd.DataFrame,
    rows: NDArray[np.float64],
    which: NDArray[np.intp],
) -> list[list[RowReason]]:
    """Give the reasons of some rows in the words of their table.

    Parameters
    ----------
    detector : QMS22Ensemble or QMS22
    encoder : TabularEncoder
    table : DataFrame
        The rows as they were given.
    rows : ndarray
        The same, encoded.
    which : ndarray of int
        The positions of the rows to explain.

    Returns
    -------
    list of list of RowReason
    """
    if not len(which):
        return []
    explanation = detector.explain(
        rows[which], groups=encoder.groups_, typical=encoder.typical_row_
    )
    usual = encoder.typical_
    return [
        [
            RowReason(reason.name, reason.drop, table[reason.name].iloc[row], usual[reason.name])
            for reason in explanation.top(at, _REASONS_PER_ROW)
        ]
        for at, row in enumerate(which)
    ]


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
