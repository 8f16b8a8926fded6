"""Rows in files of Arrow, also temporary ones, and Parquet, which are read when needed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qms22._runtime.memory import MemoryBudget, TooLargeError
from qms22.tables.columns.cells import check_names
from qms22.tables.sources.arrow_sizes import MAGIC, batch_sizes
from qms22.tables.sources.column_types import common_type, force_cast
from qms22.tables.sources.compressed import (
    DAMAGED,
    MOST_RATIO,
    TableFile,
    bytes_at_once,
    fault,
)
from qms22.tables.sources.storage_types import StorageType
from qms22.tables.sources.stored_rows import BATCH, MemoryRows, Rows, Wanted, has_any, typed_rows

# pandas writes row labels without a name into such a column.
_ROW_LABELS = re.compile(r"__index_level_\d+__")
# A column of a Parquet file is read in pieces of this many bytes, for row groups of any size.
_BUFFER = 1 << 17
# The most values of a batch of a Parquet file: 4 MiB of numbers, for tables of many columns.
_CELLS = 1 << 19
# Bytes of a number.
_CELL = 8


class _FileRows(Rows):
    """Rows in a file that pyarrow reads."""

    _format = "Arrow or Feather"

    def __init__(self, file: TableFile) -> None:
        if file.is_compressed:
            file.load()  # not read from start to end
        self._file = file

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self._file.n_bytes

    def _names_in(self, schema: pa.Schema) -> list[str]:
        """Return the columns without row labels, those of structs as a.b."""
        names = [name for name in _leaves(schema) if not _ROW_LABELS.fullmatch(name)]
        check_names(names, str(self._file.path))
        return names

    @contextmanager
    def _data(self) -> Iterator[pa.NativeFile]:
        """Open the file; raise errors of pyarrow as a ValueError that names it."""
        try:
            content = self._file.content
            # As bytes: a name need not be UTF-8.
            path = os.fsencode(self._file.path)
            with pa.OSFile(path) if content is None else pa.BufferReader(content) as data:
                yield data
        except TooLargeError:
            raise
        except MemoryError as error:
            what = f"{self._file.path} does not fit into memory"
            raise TooLargeError(str(fault(what, error, "get it again if it is damaged"))) from error
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            what = f"{self._file.path} cannot be read as {self._format}"
            raise fault(what, error, DAMAGED) from error


class ArrowRows(_FileRows):
    """Rows in an Arrow or Feather file, or in a stream of Arrow batches."""

    def __init__(self, file: TableFile, *, is_safe: bool = False) -> None:
        super().__init__(file)
        # Of all columns that are used, if these are texts of a file; the others are left out.
        self.types: Mapping[str, StorageType] = {}
        with self._data() as data:
            self._is_stream = data.read(len(MAGIC)) != MAGIC
            # A batch, unpacked, may be larger than memory has room for.
            budget = MemoryBudget(file.path)
            for n_bytes in () if is_safe else batch_sizes(data, is_stream=self._is_stream):
                budget.check(n_bytes)
        with self._reader() as reader:
            self.names = self._names_in(reader.schema)
        with self._reader(self.names[:1]) as reader:
            n_batches = 0 if self._is_stream else reader.num_record_batches
            batches = reader if self._is_stream else map(reader.get_batch, range(n_batches))
            self._sizes = [batch.num_rows for batch in batches]
        self.n_rows = sum(self._sizes)

    @contextmanager
    def _reader(self, columns: Collection[str] = ()) -> Iterator[pa.ipc.RecordBatchFileReader]:
        """Open the file with a reader of pyarrow for some columns, all by default."""
        with self._data() as data:
            read = pa.ipc.open_stream if self._is_stream else pa.ipc.open_file
            fields = None
            if columns:
                schema = read(data).schema
                fields = [at for at, each in enumerate(schema) if {*columns} & {*_leaves([each])}]
                data.seek(0)
            yield read(data, options=pa.ipc.IpcReadOptions(included_fields=fields))

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches."""
        with self._reader(wanted.columns) as reader:
            first = 0
            for at, n_rows in enumerate(self._sizes):
                is_wanted = has_any(wanted.positions, first, n_rows)
                if is_wanted or self._is_stream:
                    batch = reader.read_next_batch() if self._is_stream else reader.get_batch(at)
                if is_wanted:
                    batch = _flat(batch).select(wanted.columns)
                    batch.validate(full=True)  # offsets may point outside of it
                    yield first, typed_rows(batch, self.types, wanted.texts)
                first += n_rows


