"""Histories in files of all sorts: damaged, locked, shared, or of something else."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from histories import ENTRY, FAST, ROWS, filled, readings

from qms22 import BatchHistory, detect
from qms22.detection import compared_columns as verdict
from qms22.detection import run
from qms22.detection.history import history_file as history


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table orders (amount real)")
    database.close()


def later_version(path: Path) -> None:
    filled(path, 1)
    with sqlite3.connect(path) as database:
        database.execute("pragma user_version = 7")
    database.close()


def damaged(path: Path) -> None:
    filled(path, 3)
    content = bytearray(path.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda path: path.write_text("a,b\n1,2\n" * 99),
            "is not a history of batches, or is damaged",
        ),
        (other_database, "is another kind of database; name another file"),
        (later_version, "was written by a later version"),
        (damaged, "damaged"),
    ],
)
def test_other_files_are_refused_and_left_as_they_are(
    make: Any, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "h.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=sentence):
        detect(readings(60, 1), readings(30, 2), k=5, history=path, **FAST)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["h.sqlite"]


@pytest.mark.parametrize(
    "damage",
    [
        "update batches set moved = '[[1,'",
        "update batches set moved = '5'",
        "update batches set settings = '7'",
        "update batches set settings = '{\"profile\": {}}'",
        "alter table incidents drop column because",
        "update batches set n_rows = 'many'",
        "update batches set time = x'ff00'",
        "update batches set decision = 'odd'",
        "alter table batches drop column n_flagged",
        "drop table batches",
        "drop table kept_rows",
    ],
)
def test_damaged_entries_are_named_in_one_sentence(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path, 2).accept(1)
    with sqlite3.connect(path) as database:
        database.execute(damage)
    database.close()
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"h\.sqlite is not a history of batches, or is damaged \("
    ):
        detect(readings(60, 1), readings(30, 2), k=5, history=path, **FAST)
    assert path.read_bytes() == before


def test_a_locked_history_is_named_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_LOCK_SECONDS", 0.05)
    path = tmp_path / "h.sqlite"
    filled(path, 2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(ValueError, match="another program uses it; try again when"):
            detect(readings(60, 1), readings(30, 2), k=5, history=path, **FAST)
        other.execute("rollback")
    assert len(BatchHistory(path).entries()) == 2


def test_a_result_is_not_lost_if_the_history_is_locked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_LOCK_SECONDS", 0.05)
    path = tmp_path / "h.sqlite"
    filled(path, 2)
    judge = verdict.judge_tables
    with closing(sqlite3.connect(path, isolation_level=None)) as other:

        def lock_and_judge(*arguments: Any) -> Any:
            other.execute("begin exclusive")
            return judge(*arguments)

        monkeypatch.setattr(run, "judge_tables", lock_and_judge)
        with pytest.warns(UserWarning, match="was not recorded: .* another program uses"):
            found = detect(readings(60, 1), readings(30, 2), k=5, history=path, **FAST)
    assert len(found.top) == 5
    assert len(BatchHistory(path).entries()) == 2


def test_what_may_only_be_read_is_listed_and_refused_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    filled(path, 2)
    for protected, sentence in ((path, "is read-only"), (tmp_path, "cannot be written to")):
        with monkeypatch.context() as patch:
            # Root may write everywhere.
            patch.setattr(os, "access", lambda asked, _, p=protected: Path(asked) != p)
            assert len(BatchHistory(path).entries()) == 2
            with pytest.raises(ValueError, match=sentence):
                detect(readings(60, 1), readings(30, 2), k=5, history=path, **FAST)


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no regular file; name a file"):
        BatchHistory(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a directory; name a file"):
        BatchHistory(tmp_path)
    with pytest.raises(ValueError, match="cannot be written to"):
        BatchHistory(tmp_path / "no" / "h.sqlite")
    with pytest.raises(ValueError, match="does not exist; 'qms22 detect --history' creates it"):
        BatchHistory(tmp_path / "h.sqlite", must_exist=True)


def test_an_empty_file_becomes_a_history(tmp_path: Path) -> None:
    (tmp_path / "h.sqlite").touch()
    assert len(filled(tmp_path / "h.sqlite", 2).entries()) == 2


def test_several_writers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"

    def write(at: int) -> None:
        BatchHistory(path).remember(replace(ENTRY, batch=f"{at}.csv"), f"digest {at}", ROWS, 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    entries = BatchHistory(path).entries()
    assert [entry.number for entry in entries] == list(range(1, 25))
    assert {entry.batch for entry in entries} == {f"{at}.csv" for at in range(24)}


def test_a_crash_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    batches = filled(tmp_path / "h.sqlite", 2)
    before = batches.entries()

    def interrupted() -> None:
        with batches._writing() as database:
            database.execute("delete from batches")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert batches.entries() == before


def test_a_result_is_not_lost_if_it_cannot_be_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise ValueError("the disk is full")

    monkeypatch.setattr(BatchHistory, "remember", full)
    with pytest.warns(UserWarning, match="the batch was not recorded: the disk is full"):
        found = detect(readings(60, 1), readings(30, 2), k=5, history=tmp_path / "h", **FAST)
    assert found.history == ()
    assert len(found.top) == 5
