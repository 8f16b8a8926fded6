"""The drivers of databases: SQLite, DuckDB, PostgreSQL, and what SQLAlchemy knows."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from qms22._runtime.packages import need
from qms22.tables.databases.database import (
    FETCHED,
    Database,
    by_schema,
    fetched,
    plain_batches,
    quoted,
)
from qms22.tables.databases.database_place import DatabasePlace
from qms22.tables.sources.compressed import shorten_error
from qms22.tables.sources.stored_rows import BATCH

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
                columns = [
                    quoted(each.name)
                    + next((f" {name}" for is_of, name in _TYPES if is_of(each.type)), " TEXT")
                    for each in part.schema
                ]
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


def _sqlite_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; SQLite keeps dates as texts in ISO form."""
    values: list[Any] = column.to_pylist()
    if types.is_temporal(column.type):
        return [None if value is None else str(value) for value in values]
    return values


class DuckDB(Database):
    """DuckDB, by its own package.

    Without access to anything but the file of the database: a view may name other files, and COPY
    inside of a query writes them, although the database is opened for reading.
    """

    def _connect(self, place: DatabasePlace, new: bool) -> Any:
        return need("duckdb", place.name, "sql").connect(
            str(place.path),
            read_only=not new,
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",  # from the network
                "lock_configuration": "true",
            },
        )

    def tables(self) -> dict[str, str]:
        """Return the tables and views."""
        found = self.connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = current_database() ORDER BY table_schema, table_name"
        )
        return by_schema(found.fetchall(), "main")

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run a query; return its rows."""
        duckdb = need("duckdb", "the query", "sql")
        statements = duckdb.extract_statements(query)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise duckdb.InvalidInputException("it is not one statement that reads")
        yield from plain_batches(self.connection.sql(query).to_arrow_reader(BATCH))

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        """Write a new table."""
        name = ".".join(map(quoted, table.split(".")))
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


class Postgres(Database):
    """PostgreSQL, by ADBC, which reads Arrow from the server's binary COPY."""

    def _connect(self, place: DatabasePlace, new: bool) -> Any:
        connection = need("adbc_driver_postgresql.dbapi", place.name, "sql").connect(place.url)
        if not new:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return connection

    def tables(self) -> dict[str, str]:
        """Return the tables and views."""
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema::text, table_name::text FROM information_schema.tables "
                "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
            )
            found = cursor.fetchall()
            cursor.execute("SELECT current_schema()::text")
            return by_schema(found, cursor.fetchone()[0])

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run a query; return its rows."""
        with self.connection.cursor() as cursor:
            schema = cursor.adbc_execute_schema(query)
            cursor.execute(_with_casts(query, schema))
            yield from plain_batches(cursor.fetch_record_batch())

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        """Write a new table."""
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
        columns.append(f"{value} AS {quoted(field.name)}")
    names = ", ".join(f"c{at}" for at in range(len(schema)))
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS q ({names})"


class OtherDatabase(Database):
    """A database that SQLAlchemy knows, with the driver that its URL names.

    The query runs inside of another one, because not every database has transactions that cannot
    write.
    """

    def _connect(self, place: DatabasePlace, new: bool) -> Any:
        sqlalchemy = need("sqlalchemy", place.name, "sql")
        return sqlalchemy.create_engine(place.url, poolclass=sqlalchemy.NullPool).connect()

    def tables(self) -> dict[str, str]:
        """Return the tables and views."""
        inspector = need("sqlalchemy", "the query", "sql").inspect(self.connection)
        quote = self.connection.dialect.identifier_preparer.quote
        names = [*inspector.get_table_names(), *inspector.get_view_names()]
        return {name: quote(name) for name in sorted(names)}

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run a query; return its rows."""
        sqlalchemy = need("sqlalchemy", "the query", "sql")
        if ";" in query:
            raise sqlalchemy.exc.ArgumentError("it is more than one statement, or has a semicolon")
        options = {"stream_results": True, "yield_per": FETCHED}
        # Inside of another query nothing can write. A colon would start a parameter.
        sql = sqlalchemy.text(f"SELECT * FROM ({query}\n) qms22_query".replace(":", r"\:"))
        with self.connection.execute(sql, execution_options=options) as result:
            yield from fetched(result, list(result.keys()))

    def write(self, table: str, parts: Iterable[pa.Table]) -> None:
        """Write a new table."""
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


_CLASSES: dict[str, Callable[..., Database]] = {
    "sqlite": Sqlite,
    "duckdb": DuckDB,
    "postgresql": Postgres,
}


@contextmanager
def opened(place: DatabasePlace, *, new: bool = False) -> Iterator[Database]:
    """Open a database; errors of the driver become a ValueError of one sentence."""
    try:
        database = _CLASSES.get(place.scheme, OtherDatabase)(place, new=new)
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
    with closing(database):
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