class ParquetRows(_FileRows):
    """Rows in a Parquet file; a row group need not fit into memory."""

    _format = "Parquet"

    def __init__(self, file: TableFile) -> None:
        super().__init__(file)
        with self._reader() as reader:
            self.names, self.n_rows = self._names_in(reader.schema_arrow), reader.metadata.num_rows
        if self.n_rows < 0:
            raise ValueError(
                f"{file.path} claims {self.n_rows} rows; the file looks damaged, get it again"
            )

    def load(self, name: str) -> MemoryRows:
        """Read all rows; raise ValueError if the footer claims more than memory has room for."""
        claim = f"it claims {self.n_rows} rows, or is damaged"
        MemoryBudget(self._file.path).check(_CELL * self.n_rows * len(self.names), claim)
        return super().load(name)

    @cached_property
    def n_bytes(self) -> int:
        """Size of the values, also of texts that are in the file once for many rows."""
        sizes = (size for columns in self._sizes for size, _ in columns.values())
        return max(super().n_bytes, sum(sizes))

    @contextmanager
    def _reader(self, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        with (
            self._data() as data,
            pq.ParquetFile(
                data, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=texts
            ) as file,
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
                    widths = (self._sizes[group].get(name, (0, 0))[1] for name in columns)
                    at, size = first, max(min(most, bytes_at_once() // max(sum(widths), 1)), 1)
                    for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                        flat = _flat(batch).select(columns)
                        yield at, typed_rows(flat, {}, wanted.texts)
                        at += batch.num_rows
                first += n_rows

    @cached_property
    def _sizes(self) -> list[dict[str, tuple[int, int]]]:
        """The bytes of each column in each row group, and of its longest cell or mean list.

        Raise ValueError if pages are so much larger than in the file that they may fill the memory.
        """
        with self._reader() as file:
            columns = map(file.schema.column, range(len(file.schema.names)))
            texts = {each.path for each in columns if each.physical_type == "BYTE_ARRAY"}
        with self._reader([*texts]) as file:
            return [self._measure(file, group, texts) for group in range(file.num_row_groups)]

    def _measure(
        self, file: pq.ParquetFile, group: int, texts: Collection[str]
    ) -> dict[str, tuple[int, int]]:
        record = file.metadata.row_group(group)
        chunks = [record.column(at) for at in range(record.num_columns)]
        unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
        if unpacked > MOST_RATIO * sum(chunk.total_compressed_size for chunk in chunks):
            MemoryBudget(self._file.path).check(unpacked)
        names, found = {*self.names}, dict[str, tuple[int, int]]()
        for chunk in chunks:
            path, n_values = chunk.path_in_schema, chunk.num_values
            n_of_row = -(-n_values // max(record.num_rows, 1))
            size = max(chunk.total_uncompressed_size, _CELL * n_values)
            longest = mean = max(-(-size // max(n_values, 1)), 1)
            if path in texts and chunk.has_dictionary_page:
                room, total, n_levels = min(bytes_at_once() // mean, BATCH), 0, 0
                n_rows = max(room // max(n_of_row, 1), 1)
                for batch in file.iter_batches(n_rows, row_groups=[group], columns=[path]):
                    values = _innermost(batch.column(0))
                    if not pa.types.is_dictionary(values.type):
                        break  # numbers as bytes
                    lengths = pc.binary_length(values.dictionary)
                    longest = max(longest, pc.max(lengths).as_py() or 0)
                    total += pc.sum(lengths.take(values.indices)).as_py() or 0
                    if n_levels not in (0, len(lengths)):
                        size += total
                        break  # from here on, each text is in the file as often as in the table
                    n_levels = len(lengths)
                size = max(size, total)
            while path not in names and "." in path:  # in a list
                path = path.rpartition(".")[0]
            before = found.get(path, (0, 0))
            found[path] = before[0] + size, before[1] + longest * n_of_row
        return found


def _innermost(column: pa.Array) -> pa.Array:
    """Return the values of the only field in structs and lists."""
    while pa.types.is_nested(column.type):
        column = column.field(0) if pa.types.is_struct(column.type) else column.flatten()
    return column


def _leaves(fields: Iterable[pa.Field], before: str = "") -> Iterator[str]:
    """Return the columns that fields are."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, f"{before}{field.name}.")
        else:
            yield before + field.name


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the fields of structs as columns."""
    if not any(pa.types.is_struct(field.type) for field in batch.schema):
        return batch
    table = pa.Table.from_batches([batch])
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    columns = [column.combine_chunks() for column in table.columns]
    return pa.record_batch(columns, names=table.column_names)


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
            columns = zip(*(schema.types for _, schema in parts), strict=True)
            types = [common_type([*column]) for column in columns]
            common = pa.schema(list(zip(parts[0][1].names, types, strict=True)))
            self._write(self.folder / "merged.arrow", common, _cast_parts(parts, common))
            parts = [(self.folder / "merged.arrow", common)]
        super().__init__(TableFile(parts[0][0]), is_safe=True)

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


def _cast_parts(
    parts: Sequence[tuple[Path, pa.Schema]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Read the batches of temporary files in one schema, and remove the files."""
    for path, _ in parts:
        with pa.OSFile(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for at in range(reader.num_record_batches):
                columns = map(force_cast, reader.get_batch(at).columns, schema.types)
                yield pa.record_batch(list(columns), schema=schema)
        path.unlink()
