"""The verdict on a batch: fine, contains anomalies, or has drifted as a whole."""

from __future__ import annotations

import pytest

from qms22.decisions.curve import OutlierBound
from qms22.decisions.moved_columns import MovedColumn
from qms22.decisions.verdict import judge_batch, lost_columns, outlier_confidence

STILL = MovedColumn("still", "median 1 → 1", 0.02, 1.0, 1.0)
MOVED = MovedColumn("heat", "median 12.3 → 15.1", 0.4, 1e-6, 0.3)
LOST = MovedColumn("heat", "median 12.3 → 15.1", 0.4, 1e-6, 1e-6)
SLIGHT = MovedColumn("heat", "median 12.3 → 12.4", 0.06, 1e-9, 1.0)
MISSING = MovedColumn("heat", "missing 1.0 % → 8.0 %", 0.07, 1e-9, 1.0, is_missing=True)
MONTH = MovedColumn("month", "1 to 2 → 3", 1.0, 0.0, 1e-9, is_period=True)
SOME = OutlierBound(12, 1e-4)
NONE = OutlierBound(0, 0.6)


@pytest.mark.parametrize(
    ("column", "bound", "decision"),
    [
        (STILL, NONE, "fine"),
        (STILL, None, "fine"),
        (STILL, SOME, "anomalies"),
        (LOST, NONE, "drift"),
        (LOST, SOME, "drift"),
        (LOST, None, "drift"),
        (MOVED, SOME, "anomalies"),  # the outliers move it, and the normal rows are there
        (MOVED, NONE, "drift"),
        (SLIGHT, NONE, "fine"),
        (MISSING, NONE, "drift"),
        (STILL, OutlierBound(250, 1e-9), "drift"),  # more than a fifth of all rows
    ],
)
def test_decision(column: MovedColumn, bound: OutlierBound | None, decision: str) -> None:
    verdict = judge_batch([column, STILL], 1000, bound=bound)
    assert verdict.decision == decision
    assert (verdict.p_value <= 0.05) == (decision != "fine")
    assert STILL not in verdict.moved
    assert (column in verdict.moved) == (column in (LOST, MOVED, MISSING))
    assert verdict.fewest_outliers == (None if bound is None else bound.fewest)


def test_sentences() -> None:
    def sentence(columns: list[MovedColumn], bound: OutlierBound | None = NONE) -> str:
        return str(judge_batch(columns, 2000, bound=bound))

    assert sentence([STILL]) == (
        "The batch looks fine: its rows and columns (2,000 rows) cannot be told from the "
        "known-normal ones (p = 1)."
    )
    assert "its columns (2,000 rows)" in sentence([STILL], None)
    assert sentence([STILL], SOME) == (
        "The batch contains anomalies: at least 12 of its 2,000 rows are unlike the known-normal "
        "rows (p < 0.001)."
    )
    assert sentence([MONTH, LOST]) == (
        "The batch has drifted as a whole: month (1 to 2 → 3) and heat (median 12.3 → 15.1) "
        "(p < 0.001)."
    )
    assert "and 2 more columns" in sentence([LOST] * 5)
    assert "no single column moved" in sentence([STILL], OutlierBound(900, 0.0))


def test_advice() -> None:
    assert judge_batch([STILL], 100, bound=SOME).advice == ()
    (leave_out,) = judge_batch([MONTH], 100).advice
    assert leave_out.startswith("leave out 'month' (1 to 2 → 3)")
    (done,) = judge_batch([MONTH], 100, left_out=["month"]).advice
    assert done.startswith("'month' was left out (1 to 2 → 3)")
    assert len(judge_batch([MONTH, LOST], 100).advice) == 2
    (renew,) = judge_batch([LOST], 100).advice
    assert "known-normal" in renew


def test_lost_columns() -> None:
    assert lost_columns([MONTH, MOVED, LOST]) == [MONTH, LOST]


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, float("nan"), "0.9"])
def test_confidence_is_a_share(confidence: float) -> None:
    for ask in (outlier_confidence, lambda value: judge_batch([STILL], 10, confidence=value)):
        with pytest.raises(ValueError, match=r"confidence must be a share in \(0, 1\)"):
            ask(confidence)
