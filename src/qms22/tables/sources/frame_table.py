"""A table that is a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from qms22.tables.columns.arrow_columns import as_narwhals, frame_cells
from qms22.tables.columns.cells import Cells
from qms22.tables.sources.stored_rows import BATCH, Content
from qms22.tables.sources.table import Table


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
        return [self._names.get(name, name) for name in map(str, self._whole.columns)]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._whole)

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
        return self._select() if self._names or self._zones or self._changes else self._whole

    def _parse(self, name: str) -> Cells:
        if name not in self._parsed:
            (cells,) = frame_cells(self._stored(name).to_frame(name)) or []
            self._parsed[name] = self._changes[name](cells) if name in self._changes else cells
        return self._parsed[name]

    def _stored(self, name: str) -> pd.Series:
        """Return a column of the frame, in the time zone that is asked for."""
        column = self._whole.iloc[:, self.names.index(name)]
        return column.dt.tz_convert(self._zones[name]) if name in self._zones else column

    def _select(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        names = self.names
        places = range(len(names)) if columns is None else map(names.index, map(str, columns))
        frame = self._whole.iloc[:, [*places]].copy(deep=False)
        if self._names:
            frame.columns = pd.Index(names if columns is None else columns)
        for at, name in enumerate(map(str, frame.columns)):
            if name in self._changes:
                frame.isetitem(at, self._parse(name).to_series().set_axis(frame.index))
            elif name in self._zones:
                frame.isetitem(at, self._stored(name))
        return frame
