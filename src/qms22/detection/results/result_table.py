"""Tables of results beside the columns of the batch, and of known-normal rows to look at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22._runtime.validation import check_count
from qms22._runtime.visible_text import visible
from qms22.detection.marks.mark_table import ANOMALY, MARK, OF_NORMAL, SOURCE
from qms22.detection.marks.table_marks import TableMarks
from qms22.detection.results.csv_text import csv_cell
from qms22.detection.rows import most_suspicious
from qms22.detection.streaming import rows_per_chunk
from qms22.tables.columns.column_names import free_name
from qms22.tables.sources.stored_rows import check_count as check_rows
from qms22.tables.texts.words import number_text

if TYPE_CHECKING:
    from qms22.detection.result import Detection

# In benchmarks/dirty.py the first 5 % have half to two thirds of the anomalies in T. A person looks
# at each of them, so of a large table a round number is enough.
_SHARE_TO_CHECK = 0.05
_MOST_TO_CHECK = 100
# As many rows as a terminal shows at least.
_ROWS_IN_NOTEBOOK = 10


def beside(
    found: Detection, table: pd.DataFrame, rows: NDArray[np.intp]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results of some rows, and their columns with names that do not clash.

    The rows are given by their columns and positions.
    """
    ranks = found._ranks[rows]
    reasons = np.full(len(rows), "", dtype=object)
    for at in np.flatnonzero(np.isin(rows, list(found.reasons))):
        reasons[at] = "; ".join(map(str, found.reasons[int(rows[at])]))
    results: dict[str, Any] = {
        "rank": _shown_ranks(ranks),
        "row": rows,
        "score": found.scores[rows],
        "flagged": found.flagged[rows],
        "reasons": reasons,
    }
    if found.comparison is not None:
        most = found.comparison.curve.of_first(ranks)
        results["p_value"] = found.comparison.p_values[rows]
        results["false_at_most"] = pd.arrays.IntegerArray(most, ranks == 0)
    if found.marks is not None:
        results["mark"] = found.marks.words(rows)
    return _without_clashes(results, table, found.source.names, found.id)


def summary_of(found: Detection, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Return the results of some rows with their names."""
    names = pd.DataFrame(index=rows) if found.id is None else found.source.take(rows, [found.id])
    return pd.concat(beside(found, names, rows), axis=1)


def notebook_text(found: Detection) -> str:
    """Return the first rows for a notebook, results rounded; text of the table stays text."""
    title, rows = repr(found), found.top
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


def in_file_order(found: Detection) -> Iterator[pd.DataFrame]:
    """Yield the rows that are ranked or marked, with results, in the order of the file."""
    is_listed = found._ranks > 0
    is_listed[found._decided] = True
    for rows, chunk in _parts(found):
        is_here = is_listed[rows]
        yield pd.concat(beside(found, chunk[is_here], rows[is_here]), axis=1)


def parted_rows(found: Detection, *, is_bad: bool) -> Iterator[pd.DataFrame]:
    """Yield the bad rows with reasons, or all others, with their own columns and in their order."""
    why, name = _why_bad(found), free_name("reasons", found.source.names)
    for rows, chunk in _parts(found):
        reasons = [why.get(row) for row in rows.tolist()]
        part = chunk[[(reason is not None) == is_bad for reason in reasons]]
        if is_bad:
            texts = [reason for reason in reasons if reason is not None]
            part = part.assign(**{name: pd.Series(texts, part.index, dtype="string")})
        yield part


def parted_lines(found: Detection, lines: Iterable[str], *, is_bad: bool) -> Iterator[str]:
    """Yield what `parted_rows` does as lines, from those of a text, which begin with its head."""
    cells = {row: csv_cell(why, is_quoted=True) for row, why in _why_bad(found).items()}
    if is_bad:
        cells[-1] = free_name("reasons", found.source.names)
    row = -1
    for row, line in enumerate(lines, start=-1):
        if is_bad and row in cells and line:
            text = line.rstrip("\r\n")
            yield f"{text}{found.source.content.separator}{cells[row]}{line[len(text) :]}"
        elif not is_bad and row not in cells:
            yield line
    check_rows(row + 1, len(found.scores), len(found.scores), found.source.name)


def _shown_ranks(ranks: NDArray[np.intp]) -> Any:
    """Return ranks for a table; rows that were not searched, with rank 0, have none."""
    return ranks if ranks.all() else pd.arrays.IntegerArray(ranks.astype(np.int64), ranks == 0)


def _without_clashes(
    results: dict[str, Any], table: pd.DataFrame, others: list[str], id_name: str | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rename columns of a table that clash with results, and put column `id_name` for "row".

    New names differ from those of `others`, the columns of the whole batch.
    """
    names: list[Any] = list(table.columns)
    texts = [str(name) for name in names]
    taken = {*results} - ({"row"} if id_name is not None else set())
    for at, name in enumerate(texts):
        if name in taken:
            names[at] = free_name(name, {*taken, *others})
            taken.add(names[at])
    table = table.set_axis(names, axis=1)
    if id_name is not None:
        name = names[texts.index(str(id_name))]
        ids = table.pop(name)
        results = {name if key == "row" else key: values for key, values in results.items()}
        results[name] = ids.array
    return pd.DataFrame(results, index=table.index), table


def _why_bad(found: Detection) -> dict[int, str]:
    """Return the reasons of bad rows: the flagged ones and known anomalies."""
    known = [] if found.marks is None else found.marks.anomalies.tolist()
    why = {row: "; ".join(map(str, found.reasons.get(row, []))) for row in found.top.tolist()}
    return dict.fromkeys(known, "marked as anomaly") | why


def _parts(found: Detection) -> Iterator[tuple[NDArray[np.intp], pd.DataFrame]]:
    """Yield the rows of the batch in their order, some at a time, with their positions."""
    source, first = found.source, 0
    n_rows = source.n_rows if source.is_loaded else rows_per_chunk(len(source.names))
    for chunk in source.chunks(n_rows=n_rows, exact=True):
        yield np.arange(first, first + len(chunk)), chunk
        first += len(chunk)


def rows_to_check(
    normal: pd.DataFrame,
    positions: NDArray[np.intp],
    scores: NDArray[np.float64],
    marks: TableMarks | None,
    id_name: str | None,
    k: int | None,
) -> pd.DataFrame:
    """Return the `k` most suspicious known-normal rows, then those that marks have taken out.

    `positions` and `scores` are those of the rows of `normal`. If these lack the column `id_name`,
    they are named by their positions.
    """
    if k is None:
        k = min(math.ceil(_SHARE_TO_CHECK * len(normal)), _MOST_TO_CHECK)
    check_count("k", k)
    if k > len(normal):
        raise ValueError(f"k={k} is more than the {len(normal):,} known-normal rows there are")
    first = most_suspicious(scores, k)
    table, rows, words = normal.iloc[first], positions[first], np.full(k, "", dtype=object)
    removed = np.empty(0, dtype=np.intp)
    if marks is not None:
        words, removed = marks.words(rows, of_normal=True), marks.removed
        table = pd.concat([table, marks.removed_rows])
    results: dict[str, Any] = {
        "rank": _shown_ranks(np.append(np.arange(1, k + 1), np.zeros_like(removed))),
        "row": np.append(rows, removed),
        SOURCE: OF_NORMAL,
        "score": np.append(scores[first], np.full(len(removed), np.nan)),
        MARK: np.append(words, np.full(len(removed), ANOMALY)),
    }
    names = [str(name) for name in table.columns]
    parts = _without_clashes(results, table, names, id_name if id_name in names else None)
    return pd.concat(parts, axis=1)
