"""What a batch as a whole can have: too few rows, other columns, keys or rows sent twice, gaps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qms22._runtime import exact
from qms22.checks.copies import row_hashes
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.columns.date_parts import DAY
from qms22.tables.texts.words import list_quoted, number_text

if TYPE_CHECKING:
    from qms22.detection.result import Detection
    from qms22.tables import Table

# With fewer earlier batches, or days of known-normal rows, nobody knows which number is usual.
_LEAST_BATCHES = 3
_LEAST_DAYS = 5
# Numbers of rows within this ratio are usual, and so are those within three standard deviations.
_USUAL_RATIO = 1.5
# With fewer days or exports, numbers within this ratio are usual: a Sunday may have a third of a
# Monday.
_OF_FEW_DAYS = 3
# Without batches and days, only numbers far from that of the known-normal rows are noticed.
_FEWEST, _MOST = 0.01, 10
# Fewer known-normal rows without a missing cell do not show that there is never one.
_LEAST_COMPLETE = 30
# Rows of more cells are not looked for in the known-normal table: it takes a number for each.
_MOST_CELLS = 5_000_000
# A date that names the days of a table is in nearly all of its rows.
_LEAST_DATED = 0.9


class Noticed(NamedTuple):
    """Something about a batch as a whole.

    Parameters
    ----------
    kind : {"volume", "schema", "key", "resent", "dates", "missing", "exception"}
    text : str
        One sentence.
    columns : tuple of str
        The columns that it is about; none if it is about all rows.
    facts : dict
        The numbers and names of the sentence.
    """

    kind: str
    text: str
    columns: tuple[str, ...]
    facts: dict[str, Any]


class BatchDates(NamedTuple):
    """The days of a batch, by the first column with dates.

    Times are microseconds since 1970, in ascending order.
    """

    column: str
    normal: NDArray[np.float64]
    batch: NDArray[np.float64]

    def facts(self) -> dict[str, Any]:
        """Return the newest dates and the longest gap, as data."""
        gap, after = _longest_gap(self.batch)
        return {
            "column": self.column,
            "oldest": _text(self.batch[0]),
            "newest": _text(self.batch[-1]),
            "normal_newest": _text(self.normal[-1]),
            "longest_gap_days": round(gap / DAY, 3),
            "gap_after": None if after is None else _text(after),
        }


def notice(found: Detection) -> tuple[Noticed, ...]:
    """Return what is unusual about a batch as a whole; most often nothing."""
    dates = dates_of(found)
    noticed = [*compare_size(found, dates)[1], *_schema(found)]
    table = found.normal_table
    if table is not None and table.is_loaded and found.source.is_loaded:
        raw = table.columns(), found.source.columns()
        ignored = {*map(str, found.settings.get("ignore", ()))}
        names = [name for name in raw[1] if name in raw[0] and name not in ignored]
        noticed += _kinds(found, *raw, [name for name in names if name != found.id])
        noticed += _key(found.id, *raw)
        noticed += _resent(*raw, names)
        noticed += _missing(*raw, names)
    return (*noticed, *_dates(found, dates), *_excepted(found))


def dates_of(found: Detection) -> BatchDates | None:
    """Return the days of both tables, if they are in memory and a column has dates."""
    table = found.normal_table
    if table is None or not (table.is_loaded and found.source.is_loaded):
        return None
    read = found.encoder._typed_cells
    both = {*table.names} & {*found.source.names}
    dates = [column.name for column in found.encoder.columns_ if column.kind == "date"]
    # The date that the user has named comes first.
    for name in sorted(both.intersection(dates), key=[found.settings.get("time"), *dates].index):
        cells = [read(each.columns([name]))[name] for each in (table, found.source)]
        if all(np.mean(each.has_value) >= _LEAST_DATED for each in cells):
            times = (np.sort(each.values[each.has_value]) for each in cells)
            return BatchDates(name, *map(_without_stray, times))
    return None


def _without_stray(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Leave out the few dates that are far from all others: cells are wrong, not the batch.

    Far is further away than the span of all but a hundredth of the dates at either end.
    """
    low, high = np.quantile(times, [0.01, 0.99], method="nearest") if len(times) else (0.0, 0.0)
    span = max(high - low, DAY)
    return times[(times >= low - span) & (times <= high + span)]


