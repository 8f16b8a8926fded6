"""What a person has said in a history: incidents, and columns that may move for some time."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime
from typing import NamedTuple

# Files of earlier versions lack these tables; they get them when they are next written to.
_TABLES = {
    "incidents": "number integer primary key, time text not null, because text not null",
    "exceptions": 'column text primary key, because text not null, "until" text not null',
}


class ColumnException(NamedTuple):
    """A column whose movement is no alarm for some time.

    Parameters
    ----------
    column : str
    because : str
        The reason.
    until : str
        The last day, in UTC: "2026-12-31".
    """

    column: str
    because: str
    until: str

    @property
    def note(self) -> str:
        """Why the column is not learned from."""
        return f"may move until {self.until}: {self.because}"


def add_tables(database: sqlite3.Connection, *, for_now: bool = False) -> None:
    """Create the tables that a file lacks; only for this connection if nothing may be written."""
    there = {name for (name,) in database.execute("select name from sqlite_master")}
    for name, columns in _TABLES.items():
        if name not in there:
            kind = "temp table" if for_now else "table"
            database.execute(f"create {kind} {name} ({columns})")


def add_exception(database: sqlite3.Connection, exception: ColumnException) -> None:
    """Write an exception, in the place of an earlier one of the same column."""
    database.execute("insert or replace into exceptions values (?, ?, ?)", exception)


def end_exception(database: sqlite3.Connection, column: str) -> None:
    """Delete an exception; raise ValueError if there is none of the column."""
    if not database.execute("delete from exceptions where column = ?", (column,)).rowcount:
        names = [name for (name,) in database.execute("select column from exceptions")]
        known = f"there are exceptions of {', '.join(names)}" if names else "there is no exception"
        raise ValueError(f"column {column!r} has no exception; {known}")


def check_because(because: str) -> str:
    """Return a reason without blanks around it; raise ValueError if nothing is left."""
    if not because.strip():
        raise ValueError("a reason is needed; say in a few words what has happened")
    return because.strip()


def check_until(until: str) -> str:
    """Return a day as ISO 8601 has it; raise ValueError unless it is one that has not passed."""
    try:
        day = date.fromisoformat(until)
    except ValueError as error:
        raise ValueError(f"until must be a day such as 2026-12-31; got {until!r}") from error
    if day.isoformat() < today():
        raise ValueError(f"until must be today or later; got {until}, and today is {today()}")
    return day.isoformat()


def today() -> str:
    """Return the day in UTC."""
    return datetime.now(UTC).date().isoformat()
