"""Words about a result."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from qms22 import __version__
from qms22._runtime.visible_text import visible
from qms22.decisions.ruler import why_none
from qms22.detection.results.result_table import summary_of
from qms22.tables.texts.words import number_text

if TYPE_CHECKING:
    from qms22.detection.result import Detection

# As many rows as a terminal shows at least.
_ROWS_IN_NOTEBOOK = 10


def remark_of(found: Detection) -> str:
    """Return what to know about the flagged rows, or why there are none; may be empty."""
    decision = None if found.verdict is None else found.verdict.decision
    if not found.n_flagged:
        if found.fdr is None or found.comparison is None:
            return ""
        why = why_none(found.n_scored, found.comparison.ruler.n_known, found.fdr) or ""
        # That no row is flagged, `answer` says.
        words = why.removeprefix("no row is flagged: ")
        return f"{words[:1].upper()}{words[1:]}." if words else ""
    if decision == "drift" and not found.is_drift_scored:
        return "The columns that moved were left out, so the flags do not depend on them."
    if decision == "drift":
        return (
            "The rows may be flagged only because the batch has drifted; follow the advice before "
            "you look at them."
        )
    if decision == "fine" and found.fdr is not None:
        return (
            "The evidence of the flagged rows is too weak for an alarm: they are worth a look, but "
            "may all be normal."
        )
    return ""


def facts_of(found: Detection) -> dict[str, str]:
    """Return how a result was made, in words."""
    parameters = found.detector.get_params()
    names = ("n_splits", "n_members", "n_components", "max_iter", "scaling", "n_restarts")
    facts = {} if found.normal_table is None else {"known-normal rows": f"{found.n_normal:,}"}
    facts["rows of the batch"] = f"{found.n_scored:,}"
    if 0 < found.n_drawn < found.n_scored:
        facts["of these learned from"] = f"{found.n_drawn:,}"
    if found.marks is not None:
        facts["marks"] = str(found.marks)
    if found.verdict is not None:
        facts["verdict"] = str(found.verdict)
    facts["detector"] = type(found.detector).__name__
    facts["settings"] = ", ".join(f"{n} {parameters[n]}" for n in names if n in parameters)
    if found.fdr is not None:
        facts["false discovery rate"] = f"{found.fdr:g}"
    return {**facts, "seed": str(parameters["random_state"]), "qms22": __version__}


def answer_of(found: Detection) -> str:
    """Return how many rows are flagged, and how many of them are normal at most."""
    n_flagged, n_rows = found.n_flagged, found.n_scored
    rate = "" if found.fdr is None else f" (false discovery rate {found.fdr:g})"
    are = "is" if n_flagged <= 1 else "are"
    rows = "row" if n_rows == 1 else "rows"
    words = f"{f'{n_flagged:,}' if n_flagged else 'None'} of {n_rows:,} {rows} {are} flagged{rate}"
    if not n_flagged or found.comparison is None:
        return f"{words}."
    n_false = found.false_at_most()
    if n_false == n_flagged:
        return f"{words}; {'it' if n_flagged == 1 else 'all of them'} may be normal."
    false = f"at most {n_false:,} of them {'is' if n_false == 1 else 'are'}"
    if not n_false:
        false = "it is not" if n_flagged == 1 else "none of them is"
    return f"{words}; {false} normal (90 % sure)."


def short_text(found: Detection) -> str:
    """Return a result in one line."""
    rate = "" if found.fdr is None else f" at fdr={found.fdr:g}"
    false = ""
    if found.n_flagged and found.comparison is not None:
        false = f", at most {found.false_at_most():,} of them normal"
    verdict = "" if found.verdict is None else f"; {found.verdict.short}"
    flagged = f"{found.n_flagged:,} of {found.n_scored:,} rows flagged"
    return f"Detection: {flagged}{rate}{false}{verdict}"


def notebook_text(found: Detection) -> str:
    """Return the first rows for a notebook, results rounded; text of the table stays text."""
    title, rows = short_text(found), found.top
    if not len(rows):
        title += ". These rows are the most suspicious, but not certain to be anomalies."
        rows = found.ranking
    shown = summary_of(found, rows[:_ROWS_IN_NOTEBOOK]).drop(columns="flagged")

    def text_of(column: str, cell: object) -> str:
        if not isinstance(cell, float):
            return str(cell)
        return f"{cell:.4g}" if column in ("score", "p_value") else number_text(cell)

    def row(cells: Any, tag: str) -> str:
        texts = map(text_of, shown.columns, cells)
        return "".join(f"<{tag}>{escape(visible(text))}</{tag}>" for text in texts)

    head = row(shown.columns, "th")
    body = (f"<tr>{row(cells, 'td')}</tr>" for cells in shown.itertuples(index=False))
    return (
        f"<p>{escape(title)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
