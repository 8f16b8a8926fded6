"""Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.memory import memory_left
from qms22._runtime.packages import need
from qms22.tables.sources.arrow_source import column_names
from qms22.tables.sources.source import BATCH, FileSource, has_any

# A column is read in pieces of this many bytes, for row groups of any size.
_BUFFER = 1 << 17
# The most values of a batch.
_CELLS = 1 << 19


class ParquetSource(FileSource):
    """A Parquet file; a row group need not fit into memory."""

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        with self._opened() as file:
            return column_names(file.schema_arrow, self.name)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, as the footer claims."""
        with self._opened() as file:
            n_rows: int = file.metadata.num_rows
        if n_rows < 0:
            raise ValueError(
                f"{self.name} claims {n_rows} rows; the file looks damaged, get it again"
            )
        return n_rows

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values; the file may be far smaller."""
        return max(super().n_bytes, 8 * self.n_rows * len(self.names))

    def read(self) -> Any:
        """Read the whole table; raise ValueError if the footer claims more than the memory left."""
        size, left = 8 * self.n_rows * len(self.names), memory_left()
        if left is not None and size > left:
            raise ValueError(
                f"{self.name} claims {self.n_rows} rows of {len(self.names)} columns, "
                f"{size / 2**30:.1f} GiB where {left / 2**30:.1f} GiB of memory are left; get the "
                "file again if it is damaged, or take fewer rows"
            )
        return super().read()

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pa, parquet = need("pyarrow", self.name), need("pyarrow.parquet", self.name)
        content = self.file.content
        with (
            self._faults_named("Parquet"),
            # As bytes: a name need not be UTF-8.
            pa.OSFile(os.fsencode(self.file.path))
            if content is None
            else pa.BufferReader(content) as data,
            parquet.ParquetFile(data, buffer_size=_BUFFER, pre_buffer=False) as file,
        ):
            yield file

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        size = min(BATCH, max(_CELLS // max(len(columns), 1), 1))
        with self._opened() as file:
            first = 0
            for group in range(file.num_row_groups):
                n_rows = file.metadata.row_group(group).num_rows
                if has_any(positions, first, n_rows):
                    at = first
                    for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                        yield at, batch.select(columns)
                        at += batch.num_rows
                first += n_rows
