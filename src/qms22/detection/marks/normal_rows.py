"""Known-normal rows for a person to look at: only those found to be anomalies leave the table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.validation import check_count
from qms22.detection.marks.mark_table import ANOMALY, MARK, OF_NORMAL, SOURCE
from qms22.detection.marks.table_marks import TableMarks
from qms22.detection.result_columns import shown_ranks, without_clashes
from qms22.detection.rows import most_suspicious

if TYPE_CHECKING:
    import pandas as pd

# In benchmarks/dirty.py the first 5 % have half to two thirds of the anomalies in T. A person looks
# at each of them, so of a large table a round number is enough.
_SHARE_TO_CHECK = 0.05
_MOST_TO_CHECK = 100


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
    import pandas as pd

    if k is None:
        k = min(math.ceil(_SHARE_TO_CHECK * len(normal)), _MOST_TO_CHECK)
    check_count("k", k)
    if k > len(normal):
        raise ValueError(f"k={k} is more than the {len(normal):,} known-normal rows there are")
    first = most_suspicious(scores, k)
    table, rows, words = normal.iloc[first], positions[first], np.full(k, "", dtype=object)
    n_removed = 0
    if marks is not None:
        words = np.append(marks.words(rows, of_normal=True), np.full(len(marks.removed), ANOMALY))
        table = pd.concat([table, marks.removed_rows])
        rows, n_removed = np.append(rows, marks.removed), len(marks.removed)
    results: dict[str, Any] = {
        "rank": shown_ranks(np.append(np.arange(1, k + 1), np.zeros(n_removed, dtype=np.intp))),
        "row": rows,
        SOURCE: OF_NORMAL,
        "score": np.append(scores[first], np.full(n_removed, np.nan)),
        MARK: words,
    }
    names = [str(name) for name in table.columns]
    beside = without_clashes(results, table, names, id_name if id_name in names else None)
    return pd.concat(beside, axis=1)
