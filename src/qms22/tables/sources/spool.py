"""Rows in a temporary Arrow file, for any number of passes."""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from qms22.tables.sources.column_types import common_type, force_cast
from qms22.tables.sources.compressed import TableFile
from qms22.tables.sources.file_rows import ArrowRows
from qms22.tables.sources.storage_types import StorageType


class SpooledRows(ArrowRows):
    """Rows in a temporary file that lives as long as they do.

    They are made from at least one batch.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qms22-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._spool = _Spool(self.folder)
        super().__init__(TableFile(self._spool.write(batches)))

    @property
    def n_bytes(self) -> int:
        """Size before the batches were compressed."""
        return self._spool.n_bytes

    def with_types(self, types: Mapping[str, StorageType]) -> SpooledRows:
        """Return the rows, whose columns are texts of a file, with the storage types of some.

        The other columns are left out.
        """
        self._types = types
        return self


class _Spool:
    """Record batches in a file, whose types may change from batch to batch until all are there.

    A driver that returns Python values, such as that of SQLite, has no types for a column: those of
    a batch are the types of its values.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_bytes = 0
        self._paths: list[Path] = []
        self._schemas: list[pa.Schema] = []
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        # A query may never end.
        self._least_free = shutil.disk_usage(folder).free // 2

    def write(self, batches: Iterable[pa.RecordBatch]) -> Path:
        """Write all batches, at least one, and return the file, in which they have one schema."""
        try:
            for batch in batches:
                self._add(batch)
        finally:
            self._close()
        return self._paths[0] if len(self._paths) == 1 else self._merge()

    def _add(self, batch: pa.RecordBatch) -> None:
        if not self._schemas or batch.schema != self._schemas[-1]:
            self._close()
            self._paths.append(self.folder / f"{len(self._paths)}.arrow")
            self._schemas.append(batch.schema)
            self._writer = _writer(self._paths[-1], batch.schema)
        if batch.num_rows and self._writer is not None:
            self._writer.write_batch(batch)
            if shutil.disk_usage(self.folder).free < self._least_free:
                raise OSError(errno.ENOSPC, "it fills half of the free disk")
        self.n_bytes += batch.nbytes

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _merge(self) -> Path:
        """Write the files into one, each column in the common type of its parts."""
        first = self._schemas[0]
        kinds = [
            common_type([schema.field(at).type for schema in self._schemas])
            for at in range(len(first))
        ]
        schema = pa.schema(list(zip(first.names, kinds, strict=True)))
        merged = self.folder / "merged.arrow"
        self.n_bytes = 0
        with _writer(merged, schema) as writer:
            for batch in self._parts():
                columns = map(force_cast, batch.columns, kinds)
                batch = pa.record_batch(list(columns), schema=schema)
                writer.write_batch(batch)
                self.n_bytes += batch.nbytes
        return merged

    def _parts(self) -> Iterator[pa.RecordBatch]:
        for path in self._paths:
            with pa.OSFile(str(path)) as file:
                reader = pa.ipc.open_file(file)
                for at in range(reader.num_record_batches):
                    yield reader.get_batch(at)
            path.unlink()


def _writer(path: Path, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    return pa.ipc.new_file(str(path), schema, options=options)
