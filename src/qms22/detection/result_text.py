"""Words about a result."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from qms22._runtime.visible_text import visible
from qms22.decisions.verdict import Verdict
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
    if verdict.decision == "fine" and fdr is not None and is_any_flagged:
        return (
            "The flagged rows are weaker evidence than the verdict asks for: they are worth a "
            "look, but may all be normal."
        )
    return ""


def summary_text(column: str, cell: object) -> str:
    """Return a cell of a summary as text: results are rounded, names of rows are not."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.4g}" if column in ("score", "p_value") else number_text(cell)


def false_text(n_false: int) -> str:
    """Return how many of the flagged rows are normal at most."""
    return f"at most {n_false:,} of them normal"


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
