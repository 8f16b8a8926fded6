"""The rows of a table as Arrow record batches, and what a format reads from a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qms22._runtime.memory import MemoryBudget
from qms22.tables.sources.column_types import cast_column
from qms22.tables.sources.compressed import fault
from qms22.tables.sources.storage_types import StorageType, convert

# Rows of a batch or chunk: megabytes, so that many fit into memory.
BATCH = 1 << 16


class EmptyTableError(ValueError):
    """A table without rows."""


class Wanted(NamedTuple):
    """What to read of a table."""

    columns: list[str]
    # Ascending. Batches without any of these rows may be left out.
    positions: NDArray[np.intp] | None = None
    # Columns to return as texts: as the file has them, or what their values are as text.
    texts: Collection[str] = ()


class Rows(ABC):
    """Rows that can be read any number of times."""

    names: list[str]
    n_rows: int

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Approximate size of what is stored."""

    @abstractmethod
    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches, each with the position of its first row."""

    def behind(self, wanted: Wanted) -> Rows:
        """Return the rows that have what is wanted: these, or where they come from."""
        return self

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
        remedy = "take fewer rows, or get the file again if it is damaged"
        raise fault(f"{name} does not fit into memory", error, remedy) from error


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


class ColumnLook(NamedTuple):
    """How a workbook shows a column."""

    number_format: str | int = "General"  # in Excel's words, or by its number
    width: float | None = None  # in characters, if somebody has set it


@dataclass(frozen=True, eq=False)
class Content:
    """What a format reads from a file."""

    rows: Rows | None  # None where the table itself has them
    notes: tuple[str, ...] = ()  # what was guessed or left out, in sentences that name the file
    label: str | None = None  # the class column, if the file declares one, as KEEL files do
    # Returns where a row is in the file, such as "line 7"; by default its position.
    place: Callable[[int], str] | None = None
    with_commas: frozenset[str] = frozenset()  # columns of numbers with decimal commas
    with_na: frozenset[str] = frozenset()  # columns of texts with "NA", which is most often missing
    # Of a text: what separates cells; all above the first row, and the rows as they are written.
    separator: str = ""
    written: Callable[[], Iterator[str]] | None = None
    # Returns how a workbook shows its columns, by name.
    looks: Callable[[], dict[str, ColumnLook]] = dict


class MemoryRows(Rows):
    """Rows in memory.

    `types` has the storage types of columns that are kept as the texts of a file. `original` is
    where the rows come from, if it knows the texts of a file.
    """

    def __init__(
        self,
        table: pa.Table,
        types: Mapping[str, StorageType] | None = None,
        original: Rows | None = None,
    ) -> None:
        self.table, self._types, self._original = table, types or {}, original
        self.names, self.n_rows = table.column_names, table.num_rows

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return int(self.table.nbytes)

    def load(self, name: str) -> MemoryRows:
        """Return the rows."""
        return self

    def behind(self, wanted: Wanted) -> Rows:
        """Return these rows, or where they come from if texts of the file are wanted."""
        reads_texts = not set(wanted.columns).isdisjoint(wanted.texts)
        return self._original if self._original is not None and reads_texts else self

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return record batches."""
        first = 0
        for batch in self.select(wanted._replace(positions=None)).to_batches(max_chunksize=BATCH):
            yield first, batch
            first += batch.num_rows

    def select(self, wanted: Wanted) -> pa.Table:
        """Return some columns and rows, in the order of their positions."""
        table, source = self.table.select(wanted.columns), self.behind(wanted)
        if source is not self:
            batches = source.batches(wanted._replace(positions=None))
            table = pa.Table.from_batches([batch for _, batch in batches])
        if wanted.positions is not None:
            table = table.take(pa.array(wanted.positions))
        return typed_rows(table, self._types, wanted.texts)


def has_any(positions: NDArray[np.intp] | None, first: int, n_rows: int) -> bool:
    """Return whether any of the ascending positions is among `n_rows` rows from `first` on."""
    if positions is None:
        return True
    begin, end = np.searchsorted(positions, (first, first + n_rows))
    return bool(begin < end)


def typed_rows(
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
