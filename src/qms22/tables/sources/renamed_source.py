"""Tables whose columns have other names or values than in the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from operator import methodcaller
from typing import Any

from qms22.tables.sources.frame_source import FrameSource
from qms22.tables.sources.source import BATCH, TableSource


def rename_columns(source: TableSource, names: Mapping[str, str]) -> TableSource:
    """Return a table with other names for some columns.

    Parameters
    ----------
    source : TableSource
    names : mapping from str to str
        New names by old ones.
    """
    if not names:
        return source
    if isinstance(source, FrameSource):
        frame = source.read()
        called = [names.get(str(name), str(name)) for name in frame.columns]
        origin = None if source.origin is None else rename_columns(source.origin, names)
        return FrameSource(frame.set_axis(called, axis=1), source.name, source.notes, origin)
    return RenamedSource(source, names)


def change_values(source: TableSource, change: Callable[[Any], Any]) -> TableSource:
    """Return a table with other values in some columns.

    Parameters
    ----------
    source : TableSource
    change : callable
        Returns a pandas frame, with some or all columns of some rows, as it is to be.
    """
    if isinstance(source, FrameSource):
        return FrameSource(change(source.read()), source.name, source.notes)
    return ChangedSource(source, change)


class RenamedSource(TableSource):
    """A table with other names for some columns.

    Parameters
    ----------
    source : TableSource
    names : mapping from str to str
        New names by old ones.
    """

    def __init__(self, source: TableSource, names: Mapping[str, str]) -> None:
        super().__init__(source.name)
        self.source = source
        self.change: Callable[[Any], Any] = methodcaller("rename", columns=dict(names))
        self._names = dict(names)
        self.is_distributed = source.is_distributed

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [self._names.get(name, name) for name in self.source.names]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values."""
        return self.source.n_bytes

    @property
    def label(self) -> str | None:
        """The class column, if the file declares one."""
        label = self.source.label
        return None if label is None else self._names.get(label, label)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed or left out to read the table."""
        return self.source.notes

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[Any]:
        """Read the table in chunks."""
        yield from map(self.change, self.source.chunks(self._old(columns), n_rows, exact=exact))

    def map(
        self,
        function: Callable[[Any], Any],
        columns: Sequence[str] | None = None,
        n_rows: int = BATCH,
    ) -> Iterator[Any]:
        """Apply a function to the chunks of the table."""
        change = self.change
        return self.source.map(lambda rows: function(change(rows)), self._old(columns), n_rows)

    def take(self, positions: Any, columns: Sequence[str] | None = None) -> Any:
        """Read some rows, in one pass."""
        return self.change(self.source.take(positions, self._old(columns)))

    def read(self) -> Any:
        """Read the whole table."""
        return self.change(self.source.read())

    def with_texts(self, columns: Collection[str]) -> TableSource:
        """Return the table with some columns as texts."""
        source = copy(self)
        source.source = self.source.with_texts(self._old(list(columns)) or ())
        return source

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        return self.source.place(row)

    def _old(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None:
            return None
        old = {new: name for name, new in self._names.items()}
        return [old.get(name, name) for name in columns]


class ChangedSource(RenamedSource):
    """A table with other values in some columns.

    Parameters
    ----------
    source : TableSource
    change : callable
        As in `change_values`.
    """

    def __init__(self, source: TableSource, change: Callable[[Any], Any]) -> None:
        super().__init__(source, {})
        self.change = change
