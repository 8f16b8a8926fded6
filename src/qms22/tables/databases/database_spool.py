"""A temporary Arrow file that keeps the rows of a query, for any number of passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from qms22._runtime.packages import need
from qms22.tables.databases.database_columns import convert
from qms22.tables.sources.column_types import common_type


class Spool:
    """Record batches in a file, whose types may change from batch to batch until `finish`.

    A driver that returns Python values, such as that of SQLite, has no types for a column: those of
    a batch are the types of its values.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_bytes = 0
        self._paths: list[Path] = []
        self._schemas: list[Any] = []
        self._writer: Any = None

    def write(self, batches: Iterable[Any]) -> Path:
        """Write all batches, at least one, and return the file, in which they have one schema."""
        try:
            for batch in batches:
                self._add(batch)
        finally:
            self._close()
        return self._paths[0] if len(self._paths) == 1 else self._merge()

    def _add(self, batch: Any) -> None:
        if self._schemas and batch.schema != self._schemas[-1]:
            batch = _with_nulls_typed(batch, self._schemas[-1])
        if not self._schemas or batch.schema != self._schemas[-1]:
            self._close()
            self._paths.append(self.folder / f"{len(self._paths)}.arrow")
            self._schemas.append(batch.schema)
            self._writer = _writer(self._paths[-1], batch.schema)
        if batch.num_rows:
            self._writer.write_batch(batch)
        self.n_bytes += batch.nbytes

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _merge(self) -> Path:
        """Write the files into one, each column in the common type of its parts."""
        pa = need("pyarrow")
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
                columns = map(convert, batch.columns, kinds)
                batch = pa.record_batch(list(columns), schema=schema)
                writer.write_batch(batch)
                self.n_bytes += batch.nbytes
        return merged

    def _parts(self) -> Iterator[Any]:
        pa, ipc = need("pyarrow"), need("pyarrow.ipc")
        for path in self._paths:
            with pa.OSFile(str(path)) as file:
                reader = ipc.open_file(file)
                for at in range(reader.num_record_batches):
                    yield reader.get_batch(at)
            path.unlink()


def _writer(path: Path, schema: Any) -> Any:
    ipc = need("pyarrow.ipc")
    return ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression="lz4"))


def _with_nulls_typed(batch: Any, schema: Any) -> Any:
    """Return a batch whose columns without any value have the types of another schema."""
    pa = need("pyarrow")
    columns = [
        column.cast(field.type) if pa.types.is_null(column.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
