"""The commands on tables of databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused, run, without_reasons
from postgres_server import running_server

from qms22.tables import read_table


def orders() -> pd.DataFrame:
    """Return 600 orders; the last five are far too expensive."""
    rng = np.random.default_rng(0)
    prices = rng.gamma(3, 10, 600).round(2)
    prices[-5:] *= 50
    countries = rng.choice(["DE", "FR", "US"], 600)
    return pd.DataFrame({"id": range(600), "price": prices, "country": countries})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    orders()[:500].to_sql("old", connection, index=False)
    orders()[500:].to_sql("new", connection, index=False)
    connection.close()
    orders()[:500].to_csv(tmp_path / "old.csv", index=False)
    orders()[500:].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def test_tables_of_a_database_give_what_files_give(files: Path) -> None:
    options = ("--id", "id", "--top", 5, "-q")
    from_files = run("detect", "old.csv", "new.csv", *options, cwd=files)
    query = "shop.db#SELECT * FROM new WHERE id >= 500"
    found = run("detect", "shop.db#old", query, *options, "-o", "o.db#scores", cwd=files)
    assert found.exit_code == 0, found.output
    # A reason has a number as its file has it.
    assert without_reasons(found.stdout) == without_reasons(from_files.stdout)
    scores = read_table(files / "o.db#scores")
    assert len(scores) == 100
    assert set(scores["id"][scores["flagged"]]) == set(range(595, 600))


def test_tables_and_files_are_parts_of_one_table(files: Path) -> None:
    orders()[:250].to_csv(files / "a.csv", index=False)
    tables = ("a.csv", "shop.db#SELECT * FROM old WHERE id >= 250", "new.csv")
    options = ("--id", "id", "--top", 5)
    found = run("detect", *tables, *options, cwd=files)
    whole = run("detect", "old.csv", "new.csv", *options, "-q", cwd=files)
    assert found.stdout == whole.stdout
    assert "known-normal: a.csv, SELECT * FROM old WHERE id >= 250; searched" in found.stderr


def test_a_model_scores_a_table(files: Path) -> None:
    saved = run("detect", "shop.db#old", "shop.db#new", "-q", "--save-model", "m.skops", cwd=files)
    assert saved.exit_code == 0, saved.output
    scored = run("score", "m.skops", "shop.db#new", "-k", 5, "-o", "shop.db#scores", cwd=files)
    assert scored.exit_code == 0, scored.output
    assert len(read_table(files / "shop.db#scores")) == 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nope.db#old", "shop.db#new"), ("there is no file 'nope.db'",)),
        (("shop.db#old", "shop.db#nope"), ("no table 'nope'", "new, old after #")),
        (("shop.db", "shop.db#new"), ("has 2 tables",)),
        (("postgresql://me:hush@host/x#t",), ("rows of postgresql://***@host/x#t",)),
        (("shop.db#old", "shop.db#DELETE FROM new"), ("DELETE is not a query",)),
        (("shop.db#old", "shop.db#SELECT x FROM new"), ("no such column: x",)),
        (("shop.db#old", "shop.db#new", "-o", "shop.db#New"), ("has a table 'New'",)),
        (("shop.db#old", "shop.db#new", "-o", "o.db"), ("names no table to write",)),
        (("shop.db#old", "shop.db#new", "-o", "no/o.db#t"), ("the directory no",)),
        (("postgresql://me:hush@127.0.0.1:1/x#t", "new.csv"), ("127.0.0.1", "port 1")),
        (("postgresql://me:hu#sh@host/x#t", "new.csv"), ("write them as",)),
    ],
)
def test_refusals(files: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = run("detect", *arguments, cwd=files)
    assert_refused(result, *words)
    assert "hush" not in result.stderr
    assert "sh@" not in result.stderr


def test_a_server_from_table_to_table(files: Path) -> None:
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi")
    pyarrow = pytest.importorskip("pyarrow")
    with running_server() as url:
        with driver.connect(url) as connection, connection.cursor() as cursor:
            for name, frame in (("old", orders()[:500]), ("new", orders()[500:])):
                cursor.adbc_ingest(name, pyarrow.Table.from_pandas(frame, preserve_index=False))
            connection.commit()
        tables = (f"{url}#old", f"{url}#SELECT * FROM new")
        outputs = ("-o", f"{url}#scores", "--report", "page.html")
        found = run("detect", *tables, "--id", "id", "--top", 5, *outputs, cwd=files)
        assert found.exit_code == 0, found.output
        scores = read_table(f"{url}#scores")
    assert set(scores["id"][scores["flagged"]]) == set(range(595, 600))
    assert "#scores" in found.stderr
    page = (files / "page.html").read_text()
    assert "hush" not in found.output + page
