"""Tables of results: ranks, scores and reasons beside the columns of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qms22.detection.result_columns import free_name, shown_ranks, without_clashes
from qms22.detection.streaming import rows_per_chunk

if TYPE_CHECKING:
    import pandas as pd

    from qms22.detection.result import Detection


def beside(
    found: Detection, table: pd.DataFrame, rows: NDArray[np.intp], ranks: NDArray[np.intp]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results of some rows, and their columns with names that do not clash.

    The rows are given by their columns, positions and ranks; rank 0 stands for none.
    """
    import pandas as pd

    reasons = np.full(len(rows), "", dtype=object)
    for at in np.flatnonzero(np.isin(rows, list(found.reasons))):
        reasons[at] = "; ".join(map(str, found.reasons[int(rows[at])]))
    results: dict[str, Any] = {
        "rank": shown_ranks(ranks),
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
    return without_clashes(results, table, found.source.names, found.id)


def ranks_of(found: Detection) -> NDArray[np.intp]:
    """Return the rank of every row of the batch, 0 for those without a score."""
    ranks = np.zeros(len(found.scores), dtype=np.intp)
    ranks[found.ranking] = np.arange(1, found.n_scored + 1)
    return ranks


def ranked_table(found: Detection, *, only_flagged: bool = False) -> pd.DataFrame:
    """Return the rows that are ranked or marked in order of rank; see `Detection.table`."""
    import pandas as pd

    rows = found.top
    if not only_flagged:
        rows = np.append(found.ranking, [] if found.marks is None else found.marks.decided)
    rows = rows.astype(np.intp)
    return pd.concat(beside(found, found.source.take(rows), rows, ranks_of(found)[rows]), axis=1)


def summary_of(found: Detection, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Return the results of some rows with their names."""
    import pandas as pd

    names = pd.DataFrame(index=rows) if found.id is None else found.source.take(rows, [found.id])
    return pd.concat(beside(found, names, rows, ranks_of(found)[rows]), axis=1)


def in_file_order(found: Detection) -> Iterator[pd.DataFrame]:
    """Yield the rows that are ranked or marked, with results, in the order of the file."""
    import pandas as pd

    ranks = ranks_of(found)
    is_listed = ranks > 0
    if found.marks is not None:
        is_listed[found.marks.decided] = True
    for rows, chunk in _parts(found):
        listed = rows[is_listed[rows]]
        part = chunk[is_listed[rows]]
        yield pd.concat(beside(found, part, listed, ranks[listed]), axis=1)


def parted_rows(found: Detection, *, is_bad: bool) -> Iterator[pd.DataFrame]:
    """Yield the bad rows with reasons, or all others, with their own columns and in their order.

    Bad are the flagged rows and known anomalies.
    """
    import pandas as pd

    chosen = found.flagged.copy()
    if found.marks is not None:
        chosen[found.marks.anomalies] = True
    name, known = free_name("reasons", found.source.names), ["marked as anomaly"]
    for rows, chunk in _parts(found):
        is_chosen = chosen[rows] == is_bad
        part = chunk[is_chosen]
        if is_bad:
            why = [
                "; ".join(map(str, found.reasons.get(row, []) if found.flagged[row] else known))
                for row in rows[is_chosen].tolist()
            ]
            part = part.assign(**{name: pd.Series(why, part.index, dtype="string")})
        yield part


def _parts(found: Detection) -> Iterator[tuple[NDArray[np.intp], pd.DataFrame]]:
    """Yield the rows of the batch in their order, some at a time, with their positions."""
    source, first = found.source, 0
    n_rows = source.n_rows if source.is_loaded else rows_per_chunk(len(source.names))
    for chunk in source.chunks(n_rows=n_rows, exact=True):
        yield np.arange(first, first + len(chunk)), chunk
        first += len(chunk)
