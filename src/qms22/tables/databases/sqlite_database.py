"""SQLite databases, by the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from qms22.tables.databases.database import Database, fetched, quoted
from qms22.tables.databases.database_place import DatabasePlace

# What a query needs to read, and the view that it becomes; the functions reach files.
_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
}
_FORBIDDEN_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
_ALLOWED_PRAGMAS = {"table_info", "table_xinfo", "table_list", "index_list", "data_version"}
# The types of columns, by Arrow's; others are texts.
_TYPES = (
    (types.is_integer, "INTEGER"),
    (types.is_floating, "REAL"),
    (types.is_boolean, "BOOLEAN"),
    (types.is_date, "DATE"),
    (types.is_timestamp, "TIMESTAMP"),
)
_TEMPORARY_SCHEMA = {"sqlite_temp_master", "sqlite_temp_schema"}


class Sqlite(Database):
    """SQLite, by the standard library.

    A column of SQLite may hold values of several types, and drivers that return Arrow take the type
    of the first rows for that of all.
    """

    def _connect(self, place: DatabasePlace, new: bool) -> Any:
        assert place.path is not None
        uri = place.path.resolve().as_uri() + ("?mode=rwc" if new else "?mode=ro")
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        # Texts of old programs are not always UTF-8.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        if not new:
            connection.set_authorizer(_authorize)
        return connection

    def tables(self) -> dict[str, str]:
        """Return the tables and views."""
        found = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        return {name: quoted(name) for (name,) in found}

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run a query; return its rows."""
        # A view can only be a query, and knows the declared types.
        self.connection.execute(f"CREATE TEMP VIEW qms22_query AS {query}")
        about = self.connection.execute("PRAGMA temp.table_info(qms22_query)").fetchall()
        truths = [at for at, row in enumerate(about) if str(row[2]).upper().startswith("BOOL")]
        cursor = self.connection.execute("SELECT * FROM temp.qms22_query")
        for batch in fetched(cursor, [row[1] for row in about]):
            yield _with_booleans(batch, truths)

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        """Write a new table."""
        self.connection.execute("BEGIN IMMEDIATE")
        for at, part in enumerate(parts):
            if not at:
                columns = [f"{quoted(each.name)} {_sqlite_type(each.type)}" for each in part.schema]
                self.connection.execute(f"CREATE TABLE {quoted(table)} ({', '.join(columns)})")
            marks = ", ".join("?" * part.num_columns)
            rows = zip(*map(_sqlite_values, part.columns), strict=True)
            self.connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", rows)
        self.connection.execute("COMMIT")


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, _: str | None
) -> int:
    """Return whether SQLite may do something while it runs a query: read, and make one view."""
    is_allowed = action in _ALLOWED
    if action == sqlite3.SQLITE_FUNCTION:
        is_allowed = second not in _FORBIDDEN_FUNCTIONS
    elif action == sqlite3.SQLITE_PRAGMA:
        is_allowed = first in _ALLOWED_PRAGMAS
    elif action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE):
        is_allowed = first in _TEMPORARY_SCHEMA
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _with_booleans(batch: pa.RecordBatch, columns: list[int]) -> pa.RecordBatch:
    """Return a batch whose declared booleans, which SQLite keeps as 0 and 1, are booleans."""
    for at in columns:
        column, field = batch.column(at), batch.schema.field(at)
        is_truth = column.type == pa.int64() and (
            pc.all(pc.is_in(column.drop_null(), pa.array([0, 1]))).as_py() is not False
        )
        if is_truth:
            batch = batch.set_column(at, field.with_type(pa.bool_()), column.cast(pa.bool_()))
    return batch


def _sqlite_type(kind: pa.DataType) -> str:
    return next((name for is_kind, name in _TYPES if is_kind(kind)), "TEXT")


def _sqlite_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; SQLite keeps dates as texts in ISO form."""
    values: list[Any] = column.to_pylist()
    if types.is_temporal(column.type):
        return [None if value is None else str(value) for value in values]
    return values
