"""Results on a terminal: findings, flagged rows and others, in tables that fit its width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from qms22._runtime.visible_text import one_line

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray
    from rich.table import Table
    from rich.text import Text

    from qms22.detection import Detection, RowReason
    from qms22.detection.findings.finding import Finding

# As many rows as fit a screen; more are for a file or the page. Those of a finding are much alike.
_MOST_ROWS = 20
_MOST_PER_FINDING = 3
# If fewer rows are flagged, others are shown below them.
_LEAST_ROWS = 10

# Characters of a cell, at most; on a terminal narrower than usual, fewer columns are shown. Reasons
# need two fifths of the width, and of the usual one, beside the columns that matter.
_WIDEST_CELL = 24
NARROW = 80
_REASON = 34

# A heading, texts or rich's, and how rich shows them.
TextColumn = tuple[str, "Sequence[str | Text]", dict[str, Any]]
RIGHT = {"justify": "right", "no_wrap": True}
WIDE = {"overflow": "fold", "ratio": 1}


class ShownRows(NamedTuple):
    """Rows to show, the most suspicious first.

    `results` has headings and texts: rank, name, and p-value or score. `cells` has all columns of
    the batch, and `numeric` the names of those with numbers.
    """

    results: list[tuple[str, list[str]]]
    cells: pd.DataFrame
    reasons: Sequence[Sequence[RowReason]]
    numeric: set[str]


def print_found(found: Detection) -> None:
    """Print the findings, the flagged rows, and below a line others if few are flagged."""
    from rich.console import Console

    console = Console()
    if found.findings:
        console.print(_findings_table(found.findings, console.width))
        console.print()
    if found.n_flagged:
        shown = flagged_to_show(found)
        console.print(_rows_table(_title(found), shown, console.width))
        n_more = found.n_flagged - len(shown.reasons)
        if n_more > 0:
            more_rows = "1 more row" if n_more == 1 else f"{n_more:,} more rows"
            more = f"and {more_rows}; --output and --report have all of them"
            console.print(more, highlight=False)
    others = others_to_show(found)
    if others.reasons:
        if found.n_flagged:
            console.rule(style="")
        which = "next most" if found.n_flagged else "most"
        title = f"The {which} suspicious rows, not certain"
        console.print(_rows_table(title, others, console.width))


def _title(found: Detection) -> str:
    """Return what the flagged rows are."""
    rows = f"row{'s' * (found.n_flagged != 1)}"
    if found.fdr is not None or found.normal_table is None:
        return f"{found.n_flagged:,} flagged {rows}"
    is_fine = found.verdict is not None and found.verdict.decision == "fine"
    return f"The {found.n_flagged:,} most suspicious {rows}" + (", not certain" if is_fine else "")


def flagged_to_show(found: Detection) -> ShownRows:
    """Return the flagged rows to show, few of each finding."""
    return _rows_to_show(found, _few_per_finding(found.top, found.findings)[:_MOST_ROWS])


def others_to_show(found: Detection) -> ShownRows:
    """Return the rows to show below the flagged ones, unless the user has said how many to flag."""
    is_asked = found.n_flagged and found.fdr is None
    end = 0 if is_asked else min(_LEAST_ROWS, found.n_scored)
    return _rows_to_show(found, [*range(found.n_flagged, end)])


def _rows_to_show(found: Detection, places: list[int]) -> ShownRows:
    """Return rows at some places of the ranking."""
    rows = found.ranking[places]
    cells = found.source.take(rows)
    cells = cells.set_axis([str(name) for name in cells.columns], axis=1)
    names = rows if found.id is None else cells[found.id]
    results = [
        ("#", [f"{place + 1:,}" for place in places]),
        (found.id or "row", [cut(_cell_text(name)) for name in names]),
    ]
    if found.p_values is not None:
        results.append(("p", [p_text(value) for value in found.p_values[rows].tolist()]))
    else:
        results.append(("score", [f"{value:.4g}" for value in found.scores[rows].tolist()]))
    numeric = {column.name for column in found.encoder.columns_ if column.kind == "number"}
    reasons = [found.reasons.get(row, []) for row in rows.tolist()]
    return ShownRows(results, cells, reasons, numeric)


def _few_per_finding(rows: NDArray[np.intp], findings: Sequence[Finding]) -> list[int]:
    """Return the places of rows to show: the first ones of each finding, and all others."""
    of_row = {row: at for at, finding in enumerate(findings) for row in finding.rows.tolist()}
    n_shown: Counter[int | None] = Counter()
    chosen = []
    for place, row in enumerate(rows.tolist()):
        finding = of_row.get(row)
        n_shown[finding] += 1
        if finding is None or n_shown[finding] <= _MOST_PER_FINDING:
            chosen.append(place)
    return chosen


def columns_that_matter(shown: ShownRows, width: int) -> list[str]:
    """Return the columns to blame, those of the first rows first, as many as there is room for."""
    named = [reason.columns for reasons in shown.reasons for reason in reasons]
    strongest = [reasons[0].columns[:1] for reasons in shown.reasons if reasons]
    blamed = (name for columns in (*strongest, *named) for name in columns)
    # The name of the row is shown anyway, and a saved model may know more columns.
    there = {*shown.cells.columns} - {shown.results[1][0]}
    reasons = max(_REASON, 2 * width // 5)
    room = width - reasons - sum(2 + _longest([name, *texts]) for name, texts in shown.results)
    chosen = []
    for name in dict.fromkeys(name for name in blamed if name in there):
        room -= 2 + _longest([name, *map(_cell_text, shown.cells[name])])
        if room < 0:
            break
        chosen.append(name)
    return chosen


def _rows_table(title: str, shown: ShownRows, width: int) -> Table:
    """Return a table of rows: results, the columns that matter, and the reasons."""
    from rich.text import Text

    number, name, value = shown.results
    columns: list[TextColumn] = [(*number, RIGHT), (*name, {}), (*value, RIGHT)]
    blamed = [{name for reason in reasons for name in reason.columns} for reasons in shown.reasons]
    for heading in columns_that_matter(shown, width):
        cells = [
            Text(one_line(cut(_cell_text(value)) or "—"), "bold" if heading in names else "")
            for value, names in zip(shown.cells[heading], blamed, strict=True)
        ]
        side = "right" if heading in shown.numeric else "left"
        columns.append((cut(heading), cells, {"justify": side}))
    why = [
        Text("\n".join(one_line(f"{'· ' * (len(reasons) > 1)}{each}") for each in reasons))
        for reasons in shown.reasons
    ]
    return text_table(title, *columns, ("why", why, WIDE))


def _findings_table(findings: Sequence[Finding], width: int) -> Table:
    """Return a table of findings: their size, their name, and how normal rows compare."""
    fewest = [each.fewest_outliers for each in findings]
    shares = [each.normal_share for each in findings]
    likes = [f"{100 * each:.1f} %" if each else "" if each is None else "0 %" for each in shares]
    p_values = [each.p_value if each.is_beyond_chance else None for each in findings]
    columns: list[TextColumn] = [
        ("rows", [f"{len(each.rows):,}" for each in findings], RIGHT),
        ("anomalies", [f"at least {each:,}" if each else "" for each in fewest], {"no_wrap": True}),
        ("what they have in common", [each.name for each in findings], WIDE),
        ("normal rows", likes, {"justify": "right"}),
        ("p", ["" if each is None else p_text(each) for each in p_values], RIGHT),
    ]
    left_out = {"" if any(fewest) else "anomalies", "" if width >= NARROW else "p"}
    title = f"{len(findings)} finding{'s' * (len(findings) != 1)}"
    return text_table(title, *(column for column in columns if column[0] not in left_out))


def text_table(title: str, *columns: TextColumn) -> Table:
    """Return a table without lines, which leaves room on a narrow terminal."""
    from rich.table import Table
    from rich.text import Text

    # Texts of rich, as it reads markup and emoji in others.
    heading = Text(one_line(title), "table.title")
    table = Table(
        title=heading, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )
    for name, _, style in columns:
        table.add_column(Text(one_line(name)), **style)
    for cells in zip(*(cells for _, cells, _ in columns), strict=True):
        table.add_row(*(Text(one_line(each)) if isinstance(each, str) else each for each in cells))
    return table


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
    from qms22.tables.texts.words import number_text

    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return number_text(value) if value.is_integer() else f"{value:.10g}"
    return str(value)
