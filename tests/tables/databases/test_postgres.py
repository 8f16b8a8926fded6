"""PostgreSQL, on a server that these tests start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from postgres_server import running_server

from qms22.tables import open_table, read_table
from qms22.tables.databases.database_place import find_database
from qms22.tables.databases.database_source import write_database

driver = pytest.importorskip("adbc_driver_postgresql.dbapi")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        execute(url, "CREATE SCHEMA sales", "CREATE TABLE sales.old AS SELECT 1 AS x")
        yield url


def execute(url: str, *statements: str) -> None:
    with driver.connect(url) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def test_types(server: str) -> None:
    execute(
        server,
        "CREATE TYPE mood AS ENUM ('ok', 'sad')",
        "CREATE TABLE types AS SELECT 12.50::numeric(9, 2) AS price, 1e30::numeric AS huge, "
        "'NaN'::numeric AS nan, 9223372036854775807::bigint AS big, 7::smallint AS small, "
        "1.5::real AS real, true AS yes, date '2024-01-02' AS day, 'infinity'::date AS never, "
        "timestamp '2024-01-02 03:04:05' AS at, 'infinity'::timestamp AS forever, "
        "timestamptz '2024-01-02 03:04:05+01' AS zoned, time '02:10' AS clock, "
        "interval '2 days' AS span, 'sad'::mood AS mood, 'ab'::char(5) AS padded, "
        "12.34::money AS money, '10.0.0.1'::inet AS ip, '{\"a\": 1}'::jsonb AS json, "
        "'00000000-0000-0000-0000-000000000001'::uuid AS uuid, NULL::int AS gap, "
        '\'x\' AS "odd "" name"',
    )
    row = read_table(f"{server}#types").iloc[0].to_dict()
    assert all(pd.isna(row.pop(name)) for name in ("nan", "gap", "never", "forever"))
    assert row == {
        "price": 12.5,
        "huge": 1e30,
        "big": 2**63 - 1,
        "small": 7,
        "real": 1.5,
        "yes": True,
        "day": date(2024, 1, 2),
        "at": datetime(2024, 1, 2, 3, 4, 5),
        "zoned": datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC),
        "clock": "02:10:00",
        "span": 2 * 86_400.0,
        "mood": "sad",
        "padded": "ab",
        "money": 12.34,
        "ip": "10.0.0.1/32",
        "json": '{"a": 1}',
        "uuid": "00000000-0000-0000-0000-000000000001",
        'odd " name': "x",
    }


def test_rows_of_a_large_query(server: str) -> None:
    source = open_table(f"{server}#SELECT x, x % 7 AS y FROM generate_series(0, 299999) x; ")
    assert source.n_rows == 300_000
    assert source.names == ["x", "y"]
    parts = [chunk["x"].to_numpy() for chunk in source.chunks(["x"], 70_000)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(300_000))
    assert source.take([299_999, 5])["y"].tolist() == [299_999 % 7, 5]


def test_tables_of_other_schemas(server: str) -> None:
    assert read_table(f"{server}#sales.old")["x"].tolist() == [1]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nope", "has no table 'nope'; name one of .*sales.old.* after #"),
        ("SELECT nope FROM sales.old", 'column "nope" does not exist'),
        ("SELECT 1 WHERE", "cannot be read"),
        ("SELECT 1; DROP TABLE sales.old", "cannot be read"),
        ("WITH x AS (DELETE FROM sales.old RETURNING *) SELECT * FROM x", "cannot be read"),
        ("SELECT nextval('counter')", "read-only transaction"),
        ("SELECT 1 / (x - 150000) FROM generate_series(1, 200000) x", "division by zero"),
        ("SELECT 1 AS a, 2 AS a", "has 2 columns named 'a'; give each column a name of its own"),
        ("SELECT * FROM sales.old WHERE false", "has 0 rows of 1 columns"),
    ],
)
def test_faults(server: str, what: str, message: str) -> None:
    execute(server, "CREATE SEQUENCE IF NOT EXISTS counter")
    with pytest.raises(ValueError, match=message) as caught:
        read_table(f"{server}#{what}")
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert read_table(f"{server}#sales.old")["x"].tolist() == [1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("postgres:hush@", "ghost:hush@"), 'role "ghost" does not exist'),
        (("/postgres?", "/nowhere?"), 'database "nowhere" does not exist'),
        (("?host=", "?port=1&host="), r"PGSQL\.1"),
    ],
)
def test_servers_that_cannot_be_reached(server: str, change: tuple[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=rf"cannot connect to .*{message}.*; check") as caught:
        open_table(f"{server.replace(*change)}#x")
    assert "hush" not in str(caught.value)


def test_host_and_port_are_named() -> None:
    with pytest.raises(ValueError, match=r'server at "127\.0\.0\.1", port 1 failed'):
        open_table("postgresql://me:hush@127.0.0.1:1/shop#orders")


def test_every_pass_reads_the_same_rows(server: str) -> None:
    execute(server, "CREATE TABLE moving AS SELECT random() AS x FROM generate_series(1, 100)")
    source = open_table(f"{server}#moving")
    first = source.read()["x"].tolist()
    execute(server, "UPDATE moving SET x = -1", "DELETE FROM moving WHERE ctid < '(0,150)'")
    assert source.read()["x"].tolist() == first
    assert source.name.endswith("#moving")
    assert "hush" not in source.name


def test_a_table_is_written_and_read_again(server: str) -> None:
    frame = pd.DataFrame(
        {
            "rank": [1, 2, 3],
            "score": [0.5, np.nan, 1.5],
            "flagged": [True, False, True],
            "why": ["a", None, "c"],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
            "kind": pd.Categorical(["a", "b", "a"]),
            "none": [None, None, None],
        }
    )
    for table in ("scores", "sales.scores"):
        place = find_database(f"{server}#{table}", new=True)
        assert place is not None
        write_database(place, [frame[:2], frame[2:]])
        found = read_table(f"{server}#{table}")
        assert found["rank"].tolist() == [1, 2, 3]
        assert found["flagged"].tolist() == [True, False, True]
        assert found["day"].isna().tolist() == [False, False, True]
        assert found["kind"].tolist() == ["a", "b", "a"]
        with pytest.raises(ValueError, match=r"has a table .*; name a new one after #"):
            write_database(place, [frame])


def test_a_table_is_written_completely_or_not_at_all(server: str) -> None:
    def stopped() -> Any:
        yield pd.DataFrame({"a": [1]})
        raise RuntimeError("stopped")

    place = find_database(f"{server}#half", new=True)
    assert place is not None
    with pytest.raises(ValueError, match="stopped"):
        write_database(place, stopped())
    with pytest.raises(ValueError, match="has no table 'half'"):
        open_table(place)
