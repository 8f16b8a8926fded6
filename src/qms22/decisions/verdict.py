"""The verdict on a batch: fine, contains anomalies, or has drifted as a whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from qms22._runtime.validation import check_share
from qms22.decisions.curve import OutlierBound
from qms22.decisions.moved_columns import LEAST_NORMAL, MovedColumn

Decision = Literal["fine", "anomalies", "drift"]

# How the doubt, one minus the confidence, is shared among the tests: rows against known-normal
# rows, lost rows and moved columns.
_OF_ROWS = 0.6
_OF_LOST = 0.2
_OF_MOVED = 0.2

_ADVICE_OVER_TIME = (
    "if this is meant, accept the batch, or except the column for some time; if not, tag the batch "
    "as an incident (qms22 history)"
)

# How many columns a sentence names, and how many the few words for a notebook do.
_MOST_NAMED = 3
_MOST_SHORT = 5


@dataclass(frozen=True)
class Verdict:
    """The verdict on a batch.

    Parameters
    ----------
    decision : {"fine", "anomalies", "drift"}
        Whether the batch looks like the known-normal rows, contains anomalies, or has drifted as a
        whole. A batch with more than a fifth of anomalies counts as drifted.
    p_value : float
        Of the hypothesis that the batch is drawn as the known-normal rows were.
    fewest_outliers : int or None
        At least this many rows of the batch are unlike the known-normal rows, with the given
        confidence, but no more than can be named: rows that are flagged, or beyond all
        known-normal ones. None if only columns and extreme values were
        looked at, and there was nothing to see.
    confidence : float
        If the batch is drawn as the known-normal rows were, the decision is "fine" with at least
        this probability.
    n_rows : int
        Rows of the batch.
    moved : tuple of MovedColumn
        Columns that differ between the batch and the known-normal rows, strongest first.
    left_out : tuple of str
        Columns that the detector has not used.
    n_past : int
        Batches of a history that it was compared with; with 0 its rows alone were judged.
    excepted : tuple of MovedColumn
        Columns that moved and may do so, by an exception of a history.
    """

    decision: Decision
    p_value: float
    fewest_outliers: int | None
    confidence: float
    n_rows: int
    moved: tuple[MovedColumn, ...] = ()
    left_out: tuple[str, ...] = ()
    n_past: int = 0
    excepted: tuple[MovedColumn, ...] = ()

    def __str__(self) -> str:
        rows = f"{self.n_rows:,} row{'s' * (self.n_rows != 1)}"
        if self.decision == "drift":
            told = f"has drifted as a whole: {self._moves}"
        elif self.decision == "anomalies":
            n_outliers = self.fewest_outliers or 0
            are = "is" if n_outliers == 1 else "are"
            told = (
                f"contains anomalies: at least {n_outliers:,} of its {rows} {are} unlike the "
                "known-normal rows"
            )
        elif self.n_past:
            told = (
                f"looks fine: it is as much like the {self.n_past:,} accepted batches of the "
                "history as these are like each other"
            )
        else:
            tested = "columns" if self.fewest_outliers is None else "rows and columns"
            told = f"looks fine: its {tested} ({rows}) cannot be told from the known-normal ones"
        chance = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return f"The batch {told} ({chance})."

    @property
    def _moves(self) -> str:
        shown = [f"{column.name} ({column.change})" for column in self.moved[:_MOST_NAMED]]
        if n_more := len(self.unnamed):
            shown.append(f"{n_more} more column{'s' * (n_more > 1)}")
        if not shown:
            return "too many rows are unlike the known-normal ones, but no single column moved"
        return ", ".join(shown[:-1]) + " and " * (len(shown) > 1) + shown[-1]

    @property
    def short(self) -> str:
        """The verdict in a few words."""
        if self.decision == "drift":
            names = list(dict.fromkeys(column.name for column in self.moved))
            more = f" and {len(names) - _MOST_SHORT} more" if len(names) > _MOST_SHORT else ""
            return f"drifted: {', '.join(names[:_MOST_SHORT])}{more}" if names else "drifted"
        return "contains anomalies" if self.decision == "anomalies" else "looks fine"

    @property
    def unnamed(self) -> tuple[MovedColumn, ...]:
        """The columns that moved and that the sentence does not name."""
        return self.moved[_MOST_NAMED:] if self.decision == "drift" else self.moved

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about the batch, one sentence each."""
        if self.decision != "drift":
            return ()
        if self.n_past:
            return (_ADVICE_OVER_TIME,)
        advice = []
        for column in self.moved:
            if column.is_period:
                is_done = column.name in self.left_out
                what = f"{column.name!r} was left out" if is_done else f"leave out {column.name!r}"
                advice.append(
                    f"{what} ({column.change}): it looks like a period or a counter, which says "
                    "when or where a row was made, not whether it is normal"
                )
        if len(advice) < len(self.moved) or not self.moved:
            advice.append(
                "add recent rows to the known-normal ones, or replace these by recent ones"
            )
        return tuple(advice)


