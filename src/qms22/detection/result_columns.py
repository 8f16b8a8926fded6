"""Columns of results, beside those of the batch that they are about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables.columns.column_names import free_name

# The columns that tables of a `Detection` put before those of the batch or of known-normal rows.
RESULTS = (
    *("rank", "row", "source", "score", "flagged", "reasons", "p_value", "false_at_most", "mark"),
)


def shown_ranks(ranks: NDArray[np.intp]) -> Any:
    """Return ranks for a table; rows that were not searched, with rank 0, have none."""
    if ranks.all():
        return ranks
    return pd.arrays.IntegerArray(ranks.astype(np.int64), ranks == 0)


def without_clashes(
    results: dict[str, Any], table: pd.DataFrame, others: list[str], id_name: str | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rename columns of a table that clash with results, and put column `id_name` for "row".

    New names differ from those of `others`, the columns of the whole batch.
    """
    names: list[Any] = list(table.columns)
    texts = [str(name) for name in names]
    taken = set(results) - ({"row"} if id_name is not None else set())
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
