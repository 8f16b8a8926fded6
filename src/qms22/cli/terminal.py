"""Results on a terminal: findings first, then rows, in tables that fit its width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from qms22.detection import Detection, RowReason
    from qms22.detection.findings import Finding

# More rows are for a file or the page.
_MOST_ROWS = 20
# Rows that are shown if none is flagged.
_MOST_UNCERTAIN = 10

# Characters of a cell, at most; of a terminal with fewer columns than the second number fewer are
# shown. Reasons need this many characters beside the columns that matter.
_WIDEST_CELL = 24
_NARROW = 80
_REASON = 34


class ShownRows(NamedTuple):
    """Rows to show, the most suspicious first.

    Parameters
    ----------
    results : list of (str, list of str)
        Headings and texts: rank, name, and p-value or score.
    cells : DataFrame
        All columns of the batch.
    reasons : list of sequence of RowReason
    """

    results: list[tuple[str, list[str]]]
    cells: pd.DataFrame
    reasons: list[Sequence[RowReason]]


def print_found(found: Detection) -> None:
    """Print the findings and the flagged rows; if there are none, the most suspicious rows."""
    from rich.console import Console

    console = Console()
    findings = found.findings
    if findings:
        console.print(_findings_table(findings, console.width))
        console.print()
    shown = rows_to_show(found)
    console.print(_rows_table(title_of(found), shown, console.width))
    n_more = int(found.flagged.sum()) - len(shown.reasons)
    if n_more > 0:
        console.print(f"and {n_more:,} more rows; --output and --report have all of them")


def title_of(found: Detection) -> str:
    """Return what the rows are that are shown."""
    n_flagged = int(found.flagged.sum())
    of = f"of {found.n_scored:,} rows"
    rate = "" if found.fdr is None else f" at a false discovery rate of {found.fdr:g}"
    if not n_flagged:
        return f"No row is flagged{rate}; the most suspicious {of}, not certain"
    if found.fdr is None and found.normal is not None:
        is_fine = found.verdict is not None and found.verdict.decision == "fine"
        return f"The {n_flagged:,} most suspicious {of}" + (", not certain" if is_fine else "")
    return f"{n_flagged:,} {of} {'is' if n_flagged == 1 else 'are'} flagged{rate}"


def rows_to_show(found: Detection) -> ShownRows:
    """Return the flagged rows to show; if there are none, the most suspicious rows."""
    import numpy as np

    if found.flagged.any():
        rows = found.top[:_MOST_ROWS]
        ranks = found.summary()["rank"].to_numpy()[:_MOST_ROWS]
    else:
        rows = found.ranking[:_MOST_UNCERTAIN]
        ranks = np.arange(1, len(rows) + 1)
    cells = found.source.take(rows)
    cells = cells.set_axis([str(name) for name in cells.columns], axis=1)
    names = rows if found.id is None else cells[found.id]
    results = [
        ("#", [f"{rank:,}" for rank in ranks.tolist()]),
        (found.id or "row", [cut(_cell_text(name)) for name in names]),
    ]
    if found.p_values is not None:
        results.append(("p", [p_text(value) for value in found.p_values[rows].tolist()]))
    else:
        results.append(("score", [f"{value:.4g}" for value in found.scores[rows].tolist()]))
    return ShownRows(results, cells, [found.reasons.get(row, []) for row in rows.tolist()])


def columns_that_matter(shown: ShownRows, width: int) -> list[str]:
    """Return the columns that reasons name most often, as many as there is room for."""
    named = Counter(
        name
        for reasons in shown.reasons
        for name in dict.fromkeys(name for reason in reasons for name in reason.columns)
    )
    del named[shown.results[1][0]]  # the name of the row is shown anyway
    room = width - _REASON - sum(2 + _longest([name, *texts]) for name, texts in shown.results)
    chosen = []
    for name, _ in named.most_common():
        room -= 2 + _longest([name, *map(_cell_text, shown.cells[name])])
        if room < 0:
            break
        chosen.append(name)
    return chosen


def _rows_table(title: str, shown: ShownRows, width: int) -> Table:
    """Return a table of rows: results, the columns that matter, and the reasons."""
    table = plain_table(title)
    for at, (heading, _) in enumerate(shown.results):
        is_name = at == 1
        table.add_column(
            _safe(heading), justify="left" if is_name else "right", no_wrap=not is_name
        )
    matter = columns_that_matter(shown, width)
    for name in matter:
        is_number = shown.cells[name].dtype.kind in "iuf"
        table.add_column(_safe(cut(name)), justify="right" if is_number else "left")
    table.add_column("why", overflow="fold", ratio=1)
    for at, reasons in enumerate(shown.reasons):
        blamed = {name for reason in reasons for name in reason.columns}
        cells = [_safe(texts[at]) for _, texts in shown.results]
        for name in matter:
            text = _safe(cut(_cell_text(shown.cells[name].iloc[at])))
            cells.append(f"[bold]{text}[/bold]" if name in blamed and text else text)
        mark = "· " if len(reasons) > 1 else ""
        table.add_row(*cells, "\n".join(_safe(f"{mark}{reason}") for reason in reasons))
    return table


def _findings_table(findings: Sequence[Finding], width: int) -> Table:
    """Return a table of findings: their size, their name, and how normal rows compare."""
    n_findings = len(findings)
    table = plain_table(f"{n_findings} finding{'' if n_findings == 1 else 's'}")
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("what they have in common", overflow="fold", ratio=1)
    table.add_column("normal rows", justify="right")
    if width >= _NARROW:
        table.add_column("p", justify="right", no_wrap=True)
    for finding in findings:
        like = "" if finding.normal_share is None else percent(finding.normal_share)
        cells = [f"{len(finding.rows):,}", finding.name, like]
        if width >= _NARROW:
            cells.append("" if finding.p_value is None else p_text(finding.p_value))
        table.add_row(*map(_safe, cells))
    return table


def plain_table(title: str) -> Table:
    """Return a table without lines, which leaves room on a narrow terminal."""
    from rich.table import Table

    return Table(
        title=_safe(title), title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.123), percent(0.0)
    ('12.3 %', '0 %')
    """
    return f"{100 * share:.1f} %" if share else "0 %"


def p_text(p_value: float) -> str:
    """Return a p-value with two digits.

    >>> p_text(0.0312), p_text(1e-9)
    ('0.031', '< 0.001')
    """
    return f"{p_value:.2g}" if p_value >= 0.001 else "< 0.001"


def cut(text: str) -> str:
    """Return a text of one line, shortened if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST_CELL else f"{line[: _WIDEST_CELL - 1]}…"


def _longest(texts: Iterable[str]) -> int:
    return max(len(cut(text)) for text in texts)


def _cell_text(value: object) -> str:
    """Return a cell as text; a missing one is empty."""
    from qms22.tables.words import number_text

    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return number_text(value) if value.is_integer() else f"{value:.10g}"
    return str(value)


def _safe(text: str) -> str:
    """Return a text of a table so that it cannot control the terminal."""
    from rich.markup import escape

    from qms22.report.text import visible

    return escape(visible(text))