def outlier_confidence(confidence: float) -> float:
    """Return the confidence to ask an `OutlierBound` for, so that the verdict has `confidence`.

    Part of the doubt is left for the comparison of columns.
    """
    check_share("confidence", confidence)
    return 1.0 - _OF_ROWS * (1.0 - confidence)


def judge_batch(
    columns: Sequence[MovedColumn],
    n_rows: int,
    *,
    bound: OutlierBound | None = None,
    confidence: float = 0.95,
    left_out: Sequence[str] = (),
    excepted: Collection[str] = (),
) -> Verdict:
    """Decide whether a batch is fine, contains anomalies, or has drifted as a whole.

    It is fine with probability `confidence`, or more, if it is drawn as the known-normal rows were.
    It has drifted if normal rows are missing in some range or level of a column, if more than a
    fifth of its rows are outliers, or if a column moved and there need not be any. If at least four
    fifths of it are drawn as the known-normal rows were, it is found to have lost normal rows with
    probability 1 − `confidence` at most.

    `columns` are those of `compare_columns` or `compare_over_time`, `bound` is that of
    `bound_outliers` with `outlier_confidence`; without it only columns are compared. The detector
    has not used the columns that are `left_out`, and those `excepted` may move.
    """
    check_share("confidence", confidence)
    doubt = 1.0 - confidence
    columns, allowed = part_excepted(columns, excepted, doubt)
    fewest, p_rows = bound or (0, 1.0)
    p_lost = min((column.p_lost for column in columns), default=1.0)
    p_moved = min((column.p_value for column in columns if column.is_large), default=1.0)
    p_value = min(1.0, p_rows / _OF_ROWS, p_lost / _OF_LOST, p_moved / _OF_MOVED)
    decision: Decision = "fine"
    moved: tuple[MovedColumn, ...] = ()
    if p_value <= doubt:
        # Something is wrong; what it is may be wrong with the same probability.
        is_drift = p_lost <= doubt or not 0 < fewest <= (1 - LEAST_NORMAL) * n_rows
        decision = "drift" if is_drift else "anomalies"
        moved = tuple(column for column in columns if column.is_certain(doubt))
    return Verdict(
        decision,
        p_value,
        None if bound is None else fewest,
        confidence,
        n_rows,
        moved,
        tuple(left_out),
        excepted=allowed,
    )


def part_excepted(
    columns: Sequence[MovedColumn], excepted: Collection[str], level: float
) -> tuple[list[MovedColumn], tuple[MovedColumn, ...]]:
    """Return the columns that may not move, and those that may and did with this certainty."""
    judged = [column for column in columns if column.name not in excepted]
    allowed = [column for column in columns if column.name in excepted and column.is_certain(level)]
    return judged, tuple(allowed)


def lost_columns(columns: Sequence[MovedColumn], level: float = 0.01) -> list[MovedColumn]:
    """Return the columns in which normal rows are missing: the batch has drifted as a whole.

    In a batch of which at least four fifths are drawn as the known-normal rows were, there are none
    with probability 1 − `level` or more.
    """
    return [column for column in columns if column.p_lost <= level]
