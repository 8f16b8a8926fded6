"""Tables of results: ranks, scores and reasons beside the columns of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qms22.detection.result_columns import free_name, shown_ranks
from qms22.detection.streaming import rows_per_chunk

if TYPE_CHECKING:
    import pandas as pd

    from qms22.detection.result import Detection


def results_of(found: Detection, rows: NDArray[np.intp], ranks: NDArray[np.intp]) -> dict[str, Any]:
    """Return the columns of results for some rows of the batch; rank 0 stands for none."""
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
    return results


def in_file_order(found: Detection) -> Iterator[pd.DataFrame]:
    """Yield the rows that are ranked or marked, with results, in the order of the file."""
    import pandas as pd

    ranks = np.zeros(len(found.scores), dtype=np.uint32)
    ranks[found.ranking] = np.arange(1, found.n_scored + 1, dtype=np.uint32)
    is_listed = ranks > 0
    if found.marks is not None:
        is_listed[found.marks.decided] = True
    first = 0
    n_rows = rows_per_chunk(len(found.source.names))
    for chunk in found.source.chunks(n_rows=n_rows, exact=True):
        rows = np.arange(first, first + len(chunk))
        first += len(chunk)
        rows, part = rows[is_listed[rows]], chunk[is_listed[rows]]
        yield pd.concat(found.beside(part, rows, ranks[rows].astype(np.intp)), axis=1)


def parted_rows(found: Detection, *, is_bad: bool) -> Iterator[pd.DataFrame]:
    """Yield the bad rows with reasons, or all others, with their own columns and in their order.

    Bad are the flagged rows and known anomalies.
    """
    import pandas as pd

    chosen = found.flagged.copy()
    if found.marks is not None:
        chosen[found.marks.anomalies] = True
    chosen = chosen if is_bad else ~chosen
    source, known = found.source, ["marked as anomaly"]
    name = free_name("reasons", source.names)
    n_rows = source.n_rows if source.is_loaded else rows_per_chunk(len(source.names))
    first = 0
    for chunk in source.chunks(n_rows=n_rows, exact=True):
        rows = first + np.flatnonzero(chosen[first : first + len(chunk)])
        part = chunk.iloc[rows - first]
        if is_bad:
            why = [
                "; ".join(map(str, found.reasons.get(row, []) if found.flagged[row] else known))
                for row in rows.tolist()
            ]
            part = part.assign(**{name: pd.Series(why, part.index, dtype="string")})
        yield part
        first += len(chunk)


def summary_of(found: Detection, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Return the results of the first rows, in their order, with their names."""
    import pandas as pd

    names = pd.DataFrame(index=rows) if found.id is None else found.source.take(rows, [found.id])
    return pd.concat(found.beside(names, rows, np.arange(1, len(rows) + 1)), axis=1)
