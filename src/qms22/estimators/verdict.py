"""The verdict on a batch: fine, contains anomalies, or has drifted as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from qms22.estimators.moved_columns import MovedColumn

Decision = Literal["fine", "anomalies", "drift"]


class OutlierBound(NamedTuple):
    """How many rows of a batch are outliers at least, even if none of them can be named.

    Parameters
    ----------
    fewest : int
        There are at least so many, with the confidence asked for, for any data.
    p_value : float
        Of the hypothesis that there are none.
    """

    fewest: int
    p_value: float


@dataclass(frozen=True)
class Verdict:
    """The verdict on a batch.

    Parameters
    ----------
    decision : {"fine", "anomalies", "drift"}
    p_value : float
        Of the hypothesis that the batch is drawn as the known-normal rows were.
    fewest_outliers : int or None
        At least so many rows of the batch are unlike the known-normal rows, with the confidence
        asked for. None if only columns were compared.
    confidence : float
        If the batch is drawn as the known-normal rows were, the decision is "fine" with at least
        this probability.
    n_rows : int
        Rows of the batch.
    moved : tuple of MovedColumn
        Columns that differ between the batch and the known-normal rows, strongest first; empty if
        the decision is "fine".
    advice : tuple of str
        What to do, one sentence each.
    """

    decision: Decision
    p_value: float
    fewest_outliers: int | None
    confidence: float
    n_rows: int
    moved: tuple[MovedColumn, ...] = ()
    advice: tuple[str, ...] = ()

    def __str__(self) -> str:
        raise NotImplementedError


def outlier_confidence(confidence: float) -> float:
    """Return the confidence to ask an `OutlierBound` for, so that the verdict has `confidence`.

    Part of the doubt is left for the comparison of columns.
    """
    raise NotImplementedError


def judge_batch(
    columns: Sequence[MovedColumn],
    n_rows: int,
    *,
    bound: OutlierBound | None = None,
    confidence: float = 0.95,
) -> Verdict:
    """Decide whether a batch is fine, contains anomalies, or has drifted as a whole.

    Parameters
    ----------
    columns : sequence of MovedColumn
        From `compare_columns`.
    n_rows : int
        Rows of the batch.
    bound : OutlierBound, optional
        From `Calibration.bound_outliers`, with `outlier_confidence`. Without it single anomalies
        are not looked for: the decision is "fine" or "drift".
    confidence : float, default=0.95

    Returns
    -------
    Verdict
    """
    raise NotImplementedError
