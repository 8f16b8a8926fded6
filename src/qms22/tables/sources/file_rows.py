"""Rows in files of Arrow, also temporary ones, and Parquet, which are read when needed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qms22._runtime.memory import MemoryBudget, TooLargeError
from qms22.tables.columns.cells import check_names
from qms22.tables.sources.arrow_sizes import batch_sizes
from qms22.tables.sources.column_types import common_type, force_cast, is_text
from qms22.tables.sources.compressed import MOST_RATIO, TableFile, shorten_error
from qms22.tables.sources.storage_types import StorageType
from qms22.tables.sources.stored_rows import BATCH, MemoryRows, Rows, Wanted, has_any, typed_rows

# pandas writes row labels without a name into such a column.
_ROW_LABELS = re.compile(r"__index_level_\d+__")
# A column of a Parquet file is read in pieces of this many bytes, for row groups of any size.
_BUFFER = 1 << 17
# The most values of a batch of a Parquet file: 4 MiB of numbers, for tables of many columns.
_CELLS = 1 << 19
# The most bytes of such a batch that one text may take, if it is in the file once for many rows.
_TEXTS = 1 << 28


class _FileRows(Rows):
    """Rows in a file that pyarrow reads."""

    _format = "Arrow or Feather"

    def __init__(self, file: TableFile) -> None:
        if file.is_compressed:
            file.load()  # not read from start to end
        self._file = file
        self._is_checked = False

    @abstractmethod
    def _reader(self) -> AbstractContextManager[Any]:
        """Open the file with a reader of pyarrow."""

    @cached_property
    def names(self) -> list[str]:
        """The columns without row labels, those of structs as columns of their own, such as a.b."""
        with self._reader() as reader:
            is_parquet = isinstance(reader, pq.ParquetFile)
            schema = reader.schema_arrow if is_parquet else reader.schema
            names = [name for field in schema for name in _leaves(field)]
            names = [name for name in names if not _ROW_LABELS.fullmatch(name)]
            check_names(names, str(self._file.path))
        return names

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self._file.n_bytes

    def _check_sizes(self, data: pa.NativeFile) -> None:
        """Raise ValueError if a batch, unpacked, is larger than memory has room for."""
        if not self._is_checked:
            budget = MemoryBudget(self._file.path)
            for n_bytes in batch_sizes(data):
                budget.check(n_bytes)
            data.seek(0)
            self._is_checked = True

    @contextmanager
    def _data(self) -> Iterator[pa.NativeFile]:
        """Open the file; raise errors of pyarrow as a ValueError that names it."""
        try:
            content = self._file.content
            # As bytes: a name need not be UTF-8.
            path = os.fsencode(self._file.path)
            with pa.OSFile(path) if content is None else pa.BufferReader(content) as data:
                yield data
        except (MemoryError, TooLargeError):
            raise
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            raise ValueError(
                f"{self._file.path} cannot be read as {self._format} ({shorten_error(error)}); the "
                "file looks truncated or damaged, get it again"
            ) from error


class StreamRows(_FileRows):
    """Rows in a stream of Arrow batches."""

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(batch.num_rows for _, batch in self.batches(Wanted(self.names)))

    @contextmanager
    def _reader(self) -> Iterator[pa.RecordBatchReader]:
        with self._data() as data:
            self._check_sizes(data)
            yield pa.ipc.open_stream(data)

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches."""
        with self._reader() as reader:
            first = 0
            for batch in reader:
                yield first, typed_rows(_validated(batch, wanted.columns), {}, wanted.texts)
                first += batch.num_rows


