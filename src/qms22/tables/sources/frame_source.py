"""Data frames in memory behind the interface of tables in files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from qms22._runtime.packages import need
from qms22.tables.columns.cells import as_narwhals
from qms22.tables.sources.source import BATCH, TableSource


class FrameSource(TableSource):
    """A data frame.

    Parts keep the frame's own column names and types, so that `exact` makes no difference.

    Parameters
    ----------
    frame : pandas, polars or other data frame that narwhals supports
    name : str
        The name of the frame in messages.
    notes : sequence of str
        What was guessed or left out when the frame was read.
    origin : TableSource, optional
        What it was read from, with the same columns and rows.
    """

    def __init__(
        self,
        frame: Any,
        name: str = "the frame",
        notes: Sequence[str] = (),
        origin: TableSource | None = None,
    ) -> None:
        super().__init__(name)
        self._notes = tuple(notes)
        self.origin = origin
        supported = as_narwhals(frame, name)
        if supported is None:
            remedy = "make one with pandas.DataFrame" if isinstance(frame, Iterable) else "give one"
            raise ValueError(
                f"a table must be a path or a data frame; got {type(frame).__name__}, so {remedy}"
            )
        is_pandas = isinstance(frame, need("pandas", name).DataFrame)
        self._frame = frame if is_pandas else supported.to_pandas()

    @property
    def names(self) -> list[str]:
        """The columns; names that are numbers as text."""
        return [str(name) for name in self._frame.columns]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._frame)

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values."""
        return int(self._frame.memory_usage(index=False).sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed or left out when the frame was read."""
        return self._notes

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[Any]:
        """Return the table in chunks."""
        pd = need("pandas", self.name)
        selected = self._select(columns)
        for first in range(0, self.n_rows, n_rows):
            chunk = selected.iloc[first : first + n_rows]
            yield chunk.set_axis(pd.RangeIndex(first, first + len(chunk)), axis=0)

    def take(self, positions: Any, columns: Sequence[str] | None = None) -> Any:
        """Return some rows."""
        return self._select(columns).iloc[np.asarray(positions, dtype=np.intp)]

    def read(self) -> Any:
        """Return the frame itself, or a pandas frame with its values."""
        self.check()
        return self._frame

    def with_texts(self, columns: Collection[str]) -> TableSource:
        """Return the table with some columns as texts, which no longer knows its origin.

        Without one it is returned as it is.
        """
        if self.origin is None:
            return self
        frame = self._frame.copy(deep=False)
        if names := list(columns):
            chunks = self.origin.with_texts(names).chunks(names)
            texts = need("pandas", self.name).concat(list(chunks))
            for name in names:
                frame[name] = texts[name].set_axis(frame.index)
        return FrameSource(frame, self.name, self.notes)

    def _select(self, columns: Sequence[str] | None) -> Any:
        if columns is None:
            return self._frame
        names = self.names
        return self._frame.iloc[:, [names.index(str(column)) for column in columns]]