def compare_size(found: Detection, dates: BatchDates | None) -> tuple[bool, list[Noticed]]:
    """Compare the number of rows with earlier batches, earlier days, or an earlier export.

    Return whether there was one of these, and a notice if the number is unusual.
    """
    n_rows, names = found.source.n_rows, tuple[str, ...]()
    earlier = [entry.n_rows for entry in found.history[:-1] if entry.incident is None]
    n_normal = None if found.normal_table is None else found.normal_table.n_rows
    usual, text = None, f"The batch has {n_rows:,} row{'s' * (n_rows != 1)}"
    if len(earlier) >= _LEAST_BATCHES:
        usual, is_unusual = float(np.median(earlier)), _is_unusual(n_rows, earlier)
        text += f"; earlier batches have {usual:,.0f}."
    # If the tables are of the same time, one may be a draw from the other.
    elif dates is not None and dates.batch[0] > dates.normal[-1]:
        known, new = (
            np.unique(times // DAY, return_counts=True)[1] for times in (dates.normal, dates.batch)
        )
        usual, a_day, names = float(np.median(known)), float(np.median(new)), (dates.column,)
        ratio = _USUAL_RATIO if len(known) >= _LEAST_DAYS else _OF_FEW_DAYS
        is_unusual = _is_unusual(a_day, known, ratio)
        text += f", {a_day:,.0f} a day by {dates.column!r}; known-normal days have {usual:,.0f}."
    elif dates is None and n_normal and _are_of_one_export(found.normal_table, found.source):
        usual, is_unusual = float(n_normal), _is_unusual(n_rows, [n_normal], _OF_FEW_DAYS)
        text += f"; the export before it, the known-normal table, has {n_normal:,}."
    else:
        is_unusual = n_normal is not None and not (_FEWEST * n_normal <= n_rows <= _MOST * n_normal)
        text += f", the known-normal table {n_normal or 0:,}."
    facts = {"rows": n_rows, "normal_rows": n_normal, "usual": usual}
    return usual is not None, [Noticed("volume", text, names, facts)] if is_unusual else []


def _are_of_one_export(normal: Table | None, batch: Table) -> bool:
    """Whether two files have the same name, but for the digits of a date or a number."""
    files = () if normal is None else (*normal.files, *batch.files)
    # A day may have one digit or two.
    forms = [re.sub(r"\d+", lambda run: "9" * max(len(run[0]), 2), path.name) for path in files]
    return len({*files}) == len(forms) == 2 and forms[0] == forms[1]


def _is_unusual(count: float, usual: ArrayLike, ratio: float = _USUAL_RATIO) -> bool:
    logs = exact.log(np.maximum(usual, 1))
    middle = float(np.median(logs))
    spread = 3 * 1.4826 * float(np.median(np.abs(logs - middle)))
    return abs(math.log(max(count, 1)) - middle) > max(math.log(ratio), spread)


def _schema(found: Detection) -> Iterator[Noticed]:
    ignored = {*map(str, found.settings.get("ignore", ())), found.id}
    names = found.source.names
    if found.normal_table is None:
        needed = [*found.encoder.groups_]
        known = [*(column.name for column in found.encoder.columns_), *found.encoder.ignored_]
    else:
        needed = known = found.normal_table.names
    for what, some, others in (("new", names, known), ("gone", needed, names)):
        if columns := [name for name in some if name not in {*others, *ignored}]:
            be = "Column {} is" if len(columns) == 1 else "Columns {} are"
            text = f"{be.format(list_quoted(columns))} {what}."
            yield Noticed("schema", text, tuple(columns), {"change": what})


def _kinds(
    found: Detection, normal: Columns, batch: Columns, names: Sequence[str]
) -> Iterator[Noticed]:
    for name in names:
        if normal[name].missing.all() or batch[name].missing.all():
            continue
        before, after = (_kind(found, table[name]) for table in (normal, batch))
        if before != after:
            text = f"Column {name!r} holds {after}s; before it held {before}s."
            yield Noticed("schema", text, (name,), {"change": "kind", "is": after, "was": before})


def _kind(found: Detection, cells: Cells) -> str:
    """Return what most cells of a column are; texts that the encoder reads are what it reads."""
    if cells.is_text:
        typed = found.encoder._typed_cells({cells.name: cells}).get(cells.name, cells)
        if typed.is_text or 2 * typed.has_value.sum() < np.count_nonzero(~cells.missing):
            return "text"
        return typed.form
    return cells.form


def _key(name: str | None, normal: Columns, batch: Columns) -> Iterator[Noticed]:
    """Return a notice if the names of rows are no longer unique."""
    if name is None or name not in normal or _repeated(normal[name]):
        return
    if repeated := _repeated(batch[name]):
        cells, at = batch[name], repeated[0]
        is_number = cells.form == "number"
        example = number_text(float(cells.values[at])) if is_number else cells.show(at)
        values = "1 value occurs" if len(repeated) == 1 else f"{len(repeated):,} values occur"
        text = f"Column {name!r} is no longer unique: {values} more than once, such as {example}."
        yield Noticed("key", text, (name,), {"repeated": len(repeated)})


def _repeated(cells: Cells) -> list[int]:
    """Return a row for each value that several rows have."""
    rows = np.flatnonzero(~cells.missing)
    _, first, counts = np.unique(cells.values[rows], return_index=True, return_counts=True)
    return list(rows[first[counts > 1]])


def _resent(normal: Columns, batch: Columns, names: Sequence[str]) -> Iterator[Noticed]:
    """Return how many rows the known-normal table has already, if it hardly has one twice."""
    if not names:
        return
    n_normal, n_rows = (len(table[names[0]].values) for table in (normal, batch))
    if (n_normal + n_rows) * len(names) > _MOST_CELLS:
        return
    known, new = (row_hashes(table, names) for table in (normal, batch))
    n_resent = int(np.isin(new, known).sum())
    # As many as known-normal rows are twice; a few more may be chance.
    n_chance = (1 + n_normal - len(np.unique(known))) / n_normal * n_rows
    if n_resent > n_chance + 3 * math.sqrt(n_chance):
        rows = "1 row is" if n_resent == 1 else f"{n_resent:,} rows are"
        text = f"{rows} sent again: the known-normal table has the same."
        yield Noticed("resent", text, (), {"rows": n_resent})


def _missing(normal: Columns, batch: Columns, names: Sequence[str]) -> Iterator[Noticed]:
    for name in names:
        n_missing = int(batch[name].missing.sum())
        is_complete = len(normal[name].values) >= _LEAST_COMPLETE and not normal[name].missing.any()
        if n_missing and is_complete:
            cells = f"{n_missing:,} missing cell{'s' * (n_missing != 1)}"
            text = f"Column {name!r} has {cells}; the known-normal rows have none."
            yield Noticed("missing", text, (name,), {"cells": n_missing})


def _dates(found: Detection, dates: BatchDates | None) -> Iterator[Noticed]:
    """Return a notice if the batch is not newer than the one before, or lacks days."""
    if dates is None:
        return
    facts = dates.facts()
    before = found.history[-2].settings.get("newest") if len(found.history) > 1 else None
    if before is not None and facts["newest"] <= before:
        text = f"The newest {dates.column!r} is {facts['newest']}; the batch before had {before}."
        yield Noticed("dates", text, (dates.column,), {**facts, "before": before})
    times = dates.batch
    gap, after = _longest_gap(times)
    # Few rows have long gaps by chance.
    by_chance = 4 * (times[-1] - times[0]) * math.log(len(times) + 1) / len(times)
    if after is not None and gap > max(2 * _longest_gap(dates.normal)[0], by_chance, DAY):
        between = f"{facts['gap_after']} and {_text(after + gap)}"
        text = f"Column {dates.column!r} has no dates between {between}."
        yield Noticed("dates", text, (dates.column,), facts)


def _excepted(found: Detection) -> Iterator[Noticed]:
    for each in found.exceptions:
        moved = [] if found.verdict is None else found.verdict.excepted
        if changes := [column.change for column in moved if column.name == each.column]:
            text = f"Column {each.column!r} has moved ({'; '.join(changes)}), and {each.note}."
            yield Noticed("exception", text, (each.column,), {**each._asdict(), "change": changes})


def _longest_gap(times: NDArray[np.float64]) -> tuple[float, float | None]:
    """Return the longest time between two rows that follow each other, and when it begins."""
    steps = np.diff(times)
    if not len(steps):
        return 0.0, None
    at = int(np.argmax(steps))
    return float(steps[at]), float(times[at])


def _text(time: float) -> str:
    """Return a moment as ISO 8601 has it, without a time that is midnight."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=float(time))
    return moment.isoformat(sep=" ").removesuffix(" 00:00:00")