class ArrowRows(_FileRows):
    """Rows in an Arrow or Feather file."""

    def __init__(self, file: TableFile) -> None:
        super().__init__(file)
        # Of all columns that are used, if these are texts of a file; the others are left out.
        self.types: Mapping[str, StorageType] = {}

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.types) or super().names

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._sizes)

    @cached_property
    def _sizes(self) -> list[int]:
        with self._reader(self.names[:1]) as reader:
            return [reader.get_batch(at).num_rows for at in range(reader.num_record_batches)]

    @contextmanager
    def _reader(self, columns: list[str] | None = None) -> Iterator[pa.ipc.RecordBatchFileReader]:
        with self._data() as data:
            self._check_sizes(data)
            fields = None
            if columns:
                schema = pa.ipc.open_file(data).schema
                fields = [at for at, each in enumerate(schema) if {*columns} & {*_leaves(each)}]
            yield pa.ipc.open_file(data, options=pa.ipc.IpcReadOptions(included_fields=fields))

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches."""
        with self._reader(wanted.columns) as reader:
            first = 0
            for at, n_rows in enumerate(self._sizes):
                if has_any(wanted.positions, first, n_rows):
                    batch = _validated(reader.get_batch(at), wanted.columns)
                    yield first, typed_rows(batch, self.types, wanted.texts)
                first += n_rows


class ParquetRows(_FileRows):
    """Rows in a Parquet file; a row group need not fit into memory."""

    _format = "Parquet"

    def __init__(self, file: TableFile) -> None:
        super().__init__(file)
        # The bytes of the longest text in each dictionary, by row group and column.
        self._lengths: dict[tuple[int, str], int] = {}

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, as the footer claims."""
        with self._reader() as file:
            n_rows: int = file.metadata.num_rows
        if n_rows < 0:
            raise ValueError(
                f"{self._file.path} claims {n_rows} rows; the file looks damaged, get it again"
            )
        return n_rows

    def load(self, name: str) -> MemoryRows:
        """Read all rows; raise ValueError if the footer claims more than memory has room for."""
        claim = f"it claims {self.n_rows} rows, or is damaged"
        MemoryBudget(self._file.path).check(8 * self.n_rows * len(self.names), claim)
        return super().load(name)

    @contextmanager
    def _reader(self) -> Iterator[pq.ParquetFile]:
        with (
            self._data() as data,
            pq.ParquetFile(data, buffer_size=_BUFFER, pre_buffer=False) as file,
        ):
            yield file

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches."""
        columns = wanted.columns
        most = min(BATCH, max(_CELLS // max(len(columns), 1), 1))
        with self._reader() as file:
            first = 0
            for group in range(file.num_row_groups):
                n_rows = file.metadata.row_group(group).num_rows
                if has_any(wanted.positions, first, n_rows):
                    at, size = first, max(min(most, _TEXTS // self._longest(group, columns)), 1)
                    for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                        flat = _flat(batch).select(columns)
                        yield at, typed_rows(flat, {}, wanted.texts)
                        at += batch.num_rows
                first += n_rows

    def _longest(self, group: int, columns: list[str]) -> int:
        """Return the bytes of the longest text that is stored once for many rows; at least one.

        Raise ValueError if pages are so much larger than in the file that they may fill the memory.
        """
        with self._reader() as file:
            texts = [field.name for field in file.schema_arrow if is_text(field.type)]
        with self._data() as data, pq.ParquetFile(data, read_dictionary=texts) as file:
            record = file.metadata.row_group(group)
            chunks = [record.column(at) for at in range(record.num_columns)]
            chunks = [chunk for chunk in chunks if chunk.path_in_schema in columns]
            unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
            if unpacked > MOST_RATIO * sum(chunk.total_compressed_size for chunk in chunks):
                MemoryBudget(self._file.path).check(unpacked)
            for chunk in chunks:
                place = group, chunk.path_in_schema
                if place in self._lengths or place[1] not in texts:
                    continue
                [first] = next(file.iter_batches(1, row_groups=[group], columns=[place[1]]), [None])
                levels = getattr(first, "dictionary", None)
                if levels is not None and is_text(levels.type):
                    self._lengths[place] = pc.max(pc.binary_length(levels)).as_py() or 1
        return max((self._lengths.get((group, name), 1) for name in columns), default=1)


def _leaves(field: pa.Field) -> list[str]:
    """Return the columns that a field is."""
    if not pa.types.is_struct(field.type):
        return [field.name]
    inner = (field.type.field(at) for at in range(field.type.num_fields))
    return [f"{field.name}.{name}" for each in inner for name in _leaves(each)]


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the fields of structs as columns."""
    if not any(pa.types.is_struct(field.type) for field in batch.schema):
        return batch
    table = pa.Table.from_batches([batch])
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    columns = [column.combine_chunks() for column in table.columns]
    return pa.record_batch(columns, names=table.column_names)


def _validated(batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
    """Return columns of a batch; raise an error of pyarrow if offsets point outside of it."""
    batch = _flat(batch).select(columns)
    batch.validate(full=True)
    return batch


class SpooledRows(ArrowRows):
    """Rows in a temporary file that lives as long as they do.

    They are made from at least one batch. Types may change from batch to batch: a driver that
    returns Python values, such as that of SQLite, has no types for a column, and those of a batch
    are the types of its values. In the file a column has what is common to all.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qms22-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        # A query may never end.
        self._least_free = shutil.disk_usage(self.folder).free // 2
        parts: list[tuple[Path, pa.Schema]] = []
        for schema, alike in groupby(batches, key=lambda batch: batch.schema):
            parts.append((self.folder / f"{len(parts)}.arrow", schema))
            self._write(*parts[-1], alike)
        if len(parts) > 1:
            merged = self.folder / "merged.arrow", _common_schema([schema for _, schema in parts])
            self._write(*merged, _cast_parts([path for path, _ in parts], merged[1]))
            parts = [merged]
        super().__init__(TableFile(parts[0][0]))

    def _write(self, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._n_written = 0
        with pa.ipc.new_file(str(path), schema, options=options) as writer:
            for batch in batches:
                if batch.num_rows:
                    writer.write_batch(batch)
                    if shutil.disk_usage(self.folder).free < self._least_free:
                        raise OSError(errno.ENOSPC, "it fills half of the free disk")
                self._n_written += batch.nbytes

    @property
    def n_bytes(self) -> int:
        """Size before the batches were compressed."""
        return self._n_written


def _common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return a schema with the common types of the columns of several."""
    columns = zip(*(schema.types for schema in schemas), strict=True)
    return pa.schema(list(zip(schemas[0].names, map(common_type, map(list, columns)), strict=True)))


def _cast_parts(paths: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read the batches of temporary files in one schema, and remove the files."""
    for path in paths:
        with pa.OSFile(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for at in range(reader.num_record_batches):
                columns = map(force_cast, reader.get_batch(at).columns, schema.types)
                yield pa.record_batch(list(columns), schema=schema)
        path.unlink()
