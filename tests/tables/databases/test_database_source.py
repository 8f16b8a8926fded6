"""Tables and queries of SQLite, DuckDB and SQLAlchemy; PostgreSQL is in test_postgres.py."""

from __future__ import annotations

import gc
import sqlite3
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qms22.tables import open_table, read_table
from qms22.tables.databases.database_place import DatabasePlace, find_database
from qms22.tables.databases.database_source import write_database
from qms22.tables.sources.file_rows import SpooledRows

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlalchemy")


def fill_sqlite(path: Path, *statements: str, rows: list[tuple[Any, ...]] | None = None) -> Path:
    """Run statements in a new database; the last one once for each of the rows."""
    connection = sqlite3.connect(path)
    for statement in statements[:-1] if rows else statements:
        connection.execute(statement)
    if rows:
        connection.executemany(statements[-1], rows)
    connection.commit()
    connection.close()
    return path


def find(where: str, what: str) -> DatabasePlace:
    """Return a place; "by SQLAlchemy" a file of SQLite as a database that only SQLAlchemy knows."""
    path = where.removeprefix("by SQLAlchemy ")
    if path != where:
        return DatabasePlace("other", f"sqlite+pysqlite:///{path}", what)
    place = find_database(f"{where}#{what}", new=True)
    assert place is not None
    return place


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    rows = [(at, at % 2, at / 4, f"2024-01-{at % 28 + 1:02}", "x" * (at % 3)) for at in range(50)]
    return fill_sqlite(
        tmp_path / "shop.db",
        "CREATE TABLE Orders (id INTEGER, express BOOLEAN, price DECIMAL(9, 2), day DATE, s TEXT)",
        'CREATE VIEW "cheap ones" AS SELECT * FROM Orders WHERE price < 5',
        "INSERT INTO Orders VALUES (?, ?, ?, ?, ?)",
        rows=rows,
    )


@pytest.mark.parametrize("scheme", ["", "sqlite:///", "sqlite+pysqlite:///", "by SQLAlchemy "])
def test_sqlite(shop: Path, scheme: str) -> None:
    whole = open_table(find(f"{scheme}{shop}", "orders")).read()
    assert whole["price"].tolist() == [at / 4 for at in range(50)]
    assert whole["id"].dtype == np.int64
    assert whole["day"].tolist()[:2] == ["2024-01-01", "2024-01-02"]
    assert open_table(find(f"{scheme}{shop}", "cheap ones")).n_rows == 20
    query = "SELECT id, s AS text FROM Orders WHERE id > 47 ORDER BY 1"
    found = open_table(find(f"{scheme}{shop}", query)).read()
    pd.testing.assert_frame_equal(found, pd.DataFrame({"id": [48, 49], "text": ["", "x"]}))


def test_declared_booleans_of_sqlite(shop: Path) -> None:
    assert read_table(f"{shop}#orders")["express"].dtype == bool
    odd = fill_sqlite(
        shop.with_name("odd.db"),
        "CREATE TABLE t (b BOOLEAN)",
        "INSERT INTO t VALUES (?)",
        rows=[(at % 2,) for at in range(20_000)] + [(7,)],
    )
    assert read_table(odd)["b"].tolist()[-2:] == [1, 7]


def test_types_that_change_late(tmp_path: Path) -> None:
    n = 20_000
    rows = [(at, None, at, None, 1) for at in range(n)] + [(0.5, 3, "abc", b"\xff", None)]
    path = fill_sqlite(
        tmp_path / "mixed.db",
        "CREATE TABLE t (f, late, words, bytes, i)",
        "INSERT INTO t VALUES (?, ?, ?, ?, ?)",
        rows=rows * 2,
    )
    frame = read_table(path)
    assert frame["f"].tolist() == [float(row[0]) for row in rows * 2]
    assert frame["late"].dropna().tolist() == [3, 3]
    assert frame["words"].tolist() == [str(row[2]) for row in rows * 2]
    assert frame["bytes"].dropna().tolist() == [b"\xff", b"\xff"]
    assert frame["i"].isna().sum() == 2


