"""Tables in several files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from qms22.tables.columns.column_names import match_names
from qms22.tables.sources.column_types import cast_column, common_type, is_text
from qms22.tables.sources.storage_types import CellTraits, convert
from qms22.tables.sources.stored_rows import Content, EmptyTableError, Rows, Wanted, has_any
from qms22.tables.sources.table import Table
from qms22.tables.texts.words import list_some

# The value of a key whose name Hive writes for a missing one.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Tables that a title names: more would not fit on a line.
_MOST_NAMED = 3


def join_tables(
    parts: Sequence[Table],
    name: str | None = None,
    keys: Sequence[Mapping[str, str]] | None = None,
    notes: Sequence[str] = (),
    noun: str = "files",
) -> Table:
    """Return tables as one, whose rows follow each other.

    Columns are matched by name; case, blanks and underscores are ignored. They are in the order in
    which they occur first. In a part that lacks a column its cells are missing; a column of
    different types becomes what can hold all of them. Parts without rows are left out.

    Parameters
    ----------
    parts : sequence of Table
        Read from files.
    name : str, optional
        The name of the table in messages; by default those of the parts.
    keys : sequence of mapping of str to str, optional
        For each part, columns with one value, as the directories of a partitioned table name them.
    notes : sequence of str
        Sentences about how the parts were found.
    noun : str
        What the parts are.
    """
    called = name or list_some([part.name for part in parts])
    if name is not None:
        short = Path(name).name
        title = short if len(parts) == 1 else f"{short} ({len(parts)} {noun})"
    else:
        titles = [part.title for part in parts]
        more = f" and {len(titles) - _MOST_NAMED} more" if len(titles) > _MOST_NAMED else ""
        title = ", ".join(titles[:_MOST_NAMED]) + more

    def read() -> Content:
        rows = _PartRows(parts, called, keys or [{} for _ in parts])
        labels = rows.labels
        label = labels.pop() if len(labels) == 1 else None
        return Content(rows, (*notes, *rows.notes), label, rows.place)

    return Table(called, read, lambda: sum(part.n_bytes for part in parts), title)


@dataclass(frozen=True, eq=False)
class _Part:
    """A table with rows.

    Parameters
    ----------
    table : Table
    keys : mapping of str to str
        Columns with one value.
    own : dict of str to str
        The name in the part of each other column, by its name in the whole table.
    """

    table: Table
    keys: Mapping[str, str]
    own: dict[str, str]

    @property
    def rows(self) -> Rows:
        """The rows."""
        return self.table.rows

    @property
    def names(self) -> list[str]:
        """The columns, as the whole table calls them."""
        return [*self.own, *(key for key in self.keys if key not in self.own)]


class _PartRows(Rows):
    """The rows of several tables, one after the other.

    Parameters
    ----------
    parts : sequence of Table
    name : str
        The name of the whole table in messages.
    keys : sequence of mapping of str to str
        As in `join_tables`.
    """

    def __init__(
        self, parts: Sequence[Table], name: str, keys: Sequence[Mapping[str, str]]
    ) -> None:
        self._used: list[_Part] = []
        self._without_rows: list[str] = []
        names: dict[str, None] = {}
        for part, of_part in zip(parts, keys, strict=True):
            try:
                is_used = part.n_rows > 0
            except EmptyTableError:
                is_used = False
            if not is_used:
                self._without_rows.append(part.name)
                continue
            known = match_names(part.names, names)
            if names and not known and not names.keys() & of_part:
                raise ValueError(
                    f"{part.name} has no column in common with {self._used[0].table.name} (it has "
                    f"{list_some([repr(name) for name in part.names])}); give only files that are "
                    "parts of one table"
                )
            own = {known.get(name, name): name for name in part.names}
            self._used.append(_Part(part, of_part, own))
            names |= dict.fromkeys(self._used[-1].names)
        if not self._used:
            raise EmptyTableError(f"{name} has no rows; give a table with at least one row")
        self._names = list(names)
        self._ends = list(accumulate(part.rows.n_rows for part in self._used))

    @property
    def names(self) -> list[str]:
        """The columns of all parts."""
        return self._names

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return self._ends[-1]

    @property
    def labels(self) -> set[str | None]:
        """The class columns that the parts declare."""
        return {part.table.label for part in self._used}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the parts, and about columns in which they differ."""
        notes = [note for part in self._used for note in part.table.notes]
        if self._without_rows:
            notes.append(f"without rows and left out: {list_some(self._without_rows)}")
        for part in self._used:
            pairs = [f"{own!r} for {name!r}" for name, own in part.own.items() if own != name]
            if pairs:
                notes.append(f"{part.table.name}: columns are called {list_some(pairs)}")
        differing: dict[str, list[str]] = {}
        for name in self.names:
            lacking = [part.table.title for part in self._used if name not in part.names]
            if lacking:
                what = f"not in {list_some(lacking)}, and missing there"
                differing.setdefault(what, []).append(name)
            texts = [title for title, schema in self._schemas if is_text(schema.get(name))]
            others = [title for title, schema in self._schemas if name in schema]
            if is_text(self._types[name]) and len(texts) < len(others):
                where = f"in {list_some(texts)}" if texts else "in no part alike"
                what = f"text {where}, and read as text everywhere"
                differing.setdefault(what, []).append(name)
        for what, names in differing.items():
            columns, are = ("column", "is") if len(names) == 1 else ("columns", "are")
            notes.append(f"{columns} {list_some([repr(name) for name in names])} {are} {what}")
        return tuple(notes)

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        at = int(np.searchsorted(self._ends, row, side="right"))
        part = self._used[at].table
        return part.place(row - self._ends[at] + part.n_rows)

    @cached_property
    def _key_values(self) -> dict[str, pa.Array]:
        """For each key, its value in each part."""
        columns = {}
        for key in dict.fromkeys(key for part in self._used for key in part.keys):
            values = [part.keys.get(key) for part in self._used]
            texts = pa.array([None if value == _NO_VALUE else value for value in values])
            columns[key] = convert(texts, CellTraits.of(texts, ",").storage_type(False))
        return columns

    @cached_property
    def _schemas(self) -> list[tuple[str, dict[str, pa.DataType]]]:
        """The title of each part, and the types of its columns."""
        schemas = []
        for part in self._used:
            types = {key: self._key_values[key].type for key in part.keys}
            # All batches of a part have the same types.
            _, batch = next(iter(part.rows.batches(Wanted(list(part.own.values())))))
            types |= {name: batch.column(own).type for name, own in part.own.items()}
            schemas.append((part.table.title, types))
        return schemas

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        return {
            name: common_type([types[name] for _, types in self._schemas if name in types])
            for name in self.names
        }

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches, in the common types of all parts."""
        columns, positions, texts = wanted
        types = {name: pa.string() if name in texts else self._types[name] for name in columns}
        first = 0
        for at, part in enumerate(self._used):
            n_rows = part.rows.n_rows
            if has_any(positions, first, n_rows):
                rows = None if positions is None else positions[positions >= first] - first
                own = [part.own[name] for name in columns if name in part.own]
                # Texts of the files themselves, and not of the values that were read from them.
                in_words = [
                    part.own[name]
                    for name in columns
                    if name in part.own and types[name] == pa.string()
                ]
                read = part.rows.batches(Wanted(own or part.rows.names[:1], rows, in_words))
                for start, batch in read:
                    arrays = [self._column(name, part, at, batch, types[name]) for name in columns]
                    yield first + start, pa.record_batch(arrays, names=columns)
            first += n_rows

    def _column(
        self, name: str, part: _Part, at: int, batch: pa.RecordBatch, to: pa.DataType
    ) -> pa.Array:
        """Return a column of a batch, which is a key, or missing, if the part lacks it."""
        if name in part.own:
            return cast_column(batch.column(part.own[name]), to)
        if name not in part.keys:
            return pa.nulls(batch.num_rows, to)
        value = self._key_values[name][at]
        if not value.is_valid:
            return pa.nulls(batch.num_rows, to)
        return cast_column(pa.repeat(value, batch.num_rows), to)
