"""Words about a result."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from qms22._runtime.visible_text import visible
from qms22.estimators.conformal import ContaminationEstimate
from qms22.estimators.verdict import Verdict
from qms22.tables.texts.words import list_some, number_text

if TYPE_CHECKING:
    import pandas as pd


def remark(
    verdict: Verdict | None, fdr: float | None, *, is_any_flagged: bool, is_drift_scored: bool
) -> str:
    """Say what a verdict means for the flagged rows, or does not cover; may be empty."""
    if verdict is None:
        return ""
    if verdict.decision == "drift" and is_any_flagged and not is_drift_scored:
        return "The columns that moved were left out: the flagged rows do not rest on them."
    if verdict.decision == "drift" and is_any_flagged:
        return (
            "The flagged rows may only show that the batch has drifted; follow the advice of "
            "the verdict before you look at them."
        )
    if fdr is None:
        return "Columns and odd cells were compared; a false discovery rate (fdr) tests whole rows."
    if verdict.decision == "fine" and is_any_flagged:
        return (
            "The flagged rows are weaker evidence than the verdict asks for: they are worth a "
            "look, but may all be normal."
        )
    return ""


def odd_rows_text(n_beyond: int, expected: float) -> str:
    """Say how many rows are odder than all known-normal ones, if they are more than by chance."""
    if n_beyond < 1 or n_beyond < 2 * expected:
        return ""
    rows, are = ("1 row", "is") if n_beyond == 1 else (f"{n_beyond:,} rows", "are")
    chance = f"{expected:.2g}" if expected < 10 else f"{expected:,.0f}"
    return f"{rows} {are} odder than every known-normal row, where chance would give {chance}."


def summary_text(column: str, cell: object) -> str:
    """Return a cell of a summary as text: results are rounded, names of rows are not."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.4g}" if column in ("score", "p_value", "agreement") else number_text(cell)


def share_text(estimate: ContaminationEstimate) -> str:
    """Return the share of outliers with its interval."""
    share, low, high = (f"{100 * value:.1f} %" for value in estimate[:3])
    return f"{share} (95 % interval: {low} to {high})"


def short_text(verdict: Verdict) -> str:
    """Return a verdict in a few words."""
    if verdict.decision == "drift":
        names = dict.fromkeys(column.name for column in verdict.moved)
        return f"drifted: {list_some(list(names))}" if names else "drifted"
    return "contains anomalies" if verdict.decision == "anomalies" else "no alarm"


def notebook_text(title: str, shown: pd.DataFrame) -> str:
    """Return a table for a notebook; text of the table stays text."""

    def row(cells: Any, tag: str) -> str:
        texts = map(summary_text, shown.columns, cells)
        return "".join(f"<{tag}>{escape(visible(text))}</{tag}>" for text in texts)

    head = row(shown.columns, "th")
    body = (f"<tr>{row(cells, 'td')}</tr>" for cells in shown.itertuples(index=False))
    return (
        f"<p>{escape(title)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
