"""Words about a result."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from qms22._runtime.visible_text import visible
from qms22.decisions.verdict import Verdict
from qms22.tables.texts.words import number_text

if TYPE_CHECKING:
    import pandas as pd


def remark(verdict: Verdict | None, fdr: float | None, *, is_drift_scored: bool) -> str:
    """Say what a verdict means for the flagged rows; may be empty."""
    if verdict is None:
        return ""
    if verdict.decision == "drift" and not is_drift_scored:
        return "The columns that moved were left out, so the flags do not depend on them."
    if verdict.decision == "drift":
        return (
            "The rows may be flagged only because the batch has drifted; follow the advice before "
            "you look at them."
        )
    if verdict.decision == "fine" and fdr is not None:
        return (
            "The evidence of the flagged rows is too weak for an alarm: they are worth a look, but "
            "may all be normal."
        )
    return ""


def summary_text(column: str, cell: object) -> str:
    """Return a cell of a summary as text: results are rounded, names of rows are not."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.4g}" if column in ("score", "p_value") else number_text(cell)


def flags_text(n_flagged: int, n_rows: int, fdr: float | None, n_false: int | None) -> str:
    """Say how many rows are flagged, and how many of them are normal at most.

    >>> flags_text(22, 300, None, 2)
    '22 of 300 rows are flagged; at most 2 of them are normal (90 % sure).'
    >>> flags_text(0, 300, 0.1, 0)
    'None of 300 rows is flagged (false discovery rate 0.1).'
    """
    rate = "" if fdr is None else f" (false discovery rate {fdr:g})"
    are = "is" if n_flagged <= 1 else "are"
    flagged = f"{n_flagged:,}" if n_flagged else "None"
    words = f"{flagged} of {n_rows:,} rows {are} flagged{rate}"
    if not n_flagged or n_false is None:
        return f"{words}."
    return f"{words}; {_false_text(n_flagged, n_false)}."


def _false_text(n_flagged: int, n_false: int) -> str:
    """Say how many of the flagged rows are normal at most."""
    if n_false == n_flagged:
        return "it may be normal" if n_flagged == 1 else "all of them may be normal"
    if not n_false:
        return f"{'it is not' if n_flagged == 1 else 'none of them is'} normal (90 % sure)"
    return f"at most {n_false:,} of them {'is' if n_false == 1 else 'are'} normal (90 % sure)"


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
