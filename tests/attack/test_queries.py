"""Databases and queries that try to read other files, to write, or to change a database."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import duckdb
import pytest
from command_line import assert_refused, run
from postgres_server import running_server

from qms22.tables import open_table, read_table
from qms22.tables.databases.database_place import DatabasePlace

postgres = import_module("adbc_driver_postgresql.dbapi")
SECRET = "name,code\nhidden,7381\n"
ROWS = "CREATE TABLE t AS SELECT 1 AS x"

DUCKDB = [
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_csv_auto(['{secret}'])",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM '{secret}'",
    'SELECT * FROM "{secret}"',
    "FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM query('FROM read_text(''{secret}'')')",
    "SELECT * FROM query_table('{secret}')",
    "SELECT * FROM read_csv('https://example.org/a.csv')",
    "SELECT * FROM sqlite_scan('{folder}/other.db', 't')",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM read_duckdb('{folder}/other.duckdb')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM parquet_metadata('{secret}')",
    "SELECT * FROM delta_scan('{folder}')",
    "SELECT * FROM force_checkpoint()",
    "SELECT * FROM frame",
    "WITH c AS (COPY t TO '{written}') SELECT * FROM t",
    "WITH c AS (INSERT INTO t VALUES (2)) SELECT * FROM t",
    "WITH c AS (DELETE FROM t) SELECT * FROM t",
    "WITH c AS (ATTACH '{written}') SELECT * FROM t",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "SELECT nextval('counter')",
    "SELECT 1; COPY t TO '{written}'",
    "SELECT 1; SET enable_external_access = true; FROM read_text('{secret}')",
    "(COPY t TO '{written}')",
    "COPY t TO '{written}'",
    "COPY (SELECT 1) TO '{written}'",
    "EXPORT DATABASE '{written}'",
    "ATTACH '{written}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "PRAGMA enable_profiling",
    "EXPLAIN ANALYZE COPY t TO '{written}'",
    "CALL pragma_version()",
    "DROP TABLE t",
    "CHECKPOINT",
]
SQLITE = [
    "SELECT load_extension('{secret}')",
    "SELECT readfile('{secret}')",
    "SELECT writefile('{written}', 'x')",
    "SELECT fts3_tokenizer('x', x'00')",
    "SELECT * FROM pragma_wal_checkpoint",
    "SELECT * FROM pragma_journal_mode('wal')",
    "SELECT 1; ATTACH '{written}' AS a",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "WITH x AS (SELECT 1) UPDATE t SET x = 2",
    "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "ATTACH '{written}' AS a",
    "VACUUM INTO '{written}'",
    "PRAGMA writable_schema = 1",
    "DELETE FROM t",
    "REPLACE INTO t VALUES (2)",
    "DROP TABLE t",
    "CREATE TABLE u AS SELECT 1",
    "REINDEX",
    "EXPLAIN DELETE FROM t",
    "BEGIN",
]
# Statements whose only fault is that they write or change the session; the user is a superuser.
POSTGRES = [
    "INSERT INTO t VALUES (2)",
    "DELETE FROM t",
    "UPDATE t SET x = 2",
    "TRUNCATE t",
    "DROP TABLE t",
    "CREATE TABLE u AS SELECT 1",
    "SELECT 1 AS x INTO u",
    "COPY t TO '{written}'",
    "COPY (SELECT 1) TO PROGRAM 'touch {written}'",
    "COPY t FROM '{secret}'",
    "DO $$ BEGIN DELETE FROM t; END $$",
    "CALL remove()",
    "SET transaction_read_only = off",
    "COMMIT",
    "VACUUM t",
    "LOCK TABLE t",
    "EXPLAIN ANALYZE DELETE FROM t",
    "WITH c AS (DELETE FROM t RETURNING *) SELECT * FROM c",
    "WITH c AS (INSERT INTO t VALUES (2) RETURNING *) SELECT * FROM c",
    "WITH c AS (UPDATE t SET x = 2 RETURNING *) SELECT * FROM c",
    "WITH c AS (SELECT 1) DELETE FROM t",
    "SELECT * FROM t FOR UPDATE",
    "SELECT removed()",
    "SELECT nextval('counter')",
    "SELECT setval('counter', 7)",
    "SELECT set_config('transaction_read_only', 'off', false), removed()",
    "SELECT query_to_xml('DELETE FROM t RETURNING *', true, true, '')",
    "SELECT 1; DELETE FROM t",
    "SELECT 1; COMMIT; DELETE FROM t",
    "SELECT 1) AS q (c0); DELETE FROM t; SELECT (1",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.csv").write_text(SECRET)
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute(ROWS)
    connection.close()
    shutil.copy(tmp_path / "shop.db", tmp_path / "other.db")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute(f"{ROWS}; CREATE SEQUENCE counter")
        database.execute(f"CREATE VIEW v AS FROM read_text('{tmp_path}/secret.csv')")
        database.execute("CREATE MACRO m() AS TABLE FROM read_text('secret.csv')")
    return tmp_path


def filled(statement: str, folder: Path) -> str:
    return statement.format(secret=folder / "secret.csv", written=folder / "written", folder=folder)


def assert_fails(open_it: Callable[[], object], folder: Path) -> None:
    """It is refused in one sentence, and no file is read, written or changed."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        open_it()
    assert "7381" not in str(caught.value)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("statement", [*DUCKDB, "v", "SELECT * FROM v", "SELECT * FROM m()"])
