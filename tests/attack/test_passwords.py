"""Passwords in addresses, wherever the name of a table goes."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import assert_refused, run
from postgres_server import running_server

from qms22.tables import open_table

postgres = import_module("adbc_driver_postgresql.dbapi")
SECRETS = ("hush", "psst", "aHVzaA")
# None of these can be reached; most have no driver here.
ADDRESSES = [
    "postgresql://me@corp.com:hush@127.0.0.1:1/db",
    "postgresql://me:hush@127.0.0.1:1/db?password=psst",
    "postgresql://me:hush@127.0.0.1:x/db",
    "postgresql://me:hu%40hush@127.0.0.1:1/db?sslpassword=psst&sslmode=require",
    "postgres://me:hush@/db?host=127.0.0.1&port=1&passfile=/psst",
    "postgresql://me:hush@127.0.0.1:1/db?options=-c%20x%3Dpsst",
    "mysql+pymysql://me@corp:hush@127.0.0.1:1/db",
    "mysql://me:hush@127.0.0.1/db?ssl_key=psst",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3DX%3BUID%3Dme%3BPWD%3Dhush",
    "mssql+pyodbc://me:hush@dsn?authentication=psst",
    "bigquery://project/db?credentials_base64=aHVzaA==",
    "snowflake://me:hush@account/db?private_key=psst",
    "databricks://token:hush@127.0.0.1?http_path=psst",
    "strange://me:hush@127.0.0.1/db",
    "sqlite+strange://me:hush@/db",
    "https://me:hush@127.0.0.1/a.csv?sig=psst",
    "s3://hush:psst@bucket/a.csv",
    "postgresql://me:hu#hush@127.0.0.1/db",
    "postgresql://me:hu/hush@127.0.0.1/db",
    "postgresql://me:hu?hush@127.0.0.1/db",
]


def assert_hidden(text: str) -> None:
    assert not [secret for secret in SECRETS if secret in text], text


@pytest.fixture(scope="module")
def tables() -> Iterator[tuple[str, str]]:
    """Addresses of two tables on a server, with passwords."""
    rng = np.random.default_rng(0)
    with running_server() as url:
        url = f"{url}&password=psst&application_name=attack"
        with postgres.connect(url) as connection, connection.cursor() as cursor:
            for name in ("old", "new"):
                frame = pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300)})
                cursor.adbc_ingest(name, pa.Table.from_pandas(frame))
            connection.commit()
        yield f"{url}#old", f"{url}#SELECT * FROM new"


@pytest.mark.parametrize("address", ADDRESSES, ids=range(len(ADDRESSES)))
def test_errors(tmp_path: Path, address: str) -> None:
    """Password in the address of a database that cannot be read: messages and tracebacks"""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n2,3\n")
    for arguments in (
        (f"{address}#t", "a.csv"),
        ("a.csv", f"{address}#t"),
        (f"{address}#t",),
        (f"{address}#DELETE FROM t", "a.csv"),
        (f"{address}#t", f"{address}#t"),
        ("a.csv", "a.csv", "-o", f"{address}#t"),
        ("a.csv", "a.csv", "--marks", f"{address}#t"),
    ):
        found = run("detect", *arguments, cwd=tmp_path)
        assert_refused(found)
        assert_hidden(found.output)
    try:
        open_table(f"{address}#t")
    except (ValueError, ImportError) as error:
        frames = traceback.TracebackException.from_exception(error, capture_locals=False)
        # The source of this test is in the traceback; only messages count.
        shown: traceback.TracebackException | None = frames
        while shown is not None:
            assert_hidden("".join(shown.format_exception_only()))
            cause = shown.__cause__
            shown = cause or (None if shown.__suppress_context__ else shown.__context__)
    else:
        raise AssertionError(f"{address} was opened")


PATHS = ("--history", "--json", "--report", "--save-model", "--summary", "--normal-to-check", "-o")
MORE = [
    "jdbc:postgresql://127.0.0.1/db?user=me&password=hush",
    "jdbc:sqlserver://127.0.0.1;database=x;password=hush",
    " postgresql://me:hush@127.0.0.1:1/db",
]


@pytest.mark.parametrize("address", [ADDRESSES[1], ADDRESSES[4], *MORE])
def test_addresses_in_the_place_of_paths(tmp_path: Path, address: str) -> None:
    """Password in an address that is given as a path, or as any other option"""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n2,3\n")
    (tmp_path / "b.csv").write_text("x,y\n1,2\n2,3\n")
    for name in ("history", "as", "ignore", "memory-limit", "fail-on", "id"):
        (tmp_path / f"{name}.toml").write_text(f"{name} = '{address}'")
        found = run("detect", "a.csv", "b.csv", "--config", f"{name}.toml", cwd=tmp_path)
        assert_refused(found)
        assert_hidden(found.output)
    given: list[tuple[str, ...]]
    given = [("detect", "a.csv", "b.csv", option, address) for option in (*PATHS, "--config")]
    given += [("detect", address, "a.csv"), ("history", address), ("score", address, "a.csv")]
    for arguments in given:
        found = run(*arguments, cwd=tmp_path)
        assert_refused(found)
        assert_hidden(found.output)


def test_outputs(tmp_path: Path, tables: tuple[str, str]) -> None:
    """Password of a server that is read: page, history, model, results, terminal"""
    names = ("o.csv", "o.xlsx", "o.json", "o.parquet", "page.html", "m.skops", "h.sqlite")
    for name in names[:4]:
        outputs = ("-o", name, "--report", "page.html", "--save-model", "m.skops")
        found = run("detect", *tables, *outputs, "--history", "h.sqlite", cwd=tmp_path)
        assert found.exit_code == 0, found.output
        assert_hidden(found.output)
    scored = run("score", "m.skops", tables[1], "-o", "scored.csv", cwd=tmp_path)
    assert scored.exit_code == 0, scored.output
    listed = run("history", "h.sqlite", cwd=tmp_path)
    assert_hidden(scored.output + listed.output)
    assert {path.name for path in tmp_path.iterdir()} == {*names, "scored.csv"}
    for path in tmp_path.iterdir():
        assert_hidden(path.read_bytes().decode("latin-1"))
        if is_zipfile(path):
            with ZipFile(path) as archive:
                for name in archive.namelist():
                    assert_hidden(archive.read(name).decode("latin-1"))
    table = open_table(tables[0])
    assert_hidden(table.name + table.title + "".join(table.notes))
