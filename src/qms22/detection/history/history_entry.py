"""What a history remembers of one batch."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, cast, get_args, get_type_hints

from qms22.decisions.verdict import Decision


@dataclass(frozen=True)
class HistoryEntry:
    """What was found in a batch.

    Parameters
    ----------
    time : str
        When, in UTC: "2026-03-05 14:02:11".
    normal, batch : str
        Names of the tables.
    decision : {"fine", "anomalies", "drift"}
    sentence : str
        The verdict in words.
    p_value : float
        Of the verdict.
    n_normal, n_rows, n_flagged : int
        Known-normal rows, rows of the batch, flagged rows.
    moved : tuple of (str, str)
        Columns that moved, and how.
    settings : dict
        Options of the search, the number of rows marked as anomalies, and the least number of
        outliers.
    version : str
        Of this package.
    accepted : str or None
        When the batch was accepted as known-normal, if it was.
    number : int
        Counts the batches of a history from 1.
    incident : str or None
        Why the batch must never teach, if a person has said so.
    """

    time: str
    normal: str
    batch: str
    decision: Decision
    sentence: str
    p_value: float
    n_normal: int
    n_rows: int
    n_flagged: int
    moved: tuple[tuple[str, str], ...]
    settings: dict[str, Any] = field(repr=False)
    version: str
    accepted: str | None = None
    number: int = 0
    incident: str | None = None

    @property
    def n_marked(self) -> int:
        """Rows of the batch that were marked as anomalies, which the verdict is not about."""
        return int(self.settings.get("marked_anomalies", 0))

    @property
    def fewest_outliers(self) -> int | None:
        """How many outliers there are at least, by the verdict; None if it was not recorded."""
        return cast(int | None, self.settings.get("fewest_outliers"))

    @property
    def profile(self) -> dict[str, Any] | None:
        """What later batches are compared with; None if an earlier version wrote the entry."""
        return cast(dict[str, Any] | None, self.settings.get("profile"))

    @property
    def over_time(self) -> dict[str, Any] | None:
        """How the batch was compared with earlier ones: p-value, level, what it cost and left."""
        return (self.profile or {}).get("over_time")

    @property
    def is_called_bad(self) -> bool:
        """Whether it is an incident, or an alarm over time that nobody has accepted."""
        is_alarm = self.over_time is not None and self.decision != "fine"
        return self.incident is not None or (is_alarm and self.accepted is None)


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


_FIELDS = [entry.name for entry in fields(HistoryEntry)]
STORED = [name for name in _FIELDS if name != "incident"]
SELECT_ENTRIES = (
    f"select {', '.join(STORED)}, "
    "(select because from incidents where incidents.number = batches.number) from batches"
)


def read_entry(row: tuple[Any, ...]) -> HistoryEntry:
    """Return an entry; raise DatabaseError if a cell has something else than was written there."""
    values = dict(zip(_FIELDS, row, strict=True))
    try:
        moved = tuple((str(name), str(change)) for name, change in json.loads(values["moved"]))
        settings = dict(json.loads(values["settings"]))
        profile = settings.get("profile")
        is_known = profile is None or {"weekday", "evidence", "columns"} <= profile.keys()
    except (AttributeError, TypeError, ValueError) as error:
        raise sqlite3.DatabaseError(f"batch {values['number']}: moved or settings") from error
    values |= {"moved": moved, "settings": settings}
    kinds = get_type_hints(HistoryEntry) | {"moved": tuple, "settings": dict, "decision": str}
    wrong = [name for name in _FIELDS if not isinstance(values[name], kinds[name])]
    wrong += [] if is_known else ["settings"]
    if wrong or values["decision"] not in get_args(Decision):
        raise sqlite3.DatabaseError(f"batch {values['number']}: {(*wrong, 'decision')[0]}")
    return HistoryEntry(**values)
