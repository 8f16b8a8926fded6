"""Databases behind one interface: SQLite, DuckDB, PostgreSQL, and what SQLAlchemy knows."""

from __future__ import annotations

import errno
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import types

from qms22._runtime.packages import need
from qms22.tables.databases.database_place import DatabasePlace
from qms22.tables.sources.column_types import plain_text
from qms22.tables.sources.compressed import shorten_error
from qms22.tables.sources.stored_rows import BATCH

# Rows that a driver without Arrow returns at once as Python objects: a few megabytes.
_FETCHED = 1 << 14
# PostgreSQL counts a month of an interval as 30 days, too.
_DAY = 86_400
_MONTH = 30 * _DAY
# What a query of SQLite needs to read, and the view that it becomes; the functions reach files.
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


class Database(ABC):
    """An open database.

    Queries run in a connection or transaction that cannot write, where the database has one, unless
    a `new` table is to be written.
    """

    connection: Any  # of the driver

    @abstractmethod
    def __init__(self, place: DatabasePlace, *, new: bool) -> None: ...

    @abstractmethod
    def tables(self) -> dict[str, str]:
        """Return the tables and views by name, each as it is written in SQL."""

    @abstractmethod
    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run a query; return its rows as Arrow record batches, at least one."""

    @abstractmethod
    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        """Write Arrow tables of one schema into a new table, in one transaction."""


class _Sqlite(Database):
    """SQLite, by the standard library.

    A column of SQLite may hold values of several types, and drivers that return Arrow take the type
    of the first rows for that of all.
    """

    def __init__(self, place: DatabasePlace, *, new: bool) -> None:
        assert place.path is not None
        uri = place.path.resolve().as_uri() + ("?mode=rwc" if new else "?mode=ro")
        self.connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        # Texts of old programs are not always UTF-8.
        self.connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        if not new:
            self.connection.set_authorizer(_authorize)

    def tables(self) -> dict[str, str]:
        found = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        return {name: _quoted(name) for (name,) in found}

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        # A view can only be a query, and knows the declared types.
        self.connection.execute(f"CREATE TEMP VIEW qms22_query AS {query}")
        about = self.connection.execute("PRAGMA temp.table_info(qms22_query)").fetchall()
        truths = [at for at, row in enumerate(about) if str(row[2]).upper().startswith("BOOL")]
        cursor = self.connection.execute("SELECT * FROM temp.qms22_query")
        for batch in _fetched(cursor, [row[1] for row in about]):
            yield _with_booleans(batch, truths)

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        for at, part in enumerate(parts):
            if not at:
                columns = [
                    _quoted(each.name)
                    + next((f" {name}" for is_of, name in _TYPES if is_of(each.type)), " TEXT")
                    for each in part.schema
                ]
                self.connection.execute(f"CREATE TABLE {_quoted(table)} ({', '.join(columns)})")
            marks = ", ".join("?" * part.num_columns)
            rows = zip(*map(_sqlite_values, part.columns), strict=True)
            self.connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({marks})", rows)
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
        column = batch.column(at)
        if column.type == pa.int64() and {*column.unique().to_pylist()} <= {0, 1, None}:
            batch = batch.set_column(at, batch.schema.names[at], column.cast(pa.bool_()))
    return batch


def _sqlite_values(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column; SQLite keeps dates as texts in ISO form."""
    is_text = types.is_temporal(column.type)
    return [str(each) if is_text and each is not None else each for each in column.to_pylist()]