def test_large_integers_and_broken_texts(tmp_path: Path) -> None:
    path = fill_sqlite(
        tmp_path / "a.db",
        "CREATE TABLE t (big, s)",
        "INSERT INTO t VALUES (9223372036854775807, CAST(x'e9' AS TEXT))",
    )
    frame = read_table(path)
    assert frame["big"].tolist() == [2**63 - 1]
    assert frame["s"].tolist() == ["\ufffd"]


_VALUES = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary()
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30))
@given(rows=st.lists(st.tuples(_VALUES, _VALUES), min_size=1, max_size=20))
def test_any_values_of_sqlite_can_be_read(tmp_path: Path, rows: list[tuple[Any, Any]]) -> None:
    path = tmp_path / "any.db"
    path.unlink(missing_ok=True)
    # Lone surrogates are no text of a database.
    rows = [
        tuple(v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in row)  # type: ignore[misc]
        for row in rows
    ]
    fill_sqlite(path, "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (?, ?)", rows=rows)
    frame = read_table(path)
    assert frame["a"].isna().tolist() == [row[0] is None for row in rows]


def test_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TYPE mood AS ENUM ('ok', 'sad'); CREATE TABLE t AS SELECT 12.50::DECIMAL(9, 2) "
            "AS price, 7::HUGEINT AS huge, true AS yes, DATE '2024-01-02' AS day, "
            "TIMESTAMP '2024-01-02 03:04:05' AS at, TIME '02:10' AS clock, INTERVAL 2 DAY AS span, "
            "'sad'::mood AS mood, NULL::INTEGER AS gap, 9223372036854775807 AS big"
        )
    row = read_table(f"{path}#t").iloc[0].to_dict()
    assert pd.isna(row.pop("gap"))
    assert row == {
        "price": 12.5,
        "huge": 7.0,
        "yes": True,
        "day": date(2024, 1, 2),
        "at": datetime(2024, 1, 2, 3, 4, 5),
        "clock": "02:10:00",
        "span": 2 * 86_400.0,
        "mood": "sad",
        "big": 2**63 - 1,
    }
    many = open_table(f"duckdb:///{path}#SELECT range AS x FROM range(200000) ORDER BY 1")
    assert many.n_rows == 200_000
    assert [len(chunk) for chunk in many.chunks(n_rows=150_000)] == [150_000, 50_000]
    assert many.take([199_999, 3, 70_000])["x"].tolist() == [199_999, 3, 70_000]
    with pytest.raises(ValueError, match="is not one statement that reads"):
        read_table(f"{path}#SELECT 1; COPY t TO '{tmp_path}/stolen.csv'")
    assert not (tmp_path / "stolen.csv").exists()


def test_every_pass_reads_the_same_rows(shop: Path) -> None:
    source = open_table(f"{shop}#SELECT random() AS x FROM orders")
    first = source.read()["x"].tolist()
    fill_sqlite(shop, "DELETE FROM orders")
    assert source.read()["x"].tolist() == first
    assert source.take([4, 2])["x"].tolist() == [first[4], first[2]]
    assert source.n_rows == 50
    assert source.n_bytes >= 8 * 50
    assert source.title == "SELECT random() AS x FROM orders"


