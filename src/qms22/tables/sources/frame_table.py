"""A table that is a data frame."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from qms22.tables.columns.arrow_columns import as_narwhals, frame_cells
from qms22.tables.columns.cells import Cells
from qms22.tables.sources.stored_rows import BATCH, Content
from qms22.tables.sources.table import Change, Table


class FrameTable(Table):
    """A data frame.

    Parts keep the frame's own column names and types, so that `exact` makes no difference. The
    frame is of pandas, polars or another library that narwhals supports. `name` is its name in
    messages, and `notes` say what was guessed or left out when it was read.
    """

    is_loaded = True

    def __init__(self, frame: Any, name: str = "the frame", notes: Sequence[str] = ()) -> None:
        supported = as_narwhals(frame, name)
        if supported is None:
            remedy = "make one with pandas.DataFrame" if isinstance(frame, Iterable) else "give one"
            raise ValueError(
                f"a table must be a path or a data frame; got {type(frame).__name__}, so {remedy}"
            )
        self._whole: pd.DataFrame = (
            frame if isinstance(frame, pd.DataFrame) else supported.to_pandas()
        )
        super().__init__(name, lambda: Content(None, tuple(notes)))

    @property
    def names(self) -> list[str]:
        """The columns; names that are numbers as text."""
        return [str(name) for name in self._whole.columns]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._whole)

    def renamed(self, names: Mapping[str, str]) -> Table:
        """Return the table with other names for some columns: new names by old ones."""
        called = [names.get(name, name) for name in self.names]
        return self._with_frame(self._whole.set_axis(called, axis=1)) if names else self

    def with_texts(self, columns: Collection[str]) -> Table:
        """Return the table, which has no texts but its values."""
        return self

    def in_zones(self, zones: Mapping[str, str]) -> Table:
        """Return the table with moments of some columns in other time zones."""
        frame = self._whole.copy(deep=False)
        for name in frame:
            if str(name) in zones:
                frame[name] = frame[name].dt.tz_convert(zones[str(name)])
        return self._with_frame(frame)

    def with_changes(self, changes: Mapping[str, Change]) -> Table:
        """Return the table with other values in some columns."""
        frame = self._whole.copy(deep=False)
        for name in frame:
            if str(name) in changes:
                cells = changes[str(name)](self._parse(str(name)))
                frame[name] = cells.to_series().set_axis(frame.index)
        return self._with_frame(frame)

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Return the table in chunks."""
        selected = self._select(columns)
        for first in range(0, self.n_rows, n_rows):
            chunk = selected.iloc[first : first + n_rows]
            yield chunk.set_axis(pd.RangeIndex(first, first + len(chunk)), axis=0)

    def take(self, positions: ArrayLike, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return some rows."""
        return self._select(columns).iloc[np.asarray(positions, dtype=np.intp)]

    def read(self) -> pd.DataFrame:
        """Return the frame itself, or a pandas frame with its values."""
        self.check()
        return self._whole

    def _parse(self, name: str) -> Cells:
        if name not in self._parsed:
            columns = frame_cells(self._select([name])) or []
            self._parsed[name] = columns[0]
        return self._parsed[name]

    def _with_frame(self, frame: pd.DataFrame) -> FrameTable:
        return FrameTable(frame, self.name, self.notes)

    def _select(self, columns: Sequence[str] | None) -> pd.DataFrame:
        if columns is None:
            return self._whole
        names = self.names
        return self._whole.iloc[:, [names.index(str(column)) for column in columns]]