class _DuckDB(Database):
    """DuckDB, by its own package.

    Without access to anything but the file of the database: a view may name other files, and COPY
    inside of a query writes them, although the database is opened for reading.
    """

    def __init__(self, place: DatabasePlace, *, new: bool) -> None:
        self._duckdb = need("duckdb", place.name, "sql")
        self.connection = self._duckdb.connect(
            str(place.path),
            read_only=not new,
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",  # from the network
                "lock_configuration": "true",
            },
        )

    def tables(self) -> dict[str, str]:
        found = self.connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = current_database() ORDER BY table_schema, table_name"
        )
        return _by_schema(found.fetchall(), "main")

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        kinds = [each.type for each in self._duckdb.extract_statements(query)]
        if kinds != [self._duckdb.StatementType.SELECT]:
            raise self._duckdb.InvalidInputException("it is not one statement that reads")
        yield from _plain_batches(self.connection.sql(query).to_arrow_reader(BATCH))

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        name = ".".join(map(_quoted, table.split(".")))
        self.connection.begin()
        for at, part in enumerate(parts):
            self.connection.register("qms22_part", part)
            into = f"INSERT INTO {name}" if at else f"CREATE TABLE {name} AS"
            self.connection.execute(f"{into} SELECT * FROM qms22_part")
        self.connection.commit()


# Types that arrive in a form of the server, not as values; an infinite date is a missing one.
_FINITE = "CASE WHEN isfinite({0}) THEN {0} END"
_CASTS = {
    "numeric": "{0}::float8",
    "money": "{0}::numeric::float8",
    "bpchar": "{0}::text",
    "date": _FINITE,
    "timestamp": _FINITE,
    "timestamptz": _FINITE,
}


class _Postgres(Database):
    """PostgreSQL, by ADBC, which reads Arrow from the server's binary COPY."""

    def __init__(self, place: DatabasePlace, *, new: bool) -> None:
        self.connection = need("adbc_driver_postgresql.dbapi", place.name, "sql").connect(place.url)
        if not new:
            with self.connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def tables(self) -> dict[str, str]:
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema::text, table_name::text FROM information_schema.tables "
                "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
            )
            found = cursor.fetchall()
            cursor.execute("SELECT current_schema()::text")
            return _by_schema(found, cursor.fetchone()[0])

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        with self.connection.cursor() as cursor:
            schema = cursor.adbc_execute_schema(query)
            cursor.execute(_with_casts(query, schema))
            yield from _plain_batches(cursor.fetch_record_batch())

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        schema, _, name = table.rpartition(".")
        with self.connection.cursor() as cursor:
            for at, part in enumerate(parts):
                mode = "append" if at else "create"
                cursor.adbc_ingest(name, part, mode=mode, db_schema_name=schema or None)
        self.connection.commit()


def _with_casts(query: str, schema: pa.Schema) -> str:
    """Return a query of PostgreSQL whose columns have types that ADBC turns into values."""
    columns = []
    for at, field in enumerate(schema):
        kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
        usual = "{0}::text" if isinstance(field.type, pa.BaseExtensionType) else "{0}"
        value = _CASTS.get(kind, usual).format(f"c{at}")
        columns.append(f"{value} AS {_quoted(field.name)}")
    names = ", ".join(f"c{at}" for at in range(len(schema)))
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS q ({names})"


class _OtherDatabase(Database):
    """A database that SQLAlchemy knows, with the driver that its URL names.

    The query runs inside of another one, because not every database has transactions that cannot
    write.
    """

    def __init__(self, place: DatabasePlace, *, new: bool) -> None:
        self._sqlalchemy = need("sqlalchemy", place.name, "sql")
        engine = self._sqlalchemy.create_engine(place.url, poolclass=self._sqlalchemy.NullPool)
        self.connection = engine.connect()

    def tables(self) -> dict[str, str]:
        inspector = self._sqlalchemy.inspect(self.connection)
        quote = self.connection.dialect.identifier_preparer.quote
        names = [*inspector.get_table_names(), *inspector.get_view_names()]
        return {name: quote(name) for name in sorted(names)}

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        if ";" in query:
            what = "it is more than one statement, or has a semicolon"
            raise self._sqlalchemy.exc.ArgumentError(what)
        options = {"stream_results": True, "yield_per": _FETCHED}
        # Inside of another query nothing can write. A colon would start a parameter.
        sql = self._sqlalchemy.text(f"SELECT * FROM ({query}\n) qms22_query".replace(":", r"\:"))
        with self.connection.execute(sql, execution_options=options) as result:
            yield from _fetched(result, list(result.keys()))

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        schema, _, name = table.rpartition(".")
        for at, part in enumerate(parts):
            part.to_pandas().to_sql(
                name,
                self.connection,
                schema=schema or None,
                index=False,
                if_exists="append" if at else "fail",
            )
        self.connection.commit()


