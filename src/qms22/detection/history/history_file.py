"""What was found in earlier batches: one SQLite file, one entry per batch.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from sklearn.datasets import load_iris
>>> import qms22
>>> iris = load_iris(as_frame=True).data
>>> with TemporaryDirectory() as folder:
...     path = Path(folder, "iris.sqlite")
...     _ = qms22.detect(iris[:40], iris[40:52], k=2, history=path)
...     entry = qms22.BatchHistory(path).entries()[-1]
>>> entry.number, entry.decision, entry.n_rows, entry.n_flagged
(1, 'anomalies', 12, 2)
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from qms22.detection.history.history_entry import (
    SELECT_ENTRIES,
    STORED,
    ColumnException,
    HistoryEntry,
    read_entry,
)
from qms22.detection.history.history_rows import from_parquet

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")

# Written into the header of the file, so that no other database is taken for a history.
_APPLICATION = 0x716D7332
_VERSION = 1

# Another writer keeps its lock for the time of one insert: a minute is more than enough.
_LOCK_SECONDS = 60.0

# The rows of this many batches wait for somebody to accept them: two working weeks, day by day.
MOST_WAITING = 10

_SCHEMA = f"""
create table batches (
    number integer primary key,
    digest text not null unique,
    time text not null,
    normal text not null,
    batch text not null,
    decision text not null,
    sentence text not null,
    p_value real not null,
    n_normal integer not null,
    n_rows integer not null,
    n_flagged integer not null,
    moved text not null,
    settings text not null,
    version text not null,
    accepted text
);
create table kept_rows (
    number integer primary key references batches,
    n_rows integer not null,
    parquet blob not null
);
create table incidents (
    number integer primary key,
    time text not null,
    because text not null
);
create table exceptions (
    column text primary key,
    because text not null,
    "until" text not null
);
pragma application_id = {_APPLICATION};
pragma user_version = {_VERSION};
"""
_ADD_EXCEPTION = "insert or replace into exceptions values (?, ?, ?)"


class BatchHistory:
    """A history file: `detect` writes it.

    Parameters
    ----------
    path : str or Path
        An SQLite file. One that is something else, or damaged, is left as it was.
    must_exist : bool
        Whether a missing file is an error.
    """

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path).expanduser()
        if must_exist and not self.path.is_file():
            raise ValueError(
                f"the history file {path} does not exist; 'qms22 detect --history' creates it"
            )
        if not self.path.exists():
            self.check_writable()
        elif not self.path.is_file():
            what = "a directory" if self.path.is_dir() else "no regular file"
            raise ValueError(f"the history {path} is {what}; name a file")
        self.entries()

    def check_writable(self) -> None:
        """Raise ValueError if nothing can be remembered, before a search takes its time."""
        folder = self.path.parent
        # SQLite writes a second file beside it.
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ValueError(
                f"the history {self.path} cannot be written to {folder}; name another file, or "
                "change the permissions of that folder"
            )
        if self.path.exists() and not os.access(self.path, os.W_OK):
            raise ValueError(
                f"the history {self.path} is read-only; name another file or change its rights"
            )

    def entries(self) -> tuple[HistoryEntry, ...]:
        """Return what was found in every batch, in the order in which they were first searched."""
        return tuple(self._read(f"{SELECT_ENTRIES} order by number", (), read_entry))

    def exceptions(self) -> tuple[ColumnException, ...]:
        """Return the columns that may move today or later."""
        query = 'select * from exceptions where "until" >= ? order by column'
        return tuple(self._read(query, (today(),), lambda row: ColumnException(*row)))

    def number_of(self, digest: str) -> int | None:
        """Return the number of the batch with a digest; None if it is not remembered."""
        rows = self._read("select number from batches where digest = ?", (digest,), tuple)
        return rows[0][0] if rows else None

    def remember(
        self, entry: HistoryEntry, digest: str, rows: bytes, n_kept: int
    ) -> tuple[HistoryEntry, ...]:
        """Write what was found in the batch with a digest; return all entries, this one last.

        An earlier entry of the same batch is replaced; its number is kept, and whether it is
        accepted. The `n_kept` rows to learn from in that case are as `to_parquet` writes them.
        """
        written = [name for name in STORED if name not in ("number", "accepted")]
        values = {name: getattr(entry, name) for name in written} | {"digest": digest}
        values["moved"] = json.dumps(entry.moved)
        values["settings"] = json.dumps(entry.settings, default=str)
        names = ", ".join(values)
        updates = ", ".join(f"{name} = excluded.{name}" for name in values)
        with self._writing() as database:
            database.execute(
                f"insert into batches ({names}) values ({', '.join('?' * len(values))}) "
                f"on conflict (digest) do update set {updates}",
                tuple(values.values()),
            )
            query = "select number from batches where digest = ?"
            [(number,)] = database.execute(query, (digest,)).fetchall()
            kept = number, n_kept, rows
            database.execute("insert or replace into kept_rows values (?, ?, ?)", kept)
            database.execute("delete from kept_rows where number in (select number from incidents)")
            database.execute(
                "delete from kept_rows where number in (select number from batches "
                "where accepted is null order by time desc, number desc limit -1 offset ?)",
                (MOST_WAITING,),
            )
        entries = self.entries()
        return tuple(sorted(entries, key=lambda each: each.number == number))

    def accept(self, number: int) -> HistoryEntry:
        """Accept a batch as known-normal: later searches learn from its rows too.

        Raise ValueError if there is no such batch, or its rows are no longer kept.
        """
        with self._changing(number) as (database, entry):
            if entry.incident is not None:
                raise ValueError(
                    f"batch {number} ({entry.batch}) is tagged as an incident: {entry.incident}; "
                    "an incident is never known-normal"
                )
            kept = database.execute("select 1 from kept_rows where number = ?", (number,))
            if kept.fetchone() is None:
                raise ValueError(
                    f"the rows of batch {number} ({entry.batch}) are no longer kept: only the last "
                    f"{MOST_WAITING} batches are; search it again, then accept it"
                )
            entry = replace(entry, accepted=entry.accepted or now())
            database.execute(
                "update batches set accepted = ? where number = ?", (entry.accepted, number)
            )
        return entry

    def take_back(self, number: int) -> HistoryEntry:
        """Withdraw the acceptance of a batch, or that it is an incident.

        Raise ValueError if there is no such batch.
        """
        with self._changing(number) as (database, entry):
            database.execute("update batches set accepted = null where number = ?", (number,))
            database.execute("delete from incidents where number = ?", (number,))
        return replace(entry, accepted=None, incident=None)

    def tag_incident(self, number: int, because: str) -> HistoryEntry:
        """Tag a batch as an incident: it was bad, its rows are dropped, and it never teaches.

        Raise ValueError if there is no such batch, or no reason.
        """
        because = _check_because(because)
        with self._changing(number) as (database, entry):
            values = number, now(), because
            database.execute("insert or replace into incidents values (?, ?, ?)", values)
            database.execute("update batches set accepted = null where number = ?", (number,))
            database.execute("delete from kept_rows where number = ?", (number,))
        return replace(entry, accepted=None, incident=because)

    def add_exception(self, column: str, because: str, until: str) -> ColumnException:
        """Except a column: until the end of a day its movement is reported, but no alarm.

        Meanwhile it is not learned from. An earlier exception of the column is replaced. Raise
        ValueError if the last batch has no such column, the reason is empty or the day has passed.
        """
        exception = ColumnException(column, _check_because(because), _check_until(until))
        known = [entry.profile["columns"] for entry in self.entries() if entry.profile is not None]
        if known and column not in known[-1]:
            names = ", ".join(known[-1])
            raise ValueError(f"the last batch has no compared column {column!r}; it has {names}")
        with self._writing() as database:
            database.execute(_ADD_EXCEPTION, exception)
        return exception

    def end_exception(self, column: str) -> None:
        """End the exception of a column; raise ValueError if there is none."""
        with self._writing() as database:
            if not database.execute("delete from exceptions where column = ?", (column,)).rowcount:
                names = [name for (name,) in database.execute("select column from exceptions")]
                known = f"are exceptions of {', '.join(names)}" if names else "is no exception"
                raise ValueError(f"column {column!r} has no exception; there {known}")

    def go_back(
        self, time: str, learned_from: Sequence[int], exceptions: Sequence[ColumnException]
    ) -> None:
        """Forget what came after a time, to repeat a search; not for a file that is still needed.

        The batches that were accepted then, and the exceptions, are given; the latter last forever.
        """
        with self._writing() as database:
            database.execute("delete from incidents where time > ?", (time,))
            numbers = ", ".join(map(str, map(int, learned_from)))
            query = f"delete from batches where time > ? and number not in ({numbers})"
            database.execute(query, (time,))
            database.execute("update batches set accepted = null")
            database.execute("delete from exceptions")
            forever = [each._replace(until="9999-12-31") for each in exceptions]
            database.executemany(_ADD_EXCEPTION, forever)
        for number in learned_from:
            self.accept(number)

    def accepted_rows(self, other_than: str) -> dict[int, pd.DataFrame]:
        """Return the rows of the accepted batches but that of a digest, by number, oldest first."""
        query = (
            "select number, parquet from kept_rows join batches using (number) "
            "where accepted is not null and digest != ? order by number"
        )
        found = self._read(query, (other_than,), tuple)
        try:
            return {number: from_parquet(rows) for number, rows in found}
        except (OSError, ValueError) as error:
            raise ValueError(self._damaged(error)) from error

    def _read(self, query: str, values: tuple[str, ...], read: Callable[[Any], _T]) -> list[_T]:
        """Return what a query finds, each row as `read` returns it; nothing without a file."""
        if not self.path.exists() or not self.path.stat().st_size:
            return []
        with self._open("rw") as database:
            _check_kind(database, self.path)
            return [read(row) for row in database.execute(query, values)]

    @contextmanager
    def _changing(self, number: int) -> Iterator[tuple[sqlite3.Connection, HistoryEntry]]:
        """Open the file for one transaction on a batch; raise ValueError if there is none."""
        with self._writing() as database:
            row = database.execute(f"{SELECT_ENTRIES} where number = ?", (number,)).fetchone()
            if row is None:
                raise ValueError(
                    f"{self.path} has no batch {number}; 'qms22 history {self.path}' lists its "
                    "batches"
                )
            yield database, read_entry(row)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open("rwc") as database:
            database.execute("begin immediate")
            try:
                tables = database.execute("select 1 from sqlite_master limit 1")
                if tables.fetchone() is None:
                    for statement in _SCHEMA.split(";")[:-1]:
                        database.execute(statement)
                _check_kind(database, self.path)
                yield database
            except BaseException:
                database.execute("rollback")
                raise
            database.execute("commit")

    @contextmanager
    def _open(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Connect to the file, and raise ValueError in place of SQLite's errors."""
        address = f"{self.path.resolve().as_uri()}?mode={mode}"
        try:
            with closing(
                sqlite3.connect(address, _LOCK_SECONDS, isolation_level=None, uri=True)
            ) as database:
                yield database
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith("SQLITE_BUSY"):
                what = "another program uses it; try again when that has ended"
            elif isinstance(error, sqlite3.OperationalError) and name != "SQLITE_ERROR":
                what = "check that the disk has space and the file can be written, or name another"
            else:  # also if a table or a column is lacking
                raise ValueError(self._damaged(error)) from error
            raise ValueError(f"the history {self.path} cannot be used now ({error}); {what}") from (
                error
            )
        except UnicodeDecodeError as error:
            raise ValueError(self._damaged(error)) from error

    def _damaged(self, error: Exception) -> str:
        return (
            f"{self.path} is not a history of batches, or is damaged ({error}); it is unchanged: "
            "name another file, or restore a copy"
        )


def now() -> str:
    """Return the time in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


def today() -> str:
    """Return the day in UTC."""
    return now()[:10]


def _check_because(because: str) -> str:
    if not because.strip():
        raise ValueError("a reason is needed; say in a few words what has happened")
    return because.strip()


def _check_until(until: str) -> str:
    try:
        day = date.fromisoformat(until).isoformat()
    except ValueError as error:
        raise ValueError(f"until must be a day such as 2026-12-31; got {until!r}") from error
    if day < today():
        raise ValueError(f"until must be today or later; got {until}, and today is {today()}")
    return day


def _check_kind(database: sqlite3.Connection, path: Path) -> None:
    [(application,)] = database.execute("pragma application_id").fetchall()
    [(version,)] = database.execute("pragma user_version").fetchall()
    if application != _APPLICATION:
        raise ValueError(f"{path} is another kind of database; name another file")
    if version > _VERSION:
        raise ValueError(f"{path} was written by a later version; upgrade qms22 to use it")
