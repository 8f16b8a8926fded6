"""Arrow and Feather files, and streams of Arrow batches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.columns.cells import check_names
from qms22.tables.sources.source import FileSource, has_any

# pandas writes row labels without a name into such a column.
_ROW_LABELS = re.compile(r"__index_level_\d+__")


def column_names(schema: Any, path: str) -> list[str]:
    """Return the columns of an Arrow schema without row labels.

    Raise ValueError if a name occurs twice.
    """
    names = [name for name in schema.names if not _ROW_LABELS.fullmatch(name)]
    check_names(names, path)
    return names


class ArrowStreamSource(FileSource):
    """A stream of Arrow batches in a file."""

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        with self._opened() as reader:
            return column_names(reader.schema, self.name)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(batch.num_rows for _, batch in self._parts(self.names, None))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with self._faults_named("Arrow or Feather"), self._file() as file:
            yield need("pyarrow.ipc", self.name).open_stream(file)

    def _file(self) -> Any:
        pa = need("pyarrow", self.name)
        content = self.file.content
        return (
            pa.OSFile(os.fsencode(self.file.path)) if content is None else pa.BufferReader(content)
        )

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        with self._opened() as reader:
            first = 0
            for batch in reader:
                yield first, _validated(batch, columns)
                first += batch.num_rows


class ArrowSource(ArrowStreamSource):
    """An Arrow or Feather file, memory-mapped if the address space has room for it."""

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._sizes)

    @cached_property
    def _sizes(self) -> list[int]:
        with self._opened(self.names[:1]) as reader:
            return [reader.get_batch(at).num_rows for at in range(reader.num_record_batches)]

    @contextmanager
    def _opened(self, columns: list[str] | None = None) -> Iterator[Any]:
        ipc = need("pyarrow.ipc", self.name)
        with self._faults_named("Arrow or Feather"), self._file() as file:
            fields = None
            if columns:
                names = ipc.open_file(file).schema.names
                fields = [names.index(name) for name in columns]
            yield ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))

    def _file(self) -> Any:
        try:
            if self.file.content is None:
                return need("pyarrow", self.name).memory_map(os.fsencode(self.file.path))
        except OSError:
            pass
        return super()._file()

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        with self._opened(columns) as reader:
            first = 0
            for at, n_rows in enumerate(self._sizes):
                if has_any(positions, first, n_rows):
                    yield first, _validated(reader.get_batch(at), columns)
                first += n_rows


def _validated(batch: Any, columns: list[str]) -> Any:
    """Return columns of a batch; raise an error of pyarrow if offsets point outside of it."""
    batch = batch.select(columns)
    batch.validate(full=True)
    return batch
