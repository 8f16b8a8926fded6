"""A search with a history: it learns from accepted batches, and its result is remembered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd

from qms22 import __version__
from qms22._runtime.visible_text import visible
from qms22._runtime.warn import warn_user
from qms22.decisions.over_time import Past, next_budget
from qms22.detection.history.history_entry import HistoryEntry
from qms22.detection.history.history_file import BatchHistory, now
from qms22.detection.history.history_rows import digest, rows_to_keep, to_parquet
from qms22.detection.inputs import InputTables
from qms22.detection.noticing import dates_of
from qms22.detection.result import Detection
from qms22.detection.search_options import SearchOptions
from qms22.detection.streaming import is_large
from qms22.tables.columns.column_names import match_names
from qms22.tables.sources.frame_table import FrameTable
from qms22.tables.texts.words import list_some, number_text

# Rows of accepted batches to learn from, all of them in memory; of more the newest batches count.
MOST_ACCEPTED = 1_000_000


class PastBatches:
    """What a search takes from a history file and adds to it.

    Columns of both tables have the same names; those to `ignore` are not used.
    """

    def __init__(self, path: str | Path, tables: InputTables, ignore: Collection[str]) -> None:
        self._history = BatchHistory(path)
        self._history.check_writable()
        self._digest = digest(tables.batch)
        self._columns = [name for name in tables.normal.names if name in tables.batch.names]
        exceptions = self._history.exceptions()
        names = match_names([each.column for each in exceptions], self._columns)
        self.exceptions = tuple(
            each._replace(column=names[each.column]) for each in exceptions if each.column in names
        )
        number, entries = self._history.number_of(self._digest), self._history.entries()
        self.known = self._known([each for each in entries if each.number != number])
        self.tables = self._with_accepted(tables, ignore)

    def _known(self, others: Sequence[HistoryEntry]) -> Past:
        spent = [each.over_time["spent"] for each in others if each.over_time and not each.incident]
        profiles = [each.profile for each in others if each.accepted and each.profile]
        budget = next_budget(spent, sum(each.is_called_bad for each in others))
        return Past(tuple(profiles), budget, frozenset(each.column for each in self.exceptions))

    def _with_accepted(self, tables: InputTables, ignore: Collection[str]) -> InputTables:
        """Return the tables, with the rows of the accepted batches after the known-normal ones."""
        normal = tables.normal
        accepted = self._history.accepted_rows(other_than=self._digest)
        if accepted and is_large(normal):
            note = f"{normal.name} is larger than memory, so accepted batches are not used"
            return tables._replace(notes=(*tables.notes, note))
        used = {*self._columns}.difference(ignore)
        for number, rows in accepted.items():
            accepted[number] = rows.rename(columns=match_names(rows.columns, self._columns))
        usable = {number: rows for number, rows in accepted.items() if used <= {*rows.columns}}
        notes = list(tables.notes)
        if other := [str(number) for number in accepted if number not in usable]:
            notes.append(f"accepted batches that lack columns are left out: {list_some(other)}")
        if chosen := _newest(usable):
            n_rows = sum(len(rows) for rows in chosen)
            batches = f"{len(chosen):,} accepted {'batch' if len(chosen) == 1 else 'batches'}"
            size = f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}"
            of = f", the newest of {len(usable):,}" if len(chosen) < len(usable) else ""
            notes.append(f"known-normal: {normal.title} + {batches} ({size}){of}")
            normal = FrameTable(_join(normal.load().read(), chosen), normal.name)
        return tables._replace(normal=normal, notes=tuple(notes))

    def remember(self, found: Detection, options: SearchOptions) -> Detection:
        """Write a result into the history, and return it with the entries of the history.

        A failure is a warning: the result took minutes, and must not be lost.
        """
        assert found.verdict is not None
        dates = dates_of(found)
        anomalies = np.empty(0, np.intp) if found.marks is None else found.marks.anomalies
        entry = HistoryEntry(
            time=now(),
            # Names of files need not be UTF-8, and the file of a history takes no others.
            normal=visible(self.tables.normal.name),
            batch=visible(found.source.name),
            decision=found.verdict.decision,
            sentence=str(found.verdict),
            p_value=found.verdict.p_value,
            n_normal=self.tables.normal.n_rows,
            n_rows=found.source.n_rows,
            n_flagged=found.n_flagged,
            moved=tuple((column.name, column.change) for column in found.verdict.moved),
            settings={
                **options.facts(),
                "marked_anomalies": len(anomalies),
                "fewest_outliers": found.verdict.fewest_outliers,
                "newest": None if dates is None else dates.facts()["newest"],
                "profile": found.profile,
            },
            version=__version__,
        )
        rows = rows_to_keep(found.source, self._columns, anomalies)
        try:
            before = self._history.number_of(self._digest)
            entries = self._history.remember(entry, self._digest, to_parquet(rows), len(rows))
        except ValueError as error:
            warn_user(f"the batch was not recorded: {error}")
            return found
        if before is not None:
            warn_user(f"the batch was in the history already; entry {before} was replaced")
        found = replace(found, history=entries)
        if (facts := entries[-1].over_time) is not None:
            note = (
                f"compared with {facts['compared_with']:,} accepted batches; an alarm needs p ≤ "
                f"{facts['level']:.2g}, and {100 * facts['left'] / facts['rate']:.0f} % of the "
                f"budget of false alarms of this history is left (rate {facts['rate']:g})"
            )
            found = replace(found, notes=(*found.notes, note))
        if options.accept and is_acceptable(found):
            accepted = self._history.accept(entries[-1].number)
            found = replace(found, history=(*entries[:-1], accepted))
        return found


def is_acceptable(found: Detection, *, is_policy_met: bool = True) -> bool:
    """Return whether a batch can be accepted as known-normal without a person; warn why not."""
    incident, why_not = found.history[-1].incident if found.history else None, ""
    if incident is not None:
        why_not = f"it is tagged as an incident: {incident}"
    elif found.verdict is None or found.verdict.decision != "fine":
        why_not = "its verdict is not fine"
    elif found.n_flagged:
        are = "is" if found.n_flagged == 1 else "are"
        why_not = f"{found.n_flagged:,} of its rows {are} flagged"
    elif not is_policy_met:
        why_not = "it does not meet the policy"
    if why_not:
        warn_user(f"the batch was not accepted as known-normal: {why_not}")
    return bool(found.history) and not why_not


def with_acceptance(found: Detection) -> Detection:
    """Return a result as it is once its batch is accepted, which `BatchHistory.accept` does."""
    *others, entry = found.history
    return replace(found, history=(*others, replace(entry, accepted=entry.accepted or now())))


def _newest(accepted: dict[int, pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the newest batches, newest first, that have at most `MOST_ACCEPTED` rows in all."""
    newest = [accepted[number] for number in sorted(accepted, reverse=True)]
    n_rows = accumulate(map(len, newest))
    return [rows for rows, total in zip(newest, n_rows, strict=True) if total <= MOST_ACCEPTED]


def _join(normal: pd.DataFrame, accepted: list[pd.DataFrame]) -> pd.DataFrame:
    names = [str(name) for name in normal.columns]
    accepted = [rows.reindex(columns=names) for rows in accepted]
    columns = [
        _join_columns([normal.iloc[:, at], *(rows[name] for rows in accepted)])
        for at, name in enumerate(names)
    ]
    joined = pd.concat(columns, axis=1).set_axis(normal.columns, axis=1)
    return joined.set_axis(normal.index.append(pd.RangeIndex(len(normal), len(joined))))


def _join_columns(columns: list[pd.Series]) -> pd.Series:
    """Append columns; if there are texts in some and other values in others, all become texts."""
    if len({column.dtype for column in columns}) > 1:
        have_text = [any(isinstance(value, str) for value in column) for column in columns]
        if any(have_text):
            columns = [column.map(_text, na_action="ignore") for column in columns]
        columns = [column.astype(object) for column in columns]
    return pd.concat(columns, ignore_index=True).infer_objects()


def _text(value: object) -> str:
    """Return a value as text; 1.0 as a table with missing cells has it where others have 1."""
    return number_text(float(value)) if isinstance(value, float) else str(value)
