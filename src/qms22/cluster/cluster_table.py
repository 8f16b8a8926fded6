"""A table on the workers of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from qms22.tables import Table
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.sources.frame_table import FrameTable
from qms22.tables.sources.stored_rows import BATCH, Content

# What a worker does with a part of a table: from its number and its rows, in one or more chunks, to
# results.
PartTask: TypeAlias = Callable[[int, Iterator[pd.DataFrame]], Iterator[Any]]


class ClusterTable(Table, ABC):
    """A table whose rows stay on workers.

    It has numbered parts. Every pass over it must find the same rows in the same order. At most
    `most_drawn` rows are brought to this process to learn from.
    """

    is_distributed = True

    def __init__(self, table: Any, name: str, most_drawn: int | None = None) -> None:
        super().__init__(name, lambda: Content(None))
        self._table = table
        self.most_drawn = most_drawn
        # The rows that were brought here with all columns: those to learn from.
        self._drawn: pd.DataFrame | None = None

    @cached_property
    def own_names(self) -> list[str]:
        """The columns, as the engine's table calls them."""
        return list(self._table.columns)

    @abstractmethod
    def _run(self, task: PartTask, numbers: Collection[int] | None) -> Iterator[tuple[int, Any]]:
        """Run a task on all parts, or on those with some numbers.

        Yields the number of a part and a result, in the order of the rows. A part without rows may
        be left out.
        """

    @abstractmethod
    def extend(self, task: PartTask, kinds: Mapping[str, type]) -> Any:
        """Return the engine's table with more columns, of the kinds float, int or bool, lazily.

        The results of the task are the rows with the new columns after the others.
        """

    @cached_property
    def starts(self) -> dict[int, int]:
        """The position of the first row of each part; rows are counted on first use."""
        return dict(zip(self._sizes, accumulate(self._sizes.values(), initial=0), strict=False))

    @cached_property
    def _sizes(self) -> dict[int, int]:
        return dict(self._results(_count))

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [self._names.get(name, name) for name in self.own_names]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._sizes.values())

    def reader(
        self, columns: Sequence[str] | None = None
    ) -> Callable[[pd.DataFrame], pd.DataFrame]:
        """Return what makes rows of the engine's table, at least one, rows of this one."""
        names, zones, changes = self._names, self._zones, self._changes

        def read(rows: pd.DataFrame) -> pd.DataFrame:
            frame = FrameTable(rows).renamed(names).in_zones(zones).with_changes(changes).read()
            return frame if columns is None else frame[list(columns)]

        return read

    def columns(
        self, names: Sequence[str] | None = None, rows: NDArray[np.intp] | None = None
    ) -> dict[str, Cells]:
        """Bring columns to this process."""
        positions = np.arange(self.n_rows) if rows is None else rows
        frame = self.take(positions, names)
        if names is None and self._drawn is None:
            self._drawn = frame
        return FrameTable(frame).columns()

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Bring the table to this process."""
        return self.map_frames(lambda chunk: chunk, columns, n_rows)

    def map(
        self, function: Callable[[int, Columns], Any], names: Sequence[str], n_rows: int
    ) -> Iterator[Any]:
        """Apply a function to chunks of rows on the workers."""
        return self.map_frames(
            lambda chunk: function(int(chunk.index[0]), FrameTable(chunk).columns()), names, n_rows
        )

    def map_frames(
        self,
        function: Callable[[pd.DataFrame], Any],
        columns: Sequence[str] | None = None,
        n_rows: int = BATCH,
    ) -> Iterator[Any]:
        """Apply a function to chunks of rows on the workers, as data frames."""
        read, starts = self.reader(columns), self.starts

        def task(number: int, chunks: Iterator[pd.DataFrame]) -> Iterator[Any]:
            for chunk in numbered(number, chunks, starts):
                for first in range(0, len(chunk), n_rows):
                    yield function(read(chunk.iloc[first : first + n_rows]))

        return (result for _, result in self._results(task))

    def take(self, positions: ArrayLike, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Bring some rows to this process."""
        wanted = np.asarray(positions, dtype=np.intp)
        if columns is None and self._drawn is not None and np.isin(wanted, self._drawn.index).all():
            return self._drawn.loc[wanted]
        if not wanted.size:  # one row has the types
            return self.take([0], columns).iloc[:0]
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        read, starts = self.reader(columns), self.starts
        parts = np.searchsorted([*starts.values()], ascending, side="right") - 1
        numbers = {[*starts][part] for part in np.unique(parts).tolist()}

        def pick(number: int, chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for chunk in numbered(number, chunks, starts):
                if len(chunk):
                    ends = np.searchsorted(ascending, (chunk.index[0], chunk.index[-1] + 1))
                    if ends[0] < ends[1]:
                        yield read(chunk.loc[ascending[slice(*ends)]])

        picked = [rows for _, rows in self._results(pick, numbers)]
        if sum(map(len, picked)) != len(wanted):
            raise ValueError(
                f"{self.name} has other rows each time it is read; make it compute the same ones, "
                "or keep them first (persist, cache or materialize)"
            )
        return pd.concat(picked).iloc[np.argsort(order)]

    def _changed(self, columns: Collection[str]) -> Table:
        table = super()._changed(columns)
        assert isinstance(table, ClusterTable)
        table._drawn = None
        return table

    def read(self) -> pd.DataFrame:
        """Bring the whole table to this process."""
        self.check()
        return pd.concat(list(self.chunks()))

    def _results(
        self, task: PartTask, numbers: Collection[int] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Run a task on parts; raise what is wrong with rows as this process would."""
        for number, result in self._run(partial(_guarded, task=task), numbers):
            if isinstance(result, _Fault):
                raise ValueError(result.message)
            yield number, result


@dataclass(frozen=True)
class _Fault:
    """What is wrong with the rows of a part."""

    message: str


def _guarded(number: int, chunks: Iterator[pd.DataFrame], task: PartTask) -> Iterator[Any]:
    """Return a fault as a result: engines wrap errors in different ways."""
    try:
        yield from task(number, chunks)
    except ValueError as error:
        yield _Fault(str(error))


def _count(number: int, chunks: Iterator[pd.DataFrame]) -> Iterator[int]:
    yield sum(map(len, chunks))


def numbered(
    number: int, chunks: Iterator[pd.DataFrame], starts: Mapping[int, int]
) -> Iterator[pd.DataFrame]:
    """Yield the chunks of a part with an index that counts the rows of the table."""
    first = starts.get(number, 0)
    for chunk in chunks:
        yield chunk.set_axis(pd.RangeIndex(first, first + len(chunk)), axis=0)
        first += len(chunk)