def test_duckdb(folder: Path, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Query or view of a DuckDB file that reads or writes files, or changes the database"""
    monkeypatch.chdir(folder)
    frame = read_table(folder / "secret.csv")
    assert len(frame) == 1  # variables of a program are no tables either
    what = filled(statement, folder)
    assert_fails(lambda: read_table(f"{folder}/shop.duckdb#{what}"), folder)
    assert read_table(f"{folder}/shop.duckdb#t")["x"].tolist() == [1]


def test_a_view_puts_no_file_into_the_output(folder: Path) -> None:
    """`qms22 detect` with a DuckDB view over another file"""
    found = run("detect", "shop.duckdb#t", "shop.duckdb#v", "-o", "o.csv", cwd=folder)
    assert_refused(found, "shop.duckdb#v cannot be read", "disabled")
    assert not (folder / "o.csv").exists()


def test_duckdb_reads_its_own_tables(tmp_path: Path) -> None:
    """A DuckDB file with changes in a log beside it still reads"""
    path = tmp_path / "a.duckdb"
    database = duckdb.connect(str(path))
    database.execute("SET checkpoint_threshold = '1TB'; PRAGMA disable_checkpoint_on_shutdown")
    database.execute("CREATE TABLE t AS SELECT range AS x FROM range(1000)")
    database.close()
    assert path.with_name("a.duckdb.wal").exists()
    assert open_table(f"{path}#SELECT x FROM t ORDER BY x DESC").take([0])["x"].tolist() == [999]


@pytest.mark.parametrize("statement", SQLITE)
@pytest.mark.parametrize("driver", ["sqlite3", "SQLAlchemy"])
def test_sqlite(folder: Path, statement: str, driver: str) -> None:
    """Query of a SQLite file that reads or writes files, or changes the database"""
    what = filled(statement, folder)

    def read() -> object:
        place: DatabasePlace | str = f"{folder}/shop.db#{what}"
        if driver == "SQLAlchemy":
            place = DatabasePlace("other", f"sqlite+pysqlite:///{folder}/shop.db", what)
        return open_table(place).read()

    assert_fails(read, folder)
    assert read_table(f"{folder}/shop.db#t")["x"].tolist() == [1]


def test_sqlite_reads_what_it_should(folder: Path) -> None:
    """Recursive queries, views, search indexes and pragma functions of SQLite still read"""
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        connection.execute("INSERT INTO words VALUES ('alpha'), ('beta')")
        connection.execute("CREATE VIEW v AS SELECT upper(word) AS w FROM words")
    connection.close()
    for what, n_rows in (
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n LIMIT 9) SELECT * FROM n", 9),
        ("SELECT * FROM words WHERE words MATCH 'beta'", 1),
        ("v", 2),
        ("SELECT name FROM pragma_table_info('t')", 1),
        ("SELECT value FROM json_each('[1, 2, 3]')", 3),
    ):
        assert open_table(f"{folder}/shop.db#{what}").n_rows == n_rows


@pytest.mark.parametrize("name", ["shop.db", "shop.duckdb"])
def test_endless_queries(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries that never end, whose rows would fill the disk"""
    free = iter([10**12, *[6 * 10**11] * 3, *[4 * 10**11] * 9])
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(free)))
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"
    if name == "shop.duckdb":
        query = "SELECT * FROM range(1000000000000)"
    with pytest.raises(ValueError, match=r"half of the free disk.*; free space"):
        read_table(f"{folder}/{name}#{query}")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        execute(url, ROWS, "CREATE SEQUENCE counter")
        body = "LANGUAGE plpgsql AS 'BEGIN DELETE FROM t; {} END'"
        execute(url, f"CREATE FUNCTION removed() RETURNS int {body.format('RETURN 1;')}")
        execute(url, f"CREATE PROCEDURE remove() {body.format('')}")
        execute(url, "CREATE VIEW v AS SELECT removed()")
        yield url


def execute(url: str, *statements: str) -> None:
    with postgres.connect(url) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


@pytest.mark.parametrize("statement", [*POSTGRES, "v"])
def test_postgres(folder: Path, server: str, statement: str) -> None:
    """Query or view of a PostgreSQL server that writes, as a superuser"""
    what = filled(statement, folder)
    assert_fails(lambda: read_table(f"{server}#{what}"), folder)
    assert read_table(f"{server}#t")["x"].tolist() == [1]
    with pytest.raises(ValueError, match="no table 'u'"):
        read_table(f"{server}#u")
