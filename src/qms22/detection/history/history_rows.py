"""Rows of batches as a history file keeps them, and the digest by which it knows a batch again."""

from __future__ import annotations

import io
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from qms22._runtime.chunks import draw_rows
from qms22.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# Cells of a batch that are kept; of a larger one rows are drawn. They take some 20 megabytes.
MOST_CELLS = 4_000_000


def digest(source: Table) -> str:
    """Return a digest of the columns and cells of a table, in their order."""
    import pandas as pd

    content = sha256("\0".join(source.names).encode("utf-8", "surrogatepass"))
    for chunk in source.chunks():
        plain = chunk.apply(lambda column: column.map(str) if column.dtype == object else column)
        content.update(pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes())
    return content.hexdigest()


def rows_to_keep(source: Table, columns: list[str], left_out: ArrayLike) -> pd.DataFrame:
    """Read rows of a table for a history, but those left out; of many, rows drawn at random."""
    rows = np.setdiff1d(np.arange(source.n_rows), left_out)
    drawn = draw_rows(len(rows), max(1, MOST_CELLS // len(columns)), np.random.RandomState(0))
    return source.take(rows[drawn], columns).rename(columns=str)


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Return a table as the content of a Parquet file; cells of mixed types become texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _arrow_column(frame[name]) for name in frame.columns}
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, compression="zstd")
    return content.getvalue()


def from_parquet(content: bytes) -> pd.DataFrame:
    """Return the table that `to_parquet` has written."""
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(content)).to_pandas(ignore_metadata=True)


def _arrow_column(values: pd.Series) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array(values.map(str, na_action="ignore"), from_pandas=True)
