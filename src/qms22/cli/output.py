"""Results of commands on the terminal and in pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qms22.cli.shared import in_options, print_notes, say
from qms22.cli.terminal import print_found
from qms22.detection.results.csv_text import csv_lines
from qms22.tables.databases.database_place import DatabasePlace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qms22.detection import Detection

# What kinds of columns are called, in the order in which they are shown.
_KINDS = {
    "number": "numbers",
    "category": "categories",
    "boolean": "yes or no",
    "date": "dates",
}

# Columns of a kind that are named; a wide table may have thousands.
_MOST_COLUMNS = 20
# Columns that moved, of which there may be many, and rows that are named: half a screen, one line.
_MOST_MOVED = 10
_MOST_NAMED = 10


def print_acceptance(found: Detection) -> None:
    """Print whether the batch is known-normal from now on."""
    if found.history and found.history[-1].accepted is not None:
        entry = found.history[-1]
        say(f"batch {entry.number:,} of the history is known-normal, accepted {entry.accepted}")


def print_result(
    found: Detection,
    in_json: str,
    warnings: Iterable[str],
    outputs: Mapping[str, Path | DatabasePlace | None],
    *,
    quiet: bool,
    truth: NDArray[np.bool_] | None = None,
) -> None:
    """Print the answer, the flagged rows, how they were found, and the files that were written.

    The rows are tables on a terminal and CSV in a pipe, or the whole result in JSON.
    """
    print_answer(found, quiet=quiet)
    if in_json:
        sys.stdout.write(in_json)
    elif sys.stdout.isatty():
        print_found(found)
    else:
        # Not by click, which would leave out what controls a terminal.
        sys.stdout.writelines(csv_lines(found.summary()))
    if truth is not None:
        _print_evaluation(found, truth)
    if not quiet:
        _print_suspicious_normal(found)
    print_ending(found, warnings, quiet=quiet)
    for path in outputs.values():
        if path is not None and not quiet:
            say(f"written: {path}")
    sys.stdout.flush()


def print_answer(found: Detection, *, quiet: bool = False) -> None:
    """Print what was found to standard error: the verdict, what is flagged, what moved, what to do.

    A quiet run prints the verdict, and only if a note refers to it.
    """
    is_noted = found.fdr is not None and found.is_drift_scored and found.n_flagged
    if quiet and not is_noted:
        return
    verdict = found.verdict
    lines = [] if verdict is None else [str(verdict)]
    if not quiet:
        lines += [found.answer, in_options(found.remark)]
        lines += [f"  noticed: {each.text}" for each in found.noticed]
    if verdict is not None:
        moved = verdict.unnamed
        lines += [f"  moved: {column.name}: {column.change}" for column in moved[:_MOST_MOVED]]
        if n_more := len(moved[_MOST_MOVED:]):
            lines.append(f"  moved: {n_more} more")
        lines += [f"  advice: {advice}" for advice in verdict.advice]
    for line in filter(None, lines):
        say(line)


def _print_columns(found: Detection) -> None:
    """Print how the columns of the tables were understood, one line for each kind.

    Columns that vary are left out with a note, unless the user has named them.
    """
    by_kind: dict[str, list[str]] = {kind: [] for kind in (*_KINDS.values(), "left out")}
    asked = {*found.settings.get("ignore", ()), *found.settings.get("kinds", ())}
    for column in found.encoder.columns_:
        if column.name == found.id:
            continue
        if column.outputs:
            by_kind[_KINDS[column.kind]].append(column.name)
        elif column.kind == "constant":
            note = column.note.removesuffix("; ignored")
            by_kind["left out"].append(f"{column.name} ({note})")
        elif column.name in asked:
            by_kind["left out"].append(f"{column.name} ({column.kind})")
    for kind, names in by_kind.items():
        if names:
            more = f" and {len(names) - _MOST_COLUMNS:,} more" if len(names) > _MOST_COLUMNS else ""
            say(f"{kind}: {', '.join(names[:_MOST_COLUMNS])}{more}")


def print_ending(found: Detection, warnings: Iterable[str], *, quiet: bool = False) -> None:
    """Print what to know about how the result was made: marks, notes, and kinds of columns.

    Of the warnings, `print_answer` has printed the remark unless the run is quiet.
    """
    from qms22.tables.texts.words import join_notes

    if found.marks is not None:
        rest = "row was" if found.n_scored == 1 else f"{found.n_scored:,} rows were"
        others = f"; the other {rest} searched" if found.n_marked else ""
        say(f"{found.marks}{others}")
    for note in join_notes(found.notes):
        say(f"note: {note}")
    print_notes(text for text in warnings if quiet or text != found.remark)
    if not quiet and found.normal_table is not None:
        _print_columns(found)


def _print_suspicious_normal(found: Detection) -> None:
    """Print which known-normal rows look like anomalies, if some clearly do."""
    rows = found.suspicious_normal
    if rows is None or rows.empty:
        return
    has_names = found.id is not None and found.id in rows.columns
    names = rows[found.id] if has_names else rows.index
    named = ", ".join(str(name) for name in names[:_MOST_NAMED])
    if len(rows) > _MOST_NAMED:
        named += f" and {len(rows) - _MOST_NAMED:,} more"
    how = "" if has_names else " (counted from 0)"
    rows_look = f"rows {named}{how} look like the most suspicious rows: check them"
    those_that_are = "those that are"
    if len(rows) == 1:
        rows_look = f"row {named}{how} looks like the most suspicious rows: check it"
        those_that_are = "it if it is"
    say(f"known-normal {rows_look} (--normal-to-check), and mark {those_that_are} not normal")


def _print_evaluation(found: Detection, truth: NDArray[np.bool_]) -> None:
    """Print how many of the flagged rows are outliers, the true positive rate and the AUC."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from qms22.metrics import true_positive_rate_at

    is_scored = ~np.isnan(found.scores)
    scores, labels = found.scores[is_scored], truth[is_scored]
    if not labels.any() or labels.all():
        say("no evaluation: all labels are the same")
        return
    n_flagged, n_hits = int(found.flagged.sum()), int(truth[found.flagged].sum())
    if found.fdr is None:
        rate = true_positive_rate_at(labels, scores, n_flagged)
    else:  # the flagged rows need not be the first ones
        rate = n_hits / int(labels.sum())
    say(
        f"by the labels: {n_hits:,} of the {n_flagged:,} flagged "
        f"{'row is an outlier' if n_flagged == 1 else 'rows are outliers'}, "
        f"TPR {rate:.4f}, AUC {roc_auc_score(labels, scores):.4f}"
    )
