"""Tables in several files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qms22.tables.columns.column_names import match_names
from qms22.tables.sources.column_types import cast_column, common_type, is_text
from qms22.tables.sources.storage_types import CellTraits, convert
from qms22.tables.sources.stored_rows import Content, EmptyTableError, Rows, Wanted, has_any
from qms22.tables.sources.table import Table
from qms22.tables.texts.words import list_quoted, list_some

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

    The parts are read from files. `name` is that of the table in messages; by default those of the
    parts. `keys` has for each part columns with one value, as the directories of a partitioned
    table name them. `notes` are sentences about how the parts were found, and `noun` is what the
    parts are.
    """
    called = name or list_some([part.name for part in parts])
    if name is not None:
        short = Path(name).name
        title = short if len(parts) == 1 else f"{short} ({len(parts)} {noun})"
    else:
        title = list_some([part.title for part in parts], _MOST_NAMED)

    def read() -> Content:
        used, without_rows = _with_rows(parts, called, keys or [{} for _ in parts])
        rows = _PartRows(used)
        notes_of_parts = [note for part in used for note in part.table.notes]
        if without_rows:
            notes_of_parts.append(f"without rows and left out: {list_some(without_rows)}")
        labels = {part.table.label for part in used}
        label = labels.pop() if len(labels) == 1 else None
        pairs = [(name, own, part.table) for part in used for name, own in part.own.items()]
        commas = frozenset(name for name, own, of in pairs if own in of.content.with_commas)
        with_na = frozenset(name for name, own, of in pairs if own in of.content.with_na)
        found = (*notes, *notes_of_parts, *rows.notes())
        return Content(rows, found, label, rows.place, commas, with_na)

    return Table(called, read, title)


class _Part(NamedTuple):
    """A table with rows."""

    table: Table
    keys: Mapping[str, str]  # columns with one value
    # The name in the part of each other column, by its name in the whole table.
    own: dict[str, str]


def _with_rows(
    tables: Sequence[Table], name: str, keys: Sequence[Mapping[str, str]]
) -> tuple[list[_Part], list[str]]:
    """Return the parts that have rows, and the names of the others."""
    used: list[_Part] = []
    without_rows = []
    names: dict[str, None] = {}
    for table, of_table in zip(tables, keys, strict=True):
        try:
            has_rows = table.n_rows > 0
        except EmptyTableError:
            has_rows = False
        if not has_rows:
            without_rows.append(table.name)
            continue
        known = match_names(table.names, names)
        if names and not known and not names.keys() & of_table:
            raise ValueError(
                f"{table.name} has no column in common with {used[0].table.name} (it has "
                f"{list_quoted(table.names)}); give only files that are "
                "parts of one table"
            )
        own = {known.get(name, name): name for name in table.names}
        used.append(_Part(table, of_table, own))
        names |= dict.fromkeys([*own, *of_table])
    if not used:
        raise EmptyTableError(f"{name} has no rows; give a table with at least one row")
    return used, without_rows


class _PartRows(Rows):
    """The rows of several tables, one after the other."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts
        self._ends = list(accumulate(part.table.n_rows for part in parts))
        # For each key, its value in each part.
        self._values: dict[str, pa.Array] = {}
        for key in dict.fromkeys(key for part in parts for key in part.keys):
            values = [part.keys.get(key) for part in parts]
            texts = pa.array([None if value == _NO_VALUE else value for value in values])
            self._values[key] = convert(texts, CellTraits.of(texts, ",").storage_type(False))
        # For each part, the types of its columns, which are the same in all of its batches.
        self._own_types: list[dict[str, pa.DataType]] = []
        for part in parts:
            types = {key: self._values[key].type for key in part.keys}
            _, batch = next(iter(part.table.rows.batches(Wanted(list(part.own.values())))))
            types |= {name: batch.column(own).type for name, own in part.own.items()}
            self._own_types.append(types)
        names = dict.fromkeys(name for part in parts for name in (*part.own, *part.keys))
        self._types = {
            name: common_type([types[name] for types in self._own_types if name in types])
            for name in names
        }
        self.names, self.n_rows = list(self._types), self._ends[-1]

    @property
    def n_bytes(self) -> int:
        return sum(part.table.n_bytes for part in self._parts)

    def notes(self) -> list[str]:
        """Return sentences about columns in which parts differ."""
        notes = []
        for part in self._parts:
            pairs = [f"{own!r} for {name!r}" for name, own in part.own.items() if own != name]
            if pairs:
                notes.append(f"{part.table.name}: columns are called {list_some(pairs)}")
        differing: dict[str, list[str]] = {}
        titles = [part.table.title for part in self._parts]
        schemas = list(zip(titles, self._own_types, strict=True))
        for name, kind in self._types.items():
            lacking = [title for title, types in schemas if name not in types]
            if lacking:
                what = f"not in {list_some(lacking)}, and missing there"
                differing.setdefault(what, []).append(name)
            texts = [title for title, types in schemas if is_text(types.get(name))]
            if is_text(kind) and len(texts) + len(lacking) < len(schemas):
                where = f"in {list_some(texts)}" if texts else "in no part alike"
                what = f"text {where}, and read as text everywhere"
                differing.setdefault(what, []).append(name)
        for what, names in differing.items():
            columns, are = ("column", "is") if len(names) == 1 else ("columns", "are")
            notes.append(f"{columns} {list_quoted(names)} {are} {what}")
        return notes

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        at = int(np.searchsorted(self._ends, row, side="right"))
        part = self._parts[at].table
        return part.place(row - self._ends[at] + part.n_rows)

    def batches(self, wanted: Wanted) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches, in the common types of all parts."""
        columns, positions, texts = wanted
        types = {name: pa.string() if name in texts else self._types[name] for name in columns}
        first = 0
        for at, part in enumerate(self._parts):
            n_rows = part.table.n_rows
            if has_any(positions, first, n_rows):
                rows = None if positions is None else positions[positions >= first] - first
                own = {name: part.own[name] for name in columns if name in part.own}
                # Texts of the files themselves, and not of the values that were read from them.
                in_words = [
                    each
                    for name, each in own.items()
                    if name in texts
                    or (is_text(types[name]) and not is_text(self._own_types[at][name]))
                ]
                source = part.table.rows
                needed = Wanted(list(own.values()) or source.names[:1], rows, in_words)
                for start, batch in source.batches(needed):
                    # The value of a key is the same in all rows; others are missing.
                    keys = {name: self._values[name][at] for name in part.keys}
                    found = {
                        name: batch.column(own[name])
                        if name in own
                        else pa.repeat(keys.get(name, pa.scalar(None)), batch.num_rows)
                        for name in columns
                    }
                    arrays = [cast_column(found[name], kind) for name, kind in types.items()]
                    yield first + start, pa.record_batch(arrays, names=columns)
            first += n_rows
