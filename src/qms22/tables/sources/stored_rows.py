"""The rows of a table as Arrow record batches: in memory, in an Arrow file, in a Parquet file."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from qms22._runtime.memory import MemoryBudget, TooLargeError
from qms22.tables.columns.cells import check_names
from qms22.tables.sources.arrow_sizes import batch_sizes
from qms22.tables.sources.column_types import cast_column, is_text
from qms22.tables.sources.compressed import MOST_RATIO, TableFile, shorten_error
from qms22.tables.sources.storage_types import StorageType, convert

# Rows of a batch or chunk: megabytes, so that many fit into memory.
BATCH = 1 << 16
# pandas writes row labels without a name into such a column.
_ROW_LABELS = re.compile(r"__index_level_\d+__")
# A column of a Parquet file is read in pieces of this many bytes, for row groups of any size.
_BUFFER = 1 << 17
# The most values of a batch of a Parquet file: 4 MiB of numbers, for tables of many columns.
_CELLS = 1 << 19
# The most bytes of such a batch that one text may take, if it is in the file once for many rows.
_TEXTS = 1 << 28


class EmptyTableError(ValueError):
    """A table without rows."""


class Wanted(NamedTuple):
    """What to read of a table.

    Parameters
    ----------
    columns : list of str
    positions : ndarray of int, optional
        Ascending. Batches without any of these rows may be left out.
    texts : collection of str
        Columns to return as texts: as the file has them, or what their values are as text.
    """

    columns: list[str]
    positions: NDArray[np.intp] | None = None
    texts: Collection[str] = ()


class Rows(ABC):
    """Rows that can be read any number of times."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Approximate size of what is stored."""

    @abstractmethod
    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches, each with the position of its first row."""

    def load(self, name: str) -> MemoryRows:
        """Read all rows into memory; `name` is that of the table in messages."""
        with in_memory(name):
            batches = self.batches(Wanted(self.names))
            return MemoryRows(read_all(batches, self.n_rows, name), original=self)


@contextmanager
def in_memory(name: str) -> Iterator[None]:
    """Raise ValueError, and name the table, if it does not fit into memory."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(
            f"{name} does not fit into memory ({shorten_error(error)}); take fewer rows, or "
            "get the file again if it is damaged"
        ) from error


def read_all(batches: Iterable[tuple[int, pa.RecordBatch]], n_rows: int, name: str) -> pa.Table:
    """Return batches as a table; raise ValueError if memory has no room or rows are missing."""
    budget, n_bytes, found = MemoryBudget(name), 0, []
    for _, batch in batches:
        n_bytes += batch.nbytes
        budget.check(n_bytes)
        found.append(batch)
    check_count(sum(batch.num_rows for batch in found), n_rows, n_rows, name)
    return pa.Table.from_batches(found)


def check_count(n_found: int, n_expected: int, n_claimed: int, name: str) -> None:
    """Raise ValueError if a table has more or fewer rows than it claims."""
    if n_found != n_expected:
        raise ValueError(
            f"{name} claims {n_claimed} rows but holds a different number; the file looks damaged "
            "or has changed while it was read, get it again"
        )


@dataclass(frozen=True, eq=False)
class Content:
    """What a format reads from a file.

    Parameters
    ----------
    rows : Rows or None
        None where the table itself has them.
    notes : tuple of str
        What was guessed or left out, in sentences that name the file.
    label : str or None
        The class column, if the file declares one, as KEEL files do.
    place : callable, optional
        Returns where a row is in the file, such as "line 7"; by default its position.
    """

    rows: Rows | None
    notes: tuple[str, ...] = ()
    label: str | None = None
    place: Callable[[int], str] | None = None


class MemoryRows(Rows):
    """Rows in memory.

    Parameters
    ----------
    table : pyarrow.Table
    types : mapping of str to str, optional
        The storage types of columns that are kept as the texts of a file.
    original : Rows, optional
        Where they come from, if it knows the texts of a file.
    """

    def __init__(
        self,
        table: pa.Table,
        types: Mapping[str, StorageType] | None = None,
        original: Rows | None = None,
    ) -> None:
        self.table = table
        self._types = types or {}
        self._original = original

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.table.column_names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return int(self.table.nbytes)

    def load(self, name: str) -> MemoryRows:
        """Return the rows."""
        return self

    def has_gaps(self, name: str) -> bool:
        """Return whether any cell of a column is missing."""
        return bool(self.table.column(name).null_count)

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return record batches."""
        first = 0
        for batch in self.select(wanted._replace(positions=None)).to_batches(max_chunksize=BATCH):
            yield first, batch
            first += batch.num_rows

    def select(self, wanted: Wanted) -> pa.Table:
        """Return some columns and rows, in the order of their positions."""
        columns, positions, texts = wanted
        table = self.table.select(columns)
        if self._original is not None and not set(columns).isdisjoint(texts):
            parts = [batch for _, batch in self._original.batches(Wanted(columns, None, texts))]
            table = pa.Table.from_batches(parts)
        if positions is not None:
            table = table.take(pa.array(positions))
        return _typed(table, self._types, texts)


class _FileRows(Rows):
    """Rows in a file that pyarrow reads."""

    _format = "Arrow or Feather"

    def __init__(self, file: TableFile) -> None:
        if file.is_compressed:
            file.load()  # not read from start to end
        self._file = file
        self._is_checked = False

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
    def names(self) -> list[str]:
        """The columns."""
        with self._reader() as reader:
            return _column_names(reader.schema, self._file)

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
                yield first, _typed(_validated(batch, wanted.columns), {}, wanted.texts)
                first += batch.num_rows


class ArrowRows(_FileRows):
    """Rows in an Arrow or Feather file."""

    def __init__(self, file: TableFile) -> None:
        super().__init__(file)
        # Of all columns that are used, if these are texts of a file.
        self._types: Mapping[str, StorageType] = {}

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        if self._types:
            return list(self._types)
        with self._reader() as reader:
            return _column_names(reader.schema, self._file)

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
                    yield first, _typed(batch, self._types, wanted.texts)
                first += n_rows


class ParquetRows(_FileRows):
    """Rows in a Parquet file; a row group need not fit into memory."""

    _format = "Parquet"

    def __init__(self, file: TableFile) -> None:
        super().__init__(file)
        # The bytes of the longest text in each dictionary, by row group and column.
        self._lengths: dict[tuple[int, str], int] = {}

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        with self._reader() as file:
            return _column_names(file.schema_arrow, self._file)

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
                        yield at, _typed(flat, {}, wanted.texts)
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


def has_any(positions: NDArray[np.intp] | None, first: int, n_rows: int) -> bool:
    """Return whether any of the ascending positions is among `n_rows` rows from `first` on."""
    if positions is None:
        return True
    begin, end = np.searchsorted(positions, (first, first + n_rows))
    return bool(begin < end)


def _column_names(schema: pa.Schema, file: TableFile) -> list[str]:
    """Return the columns without row labels, those of structs as columns of their own, such as a.b.

    Raise ValueError if a name occurs twice.
    """
    names = [name for field in schema for name in _leaves(field) if not _ROW_LABELS.fullmatch(name)]
    check_names(names, str(file.path))
    return names


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


def _typed(
    rows: pa.RecordBatch | pa.Table, types: Mapping[str, StorageType], texts: Collection[str]
) -> pa.RecordBatch | pa.Table:
    """Return rows with columns as values of their storage types, or as texts."""
    if not types and not texts:
        return rows
    columns = [
        cast_column(column, pa.string()) if name in texts else convert(column, types.get(name))
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return type(rows).from_arrays(columns, names=rows.column_names)
