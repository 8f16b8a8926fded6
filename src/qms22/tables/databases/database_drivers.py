"""The drivers of databases: DuckDB, PostgreSQL, and what SQLAlchemy knows."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

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
from qms22.tables.databases.sqlite_database import Sqlite
from qms22.tables.sources.compressed import shorten_error
from qms22.tables.sources.stored_rows import BATCH


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
