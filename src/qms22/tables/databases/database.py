"""Databases behind one interface: their tables, the rows of a query, and new tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from qms22.tables.databases.database_place import DatabasePlace
from qms22.tables.sources.column_types import plain_text

# Rows that a driver without Arrow returns at once as Python objects: a few megabytes.
FETCHED = 1 << 14
# PostgreSQL counts a month of an interval as 30 days, too.
_DAY = 86_400
_MONTH = 30 * _DAY


class Database(ABC):
    """An open database.

    Queries run in a connection or transaction that cannot write, where the database has one, unless
    a `new` table is to be written.
    """

    def __init__(self, place: DatabasePlace, *, new: bool = False) -> None:
        self.connection = self._connect(place, new)

    @abstractmethod
    def _connect(self, place: DatabasePlace, new: bool) -> Any:
        """Return a connection of the driver."""

    @abstractmethod
    def tables(self) -> dict[str, str]:
        """Return the tables and views by name, each as it is written in SQL."""

    @abstractmethod
    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run a query; return its rows as Arrow record batches, at least one."""

    @abstractmethod
    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        """Write Arrow tables of one schema into a new table, in one transaction."""

    def close(self) -> None:
        """Close the connection, and undo what was not committed."""
        self.connection.close()


def quoted(name: str) -> str:
    """Return an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def by_schema(found: Iterable[tuple[str, str]], usual: str | None) -> dict[str, str]:
    """Return tables by name; those outside of the usual schema as schema.table."""
    names = {}
    for schema, table in found:
        name = table if schema == usual else f"{schema}.{table}"
        names[name] = f"{quoted(schema)}.{quoted(table)}"
    return names


def plain_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Return the batches of a record batch reader in plain types, the first one without rows."""
    names = reader.schema.names
    yield pa.RecordBatch.from_arrays(
        [plain(pa.array([], field.type)) for field in reader.schema], names=names
    )
    for batch in reader:
        yield pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], names=names)


def fetched(cursor: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Return rows of a cursor as record batches with the types of their values."""
    is_first = True
    while (rows := cursor.fetchmany(FETCHED)) or is_first:
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        yield pa.RecordBatch.from_arrays([from_values(column) for column in columns], names=names)
        is_first = False


def from_values(values: Sequence[Any]) -> pa.Array:
    """Return Python values as an Arrow array; texts if they have no type in common."""
    try:
        return plain(pa.array(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([plain_text(value) for value in values], pa.string())


def plain(array: pa.Array) -> pa.Array:
    """Return an array of a database as numbers, booleans, dates or texts.

    Decimals become floats, intervals seconds, and times of day, UUIDs and enumerations texts. What
    has no such form, such as lists and bytes, stays.
    """
    kind = array.type
    if types.is_decimal(kind):
        return array.cast(pa.float64())
    if types.is_time(kind):
        return array.cast(pa.time32("s"), safe=False).cast(pa.string())
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_interval(kind):
        return pa.array([_seconds(value) for value in array.to_pylist()], pa.float64())
    if isinstance(kind, pa.BaseExtensionType):
        return pa.array([plain_text(value) for value in array.to_pylist()], pa.string())
    return array


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    return float(value.months * _MONTH + value.days * _DAY + value.nanoseconds / 1e9)