def test_the_temporary_file_goes_with_the_source(shop: Path) -> None:
    source = open_table(f"{shop}#orders")
    rows = source.content.rows
    assert isinstance(rows, SpooledRows)
    folder = rows.folder
    del rows
    assert folder.stat().st_mode & 0o077 == 0
    del source
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("scheme", ["sqlite:///", "by SQLAlchemy "])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nope", "has no table 'nope'; name one of .*Orders.* after #"),
        ("", "has 2 tables; name one of .* after #"),
        ("SELECT nope FROM orders", r"cannot be read \(.*no such column: nope.*\); correct"),
        ("SELECT 1; DROP TABLE orders", r"cannot be read \(.*statement.*\); correct"),
        ("WITH x AS (SELECT 1) DELETE FROM orders", "cannot be read"),
        ("SELECT * FROM orders WHERE 0", "has 0 rows of 5 columns"),
    ],
)
def test_faults(shop: Path, scheme: str, what: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_table(find(f"{scheme}{shop}", what)).read()
    assert len(read_table(f"{shop}#orders")) == 50


def test_columns_of_one_name(shop: Path) -> None:
    query = "SELECT 1 AS a, 2 AS a"
    assert list(read_table(f"{shop}#{query}")) == ["a", "a:1"]
    path = shop.with_name("a.duckdb")
    duckdb.connect(str(path)).close()
    with pytest.raises(ValueError, match="has 2 columns named 'a'; give each column a name"):
        read_table(f"{path}#{query}")


def test_broken_files(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0broken" * 50)
    (tmp_path / "a.duckdb").write_bytes(b"12345678DUCKbroken" * 50)
    for name in ("a.db", "a.duckdb"):
        with pytest.raises(ValueError, match=rf"{name}.* \(.*\); "):
            read_table(tmp_path / f"{name}#t")


def test_drivers_that_are_missing() -> None:
    with pytest.raises(ImportError, match=r"mysql\+nope|needs a driver that is not installed"):
        open_table("mysql://me:hush@host/shop#orders")
    with pytest.raises(ValueError, match=r"cannot connect to strange://\*\*\*@host/shop") as caught:
        open_table("strange://me:hush@host/shop#orders")
    assert "hush" not in str(caught.value)


@pytest.fixture
def parts() -> list[pd.DataFrame]:
    frame = pd.DataFrame(
        {
            "rank": [1, 2, 3],
            "score": [0.5, np.nan, 1.5],
            "flagged": [True, False, True],
            "why": ["=1", None, 'a "quoted" text'],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02 03:04:05", None], format="ISO8601"),
            "kind": pd.Categorical(["a", "b", "a"]),
            'an "odd" name': [[1], [2, 3], None],
            "none": [None, None, None],
        }
    )
    return [frame[:2], frame[2:]]


@pytest.mark.parametrize("where", ["o.db", "sqlite:///o.db", "o.duckdb", "by SQLAlchemy o.db"])
def test_a_table_is_written_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[pd.DataFrame], where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    place = find(where, "scores")
    write_database(place, parts)
    frame = open_table(place).read()
    assert frame["rank"].tolist() == [1, 2, 3]
    assert frame["score"].isna().tolist() == [False, True, False]
    assert [bool(value) for value in frame["flagged"]] == [True, False, True]
    assert frame["why"].tolist()[::2] == ["=1", 'a "quoted" text']
    days = pd.to_datetime(frame["day"], format="ISO8601")
    assert days.tolist()[:2] == [datetime(2024, 1, 1), datetime(2024, 1, 2, 3, 4, 5)]
    assert frame["kind"].tolist() == ["a", "b", "a"]
    assert frame['an "odd" name'].tolist()[:2] == ["[1]", "[2, 3]"]
    with pytest.raises(ValueError, match="has a table 'scores'; name a new one after #"):
        write_database(place, parts)


@pytest.mark.parametrize("name", ["o.db", "o.duckdb"])
def test_a_table_is_written_completely_or_not_at_all(
    tmp_path: Path, parts: list[pd.DataFrame], name: str
) -> None:
    def stopped() -> Any:
        yield parts[0]
        raise RuntimeError("stopped")

    place = find_database(tmp_path / f"{name}#scores", new=True)
    assert place is not None
    with pytest.raises(ValueError, match="stopped"):
        write_database(place, stopped())
    write_database(place, parts)
    assert len(read_table(f"{tmp_path / name}#scores")) == 3


def test_places_that_cannot_be_written(tmp_path: Path, parts: list[pd.DataFrame]) -> None:
    for place, message in (
        (DatabasePlace("sqlite", str(tmp_path / "o.db")), "names no table to write; add #"),
        (DatabasePlace("sqlite", str(tmp_path / "o.db"), "SELECT 1"), "names no table to write"),
        (DatabasePlace("sqlite", str(tmp_path / "no" / "o.db"), "t"), "the directory"),
    ):
        with pytest.raises(ValueError, match=message):
            write_database(place, parts)
