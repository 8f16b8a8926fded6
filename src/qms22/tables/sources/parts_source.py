"""Tables in several files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.columns.column_names import match_names
from qms22.tables.sources.column_types import cast_column, common_type, is_text
from qms22.tables.sources.source import BatchSource, EmptyTableError, has_any
from qms22.tables.sources.storage_types import CellTraits, convert
from qms22.tables.texts.words import list_some

# The value of a key whose name Hive writes for a missing one.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Tables that a title names.
_MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class _Part:
    """A source with rows.

    Parameters
    ----------
    source : BatchSource
    keys : mapping of str to str
        Columns with one value.
    own : dict of str to str
        The name in the source of each other column, by its name in the whole table.
    """

    source: BatchSource
    keys: Mapping[str, str]
    own: dict[str, str]

    @property
    def names(self) -> list[str]:
        """The columns, as the whole table calls them."""
        return [*self.own, *(key for key in self.keys if key not in self.own)]


class PartsSource(BatchSource):
    """A table whose rows are in several sources, one after the other.

    Columns are matched by name (case, blanks and underscores are ignored), in the order in
    which they occur first. In a part that lacks a column
    its cells are missing; a column of different types becomes what can hold all of them. Parts
    without rows are left out.

    Parameters
    ----------
    parts : sequence of BatchSource
    name : str, optional
        The name of the table in messages; by default those of the parts.
    keys : sequence of mapping of str to str, optional
        For each part, columns with one value, as the directories of a partitioned table name them.
    notes : sequence of str
        Sentences about how the parts were found.
    noun : str
        What the parts are.
    """

    def __init__(
        self,
        parts: Sequence[BatchSource],
        name: str | None = None,
        keys: Sequence[Mapping[str, str]] | None = None,
        notes: Sequence[str] = (),
        noun: str = "files",
    ) -> None:
        super().__init__(name or list_some([part.name for part in parts]))
        self._all = list(parts)
        self._keys = keys or [{} for _ in parts]
        self._has_name = name is not None
        self._found_notes = tuple(notes)
        self._noun = noun

    @property
    def title(self) -> str:
        """The names of the parts, without directories."""
        if self._has_name:
            name, n_parts = Path(self.name).name, len(self._all)
            return name if n_parts == 1 else f"{name} ({n_parts} {self._noun})"
        names = [part.title for part in self._all]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return ", ".join(names[:_MOST_NAMED]) + more

    @cached_property
    def names(self) -> list[str]:
        """The columns of all parts."""
        return list(dict.fromkeys(name for part in self._used for name in part.names))

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return sum(part.source.n_rows for part in self._used)

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values."""
        return sum(part.n_bytes for part in self._all)

    @property
    def label(self) -> str | None:
        """The class column, if all parts declare the same one."""
        labels = {part.label for part in self._all}
        return labels.pop() if len(labels) == 1 else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the parts, and about columns in which they differ."""
        used = {id(part.source) for part in self._used}
        without_rows = [part.name for part in self._all if id(part) not in used]
        notes = [note for part in self._used for note in part.source.notes]
        if without_rows:
            notes.append(f"without rows and left out: {list_some(without_rows)}")
        for part in self._used:
            pairs = [f"{own!r} for {name!r}" for name, own in part.own.items() if own != name]
            if pairs:
                notes.append(f"{part.source.name}: columns are called {list_some(pairs)}")
        differing: dict[str, list[str]] = {}
        for name in self.names:
            lacking = [part.source.title for part in self._used if name not in part.names]
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
        return (*self._found_notes, *notes)

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        at = int(np.searchsorted(self._ends, row, side="right"))
        part = self._used[at].source
        return part.place(row - self._ends[at] + part.n_rows)

    @contextmanager
    def _parsed_once(self) -> Iterator[None]:
        with ExitStack() as stack:
            for part in self._all:
                with suppress(EmptyTableError):
                    stack.enter_context(part._parsed_once())
            yield

    @cached_property
    def _used(self) -> list[_Part]:
        """The parts with rows."""
        used: list[_Part] = []
        names: dict[str, None] = {}
        for part, keys in zip(self._all, self._keys, strict=True):
            try:
                is_used = part.n_rows > 0
            except EmptyTableError:
                is_used = False
            if not is_used:
                continue
            known = match_names(part.names, names)
            if names and not known and not names.keys() & keys:
                raise ValueError(
                    f"{part.name} has no column in common with {used[0].source.name} (it has "
                    f"{list_some([repr(name) for name in part.names])}); give only files that are "
                    "parts of one table"
                )
            used.append(_Part(part, keys, {known.get(name, name): name for name in part.names}))
            names |= dict.fromkeys(used[-1].names)
        if not used:
            raise EmptyTableError(f"{self.name} has no rows; give a table with at least one row")
        return used

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(part.source.n_rows for part in self._used))

    @cached_property
    def _key_values(self) -> dict[str, Any]:
        """For each key, its value in each part as an Arrow array."""
        pa = need("pyarrow", self.name)
        columns = {}
        for key in dict.fromkeys(key for part in self._used for key in part.keys):
            values = [part.keys.get(key) for part in self._used]
            texts = pa.array([None if value == _NO_VALUE else value for value in values])
            columns[key] = convert(texts, CellTraits.of(texts, ",").storage_type(False))
        return columns

    @cached_property
    def _schemas(self) -> list[tuple[str, dict[str, Any]]]:
        """The title of each part, and the types of its columns."""
        schemas = []
        for part in self._used:
            types = {key: self._key_values[key].type for key in part.keys}
            # A source has the same types in every batch.
            _, batch = next(iter(part.source._parts(list(part.own.values()), None)))
            types |= {name: batch.column(own).type for name, own in part.own.items()}
            schemas.append((part.source.title, types))
        return schemas

    @cached_property
    def _types(self) -> dict[str, Any]:
        return {
            name: common_type([types[name] for _, types in self._schemas if name in types])
            for name in self.names
        }

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        pa = need("pyarrow", self.name)
        # Texts of the files themselves, and not of the values that were read from them.
        texts = [name for name in columns if self._type(name) == pa.string()]
        first = 0
        for at, part in enumerate(self._used):
            source = part.source
            if has_any(positions, first, source.n_rows):
                wanted = None if positions is None else positions[positions >= first] - first
                own = [part.own[name] for name in columns if name in part.own]
                in_words = source.with_texts([part.own[name] for name in texts if name in part.own])
                for start, batch in in_words.batches(own or source.names[:1], wanted):
                    arrays = [self._column(name, part, at, batch) for name in columns]
                    yield first + start, pa.record_batch(arrays, names=columns)
            first += source.n_rows

    def _column(self, name: str, part: _Part, at: int, batch: Any) -> Any:
        """Return a column of a batch, which is a key, or missing, if the part lacks it."""
        if name in part.own:
            return cast_column(batch.column(part.own[name]), self._type(name))
        value = self._key_values[name][at] if name in part.keys else None
        return _repeat(value, batch.num_rows, self._type(name))

    def _type(self, name: str) -> Any:
        """Return the type of a column, which may have to be text."""
        return need("pyarrow", self.name).string() if name in self._in_words else self._types[name]


def _repeat(value: Any, n_rows: int, type_: Any) -> Any:
    """Return a column with one value, or with missing ones for None."""
    pa = need("pyarrow")
    return (
        pa.nulls(n_rows, type_) if value is None else cast_column(pa.repeat(value, n_rows), type_)
    )