def _quoted(name: str) -> str:
    """Return an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _by_schema(found: Iterable[tuple[str, str]], usual: str | None) -> dict[str, str]:
    """Return tables by name; those outside of the usual schema as schema.table."""
    names = {}
    for schema, table in found:
        name = table if schema == usual else f"{schema}.{table}"
        names[name] = f"{_quoted(schema)}.{_quoted(table)}"
    return names


def _plain_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Return the batches of a record batch reader in plain types, the first one without rows."""
    # Not from_pylist, which changes the types of codes in older versions of Arrow.
    without_rows = [column.combine_chunks() for column in reader.schema.empty_table().columns]
    for columns in chain([without_rows], (batch.columns for batch in reader)):
        yield pa.RecordBatch.from_arrays(list(map(_plain, columns)), reader.schema.names)


def _fetched(cursor: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Return rows of a cursor as record batches with the types of their values."""
    is_first = True
    while (rows := cursor.fetchmany(_FETCHED)) or is_first:
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        yield pa.RecordBatch.from_arrays([_from_values(column) for column in columns], names=names)
        is_first = False


def _from_values(values: Sequence[object]) -> pa.Array:
    """Return Python values as an Arrow array; texts if they have no type in common."""
    try:
        return _plain(pa.array(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([plain_text(value) for value in values], pa.string())


def _plain(array: pa.Array) -> pa.Array:
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
        return _plain(array.dictionary_decode())
    if types.is_interval(kind):
        return pa.array([_seconds(value) for value in array.to_pylist()], pa.float64())
    if isinstance(kind, pa.BaseExtensionType):
        return pa.array([plain_text(value) for value in array.to_pylist()], pa.string())
    return array


def _seconds(value: pa.MonthDayNano | None) -> float | None:
    if value is None:
        return None
    return float(value.months * _MONTH + value.days * _DAY + value.nanoseconds / 1e9)


_CLASSES: dict[str, Callable[..., Database]] = {
    "sqlite": _Sqlite,
    "duckdb": _DuckDB,
    "postgresql": _Postgres,
}


@contextmanager
def opened(place: DatabasePlace, *, new: bool = False) -> Iterator[Database]:
    """Open a database; errors of the driver become a ValueError of one sentence."""
    try:
        database = _CLASSES.get(place.scheme, _OtherDatabase)(place, new=new)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{place.database} needs a driver that is not installed ({error}); install it with pip"
        ) from error
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # every driver has its own
        remedy = "check the address, the user and the password, and whether the server runs"
        if place.path is not None:
            remedy = "the file is in use or damaged, or you may not read it"
        fault, cause = _fault(f"cannot connect to {place.database}", error, place, remedy)
        raise fault from cause
    with closing(database.connection):  # which undoes what was not committed
        try:
            yield database
        except (ImportError, MemoryError):
            raise
        except Exception as error:
            if isinstance(error, ValueError) and not isinstance(error, pa.ArrowException):
                raise  # ours
            what, remedy = "read", "correct the table or the query"
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                remedy = "free space for temporary files"
            if new:
                what, remedy = "written", "name a new table of a database that you may write"
            fault, cause = _fault(f"{place.name} cannot be {what}", error, place, remedy)
            raise fault from cause


def _fault(
    what: str, error: Exception, place: DatabasePlace, remedy: str
) -> tuple[ValueError, Exception | None]:
    """Return what a driver says about an error, in a few words and without passwords.

    With it goes the error as its cause, unless a password is in that.
    """
    text = str(error)
    cause = error if place.hide(text) == text else None
    if match := re.search(r"(?:Failed to connect|ERROR|FATAL): +(.*)", text):
        text = match[1]
    first = text.strip().partition("\n")[0]
    reason = shorten_error(ValueError(place.hide(first)))
    return ValueError(f"{what} ({reason}); {remedy}"), cause
