"""One table: its columns are parsed on first use and kept, its rows are read once if they fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from qms22._runtime.stages import begin_stage
from qms22.tables.columns.arrow_columns import arrow_cells
from qms22.tables.columns.cells import Cells, Columns, from_codes, part_of_rows
from qms22.tables.sources.compressed import bytes_at_once, fault
from qms22.tables.sources.stored_rows import (
    BATCH,
    Content,
    MemoryRows,
    Rows,
    Wanted,
    check_count,
    in_memory,
    read_all,
)
from qms22.tables.texts.words import NA

# A cell most often becomes a number.
_BYTES = 8
# What a function finds in a chunk of rows.
Found = TypeVar("Found")
# Rewrites the cells of a column.
Change: TypeAlias = Callable[[Cells], Cells]


class Table:
    """A table that can be read whole or in parts, any number of times.

    Parameters
    ----------
    name : str
        The name of the table in messages: the path of its file, or "the frame".
    read : callable
        Returns the content; called once, when something of it is needed.
    title : str, optional
        The name of the table in headings: short, without directories.
    """

    # Whether all rows are in memory because all of them are needed.
    is_loaded = False

    # Whether the rows are on other machines, which work on them by `map`.
    is_distributed = False

    # How many rows to draw at most, to learn from; None where all may be read.
    most_drawn: int | None = None

    # The files that it was read from; none for a frame, a database or standard input.
    files: tuple[Path, ...] = ()

    def __init__(self, name: str, read: Callable[[], Content], title: str | None = None) -> None:
        self.name = name
        self.title = title or name
        self._read = read
        # New names by those of the file; by new names: other values, other time zones, and of what
        # is read as texts whether "NA" is a value.
        self._names: dict[str, str] = {}
        self._changes: dict[str, Change] = {}
        self._zones: dict[str, str] = {}
        self._texts: dict[str, bool] = {}
        self._parsed: dict[str, Cells] = {}

    @cached_property
    def content(self) -> Content:
        """What the file holds."""
        return self._read()

    @property
    def rows(self) -> Rows:
        """The rows, as the file has them."""
        assert self.content.rows is not None
        return self.content.rows

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [self._names.get(name, name) for name in self.rows.names]

    @property
    def n_rows(self) -> int:
        """Number of rows; a text file or a stream is read once to count them."""
        return self.rows.n_rows

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values: a number, or that of what the file has."""
        stored = self.content.rows
        return max(_BYTES * self.n_rows * len(self.names), stored.n_bytes if stored else 0)

    def rows_in(self, n_bytes: float) -> int:
        """Return how many rows take so many bytes, at least one."""
        return max(int(n_bytes * self.n_rows / max(self.n_bytes, 1)), 1)

    @property
    def label(self) -> str | None:
        """The class column, if the file declares one, as KEEL files do."""
        label = self.content.label
        return None if label is None else self._names.get(label, label)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed or left out to read the table, in sentences that name it."""
        return self.content.notes

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        place = self.content.place
        return f"{self.name}, row {row}" if place is None else place(row)

    def check(self) -> None:
        """Raise ValueError if the table has no rows or no columns."""
        if not self.n_rows or not self.names:
            raise ValueError(
                f"{self.name} has {self.n_rows} rows of {len(self.names)} columns; give a table "
                "with at least one of each"
            )

    def load(self) -> Table:
        """Read all rows into memory, if they are not there already; return the table."""
        if not self.is_loaded:
            begin_stage(f"reading {self.title}")
            self.check()
            self.content = replace(self.content, rows=self.rows.load(self.name))
            self.is_loaded = True
        return self

    def renamed(self, names: Mapping[str, str]) -> Table:
        """Return the table with other names for some columns: new names by old ones."""
        if not names:
            return self
        table = self._changed({})
        own = self._own([*names])
        table._names = self._names | dict(zip(own, names.values(), strict=True))
        for kept in ("_changes", "_zones", "_texts", "_parsed"):
            values = {names.get(name, name): each for name, each in getattr(self, kept).items()}
            setattr(table, kept, values)
        return table

    def with_texts(self, columns: Collection[str]) -> Table:
        """Return the table with some columns as texts; where it has no texts, as it is.

        Parameters
        ----------
        columns : collection of str
            Columns that were read as numbers, booleans or dates. In a text file these are texts,
            and "1.10" is not "1.1".
        """
        table = self._changed(columns)
        table._texts = dict.fromkeys(columns, False) | self._texts
        return table

    @property
    def with_na(self) -> set[str]:
        """The columns of texts in which some cell is "NA"; these cells are missing."""
        return {self._names.get(name, name) for name in self.content.with_na}

    def with_codes(self, columns: Collection[str]) -> Table:
        """Return the table with some columns as texts, with "NA" as a value: Namibia."""
        table = self._changed(columns)
        table._texts = {**self._texts, **dict.fromkeys(columns, True)}
        return table

    def in_zones(self, zones: Mapping[str, str]) -> Table:
        """Return the table with moments of some columns in other time zones."""
        table = self._changed(zones)
        table._zones = {**self._zones, **zones}
        return table

    def with_changes(self, changes: Mapping[str, Change]) -> Table:
        """Return the table with other values in some columns."""
        table = self._changed(changes)
        table._changes = {**self._changes, **changes}
        return table

    def _changed(self, columns: Collection[str]) -> Table:
        """Return a copy that parses some columns anew."""
        table = copy(self)
        table._parsed = {name: cells for name, cells in self._parsed.items() if name not in columns}
        return table

    def columns(
        self, names: Sequence[str] | None = None, rows: NDArray[np.intp] | None = None
    ) -> dict[str, Cells]:
        """Return columns; a column that is read whole is parsed once.

        Parameters
        ----------
        names : sequence of str, optional
            All columns by default.
        rows : ndarray of int, optional
            Positions of rows; all by default.
        """
        names = self.names if names is None else names
        if rows is not None and not self.is_loaded:
            return self._cells(self._take(rows, names), rows)
        whole = {name: self._parse(name) for name in names}
        if rows is None or (len(rows) == self.n_rows and (np.diff(rows) == 1).all()):
            return whole
        # Those of a frame may have the numbers of its index.
        return {
            name: replace(part, numbers=rows) if part.numbers is None else part
            for name, part in part_of_rows(whole, rows).items()
        }

    def written(self, names: Sequence[str], rows: NDArray[np.intp]) -> dict[str, Cells]:
        """Return columns of some rows as the table has them, where these are texts."""
        found = self.columns(names, rows)
        if self.content.separator:
            texts = self.with_texts(names)
            found = texts._cells(texts._take(rows, names), rows)
        return {name: cells for name, cells in found.items() if cells.is_text}

    def map(
        self, function: Callable[[int, Columns], Found], names: Sequence[str], n_rows: int
    ) -> Iterator[Found]:
        """Apply a function to chunks of rows, in their order and where they are.

        Parameters
        ----------
        function : callable
            Gets the position of the first row of a chunk, and its columns.
        names : sequence of str
            These columns.
        n_rows : int
            Number of rows of a chunk; some may have fewer.
        """
        if self.is_loaded:
            for first in range(0, self.n_rows, n_rows):
                rows = np.arange(first, min(first + n_rows, self.n_rows))
                yield function(first, self.columns(names, rows))
            return
        for first, table in self._chunks(names, n_rows):
            rows = np.arange(first, first + table.num_rows)
            yield function(first, self._cells(table, rows))

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Read the table in chunks.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; all by default.
        n_rows : int
            Number of rows of a chunk; the last one, and those of large rows, may have fewer.
        exact : bool
            Whether columns keep the types of the file (as ``ArrowDtype``), so that all chunks have
            the same types; by default they have the types of `read`.

        Yields
        ------
        pandas.DataFrame
            Its index counts the rows of the table from 0.
        """
        for first, table in self._chunks(self.names if columns is None else columns, n_rows):
            rows = pd.RangeIndex(first, first + table.num_rows)
            yield self._frame(table, rows, exact=exact)

    def take(self, positions: ArrayLike, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read some rows, in one pass.

        Parameters
        ----------
        positions : array-like of int
            Positions of the rows, each at most once, in any order.
        columns : sequence of str, optional
            The columns to read; all by default.

        Returns
        -------
        pandas.DataFrame
            The rows in the order of `positions`. Its index holds the positions, or the index of the
            frame that the table was made from.
        """
        rows = np.asarray(positions, dtype=np.intp)
        table = self._take(rows, self.names if columns is None else columns)
        return self._frame(table, pd.Index(rows))

    def read(self) -> pd.DataFrame:
        """Read the whole table.

        Returns
        -------
        pandas.DataFrame
            At least one row and one column. Its index counts from 0, or is that of the frame that
            the table was made from.
        """
        self.check()
        with in_memory(self.name):
            rows = self.rows.load(self.name).select(self._wanted(self.names))
            return self._frame(self._as_asked(rows, self.names), pd.RangeIndex(self.n_rows))

    def _parse(self, name: str) -> Cells:
        if name not in self._parsed:
            whole = read_all(self._batches([name]), self.n_rows, self.name)
            self._parsed |= self._cells(whole, None)
        return self._parsed[name]

    def _cells(self, table: pa.Table, rows: NDArray[np.intp] | None) -> dict[str, Cells]:
        found = {}
        for name, own in zip(table.column_names, self._own(table.column_names), strict=True):
            cells = arrow_cells(name, table.column(name))
            cells = replace(cells, has_commas=own in self.content.with_commas)
            if NA in cells.levels and self._texts.get(name) is False:
                texts = [None if level == NA else level for level in cells.levels]
                cells = from_codes(name, cells.form, cells.values, texts)
            cells = self._changes[name](cells) if name in self._changes else cells
            found[name] = replace(cells, numbers=rows)
        return found

    def _batches(
        self, columns: Sequence[str], positions: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read record batches with the new names."""
        wanted = self._wanted(columns, positions)
        for first, batch in self.rows.behind(wanted).batches(wanted):
            yield first, self._as_asked(batch, columns)

    def _wanted(self, columns: Sequence[str], positions: NDArray[np.intp] | None = None) -> Wanted:
        texts = self._own([name for name in columns if name in self._texts])
        return Wanted(self._own(columns), positions, texts)

    def _as_asked(
        self, batch: pa.RecordBatch | pa.Table, columns: Sequence[str]
    ) -> pa.RecordBatch | pa.Table:
        """Return a batch with new names and time zones."""
        if not self._names and not self._zones:
            return batch
        arrays = list(batch.columns)
        for at, name in enumerate(columns):
            if name in self._zones:
                unit = arrays[at].type.unit
                arrays[at] = arrays[at].cast(pa.timestamp(unit, self._zones[name]))
        return type(batch).from_arrays(arrays, names=list(columns))

    def _own(self, columns: Sequence[str]) -> list[str]:
        """Return the names that columns have in the file."""
        own = {new: old for old, new in self._names.items()}
        return [own.get(name, name) for name in columns]

    def _take(self, rows: NDArray[np.intp], columns: Sequence[str]) -> pa.Table:
        wanted = self._wanted(columns, rows)
        source = self.rows.behind(wanted)
        if isinstance(source, MemoryRows):
            return self._as_asked(source.select(wanted), columns)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        pieces, n_found = [], 0
        # One batch has the types, even if no row of it is wanted.
        for first, batch in self._batches(columns, ascending if rows.size else None):
            last = int(np.searchsorted(ascending, first + batch.num_rows))
            if last > n_found or not rows.size:
                pieces.append(pa.table(batch).take(pa.array(ascending[n_found:last] - first)))
                n_found = last
            if n_found == len(ascending):
                break
        check_count(n_found, len(ascending), self.n_rows, self.name)
        found = pa.concat_tables(pieces)
        is_sorted = np.array_equal(ascending, rows)  # most often: without a copy
        return found if is_sorted else found.take(pa.array(np.argsort(order)))

    def _chunks(self, columns: Sequence[str], n_rows: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield Arrow tables of `n_rows` rows; fewer at the end, and where rows are large."""
        held: list[pa.RecordBatch] = []
        first = n_held = 0
        room = bytes_at_once()
        for _, batch in self._batches(columns):
            held.append(batch)
            n_held += batch.num_rows
            fitting = room * batch.num_rows // max(batch.nbytes, 1)
            most = min(n_rows, max(fitting, 1))
            while n_held >= most:
                table = pa.Table.from_batches(held)
                yield first, table.slice(0, most)
                held = table.slice(most).to_batches()
                first, n_held = first + most, n_held - most
        if n_held:
            yield first, pa.Table.from_batches(held)
        check_count(first + n_held, self.n_rows, self.n_rows, self.name)

    def _frame(self, table: pa.Table, index: pd.Index, *, exact: bool = False) -> pd.DataFrame:
        """Return rows as a data frame, with the types that the whole table has there."""
        # The metadata are notes of pandas, which may be damaged or out of date.
        table = table.replace_schema_metadata(None)
        as_objects = []
        whole = self.rows.table if isinstance(self.rows, MemoryRows) and not exact else None
        for at, own in enumerate(self._own(table.column_names)):
            name, column = table.column_names[at], table.column(at)
            if whole is None or column.null_count or not whole.column(own).null_count:
                continue
            if pa.types.is_integer(column.type):
                table = table.set_column(at, name, column.cast(pa.float64(), safe=False))
            elif pa.types.is_boolean(column.type):
                as_objects.append(name)
        try:
            mapper = pd.ArrowDtype if exact else None
            frame: pd.DataFrame = table.to_pandas(types_mapper=mapper, ignore_metadata=True)
        except (ValueError, TypeError, OverflowError) as error:
            what = f"{self.name} holds values that pandas cannot take"
            remedy = "the file may be damaged, get it again or leave out such columns"
            raise fault(what, error, remedy) from error
        frame = frame.astype(dict.fromkeys(as_objects, object)) if as_objects else frame
        for name in self._changes.keys() & set(table.column_names):
            frame[name] = self._changes[name](arrow_cells(name, table.column(name))).to_series()
        frame.index = index
        return frame
