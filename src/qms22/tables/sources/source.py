"""Tables that are read whole or in parts: the interface, and what all files share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.sources.column_types import cast_column
from qms22.tables.sources.compressed import TableFile, shorten_error

# Rows of a batch or chunk.
BATCH = 1 << 16


class TableSource(ABC):
    """A table that can be read whole or in parts, any number of times.

    Parameters
    ----------
    name : str
        The name of the table in messages: the path of its file, or "the frame".
    """

    # Whether the rows are on other machines, which work on them by `map`.
    is_distributed: bool = False

    # How many rows to draw at most, to learn from; None where all may be read.
    most_drawn: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows; a text file or a stream is read once to count them."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Approximate size of the values."""

    @property
    def title(self) -> str:
        """The name of the table in headings: short, without directories."""
        return self.name

    @property
    def label(self) -> str | None:
        """The class column, if the file declares one, as KEEL files do."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed or left out to read the table, in sentences that name it."""
        return ()

    @abstractmethod
    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[Any]:
        """Read the table in chunks.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; all by default.
        n_rows : int
            Number of rows of a chunk; the last one may have fewer.
        exact : bool
            Whether columns keep the types of the file (as ``ArrowDtype``), so that all chunks have
            the same types; by default they have the types of `read`.

        Yields
        ------
        pandas.DataFrame
            Its index counts the rows of the table from 0.
        """

    def map(
        self,
        function: Callable[[Any], Any],
        columns: Sequence[str] | None = None,
        n_rows: int = BATCH,
    ) -> Iterator[Any]:
        """Apply a function to the chunks of the table, in their order and where they are."""
        return map(function, self.chunks(columns, n_rows))

    @abstractmethod
    def take(self, positions: Any, columns: Sequence[str] | None = None) -> Any:
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

    @abstractmethod
    def read(self) -> Any:
        """Read the whole table.

        Returns
        -------
        pandas.DataFrame
            At least one row and one column. Its index counts from 0, or is that of the frame that
            the table was made from.
        """

    def with_texts(self, columns: Collection[str]) -> TableSource:
        """Return the table with some columns as texts; where it has no texts, as it is.

        Parameters
        ----------
        columns : collection of str
            Columns that were read as numbers, booleans or dates. In a text file these are texts,
            and "1.10" is not "1.1".
        """
        return self

    def check(self) -> None:
        """Raise ValueError if the table has no rows or no columns."""
        if not self.n_rows or not self.names:
            raise ValueError(
                f"{self.name} has {self.n_rows} rows of {len(self.names)} columns; give a table "
                "with at least one of each"
            )

    def place(self, row: int) -> str:
        """Return where a row is, for messages."""
        return f"{self.name}, row {row}"


class EmptyTableError(ValueError):
    """A table without rows."""


class BatchSource(TableSource):
    """A table that is read as Arrow record batches."""

    # Columns that are to be texts, and the same table without them: its file may end with it.
    _in_words: frozenset[str] = frozenset()
    _original: BatchSource | None = None

    @abstractmethod
    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        """Read Arrow record batches, each with the position of its first row.

        Batches without any of `positions`, which ascend, may be left out. Where the file has texts,
        columns of `_in_words` are these.
        """

    def with_texts(self, columns: Collection[str]) -> BatchSource:
        """Return the table with some columns as texts."""
        source = copy(self)
        source._in_words, source._original = self._in_words.union(columns), self
        return source

    def batches(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        """Read Arrow record batches as `_parts` does; what has to be text is."""
        for first, batch in self._parts(columns, positions):
            yield first, self._as_texts(batch) if self._in_words else batch

    def _as_texts(self, batch: Any) -> Any:
        pa = need("pyarrow", self.name)
        arrays = [
            cast_column(column, pa.string()) if name in self._in_words else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.record_batch(arrays, names=batch.schema.names)

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[Any]:
        """Read the table in chunks."""
        pd = need("pandas", self.name)
        first = 0
        for table in _rechunk(self.batches(self._wanted(columns), None), n_rows):
            frame = self._to_frame(table, pd.ArrowDtype if exact else None)
            frame.index = pd.RangeIndex(first, first + len(frame))
            first += len(frame)
            yield frame
        self._check_count(first, self.n_rows)

    def take(self, positions: Any, columns: Sequence[str] | None = None) -> Any:
        """Read some rows, in one pass."""
        pa = need("pyarrow", self.name)
        wanted = np.asarray(positions, dtype=np.intp)
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        pieces, n_found = [], 0
        # One batch has the types, even if no row of it is wanted.
        for first, batch in self.batches(self._wanted(columns), ascending if wanted.size else None):
            last = int(np.searchsorted(ascending, first + batch.num_rows))
            if last > n_found or not wanted.size:
                pieces.append(pa.table(batch).take(pa.array(ascending[n_found:last] - first)))
                n_found = last
            if n_found == len(ascending):
                break
        self._check_count(n_found, len(ascending))
        frame = self._to_frame(pa.concat_tables(pieces)).iloc[np.argsort(order)]
        frame.index = need("pandas").Index(wanted)
        return frame

    def read(self) -> Any:
        """Read the whole table."""
        try:
            with self._parsed_once():
                self.check()
                batches = [batch for _, batch in self.batches(self.names, None)]
            self._check_count(sum(batch.num_rows for batch in batches), self.n_rows)
            return self._to_frame(need("pyarrow").Table.from_batches(batches))
        except MemoryError as error:
            raise ValueError(
                f"{self.name} does not fit into memory ({shorten_error(error)}); take fewer rows, "
                "or get the file again if it is damaged"
            ) from error

    @contextmanager
    def _parsed_once(self) -> Iterator[None]:
        """Keep what is parsed in the block, in which the table is read whole."""
        yield

    def _wanted(self, columns: Sequence[str] | None) -> list[str]:
        return self.names if columns is None else list(columns)

    def _check_count(self, n_found: int, n_expected: int) -> None:
        if n_found != n_expected:
            raise ValueError(
                f"{self.name} claims {self.n_rows} rows but holds a different number; the file "
                "looks damaged or has changed while it was read, get it again"
            )

    def _to_frame(self, table: Any, types_mapper: Any = None) -> Any:
        need("pandas", self.name)
        try:
            # The metadata are notes of pandas, which may be damaged or out of date.
            plain = table.replace_schema_metadata(None)
            return plain.to_pandas(types_mapper=types_mapper, ignore_metadata=True)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                f"{self.name} holds values that pandas cannot take ({shorten_error(error)}); the "
                "file may be damaged, get it again or leave out such columns"
            ) from error

    @contextmanager
    def _faults_named(self, file_format: str) -> Iterator[None]:
        """Raise errors of pyarrow as a ValueError that names the file."""
        pa = need("pyarrow", self.name)
        try:
            yield
        except MemoryError:
            raise
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            raise ValueError(
                f"{self.name} cannot be read as {file_format} ({shorten_error(error)}); the file "
                "looks truncated or damaged, get it again"
            ) from error


class FileSource(BatchSource):
    """A table in a file.

    Parameters
    ----------
    file : TableFile
    """

    def __init__(self, file: TableFile) -> None:
        super().__init__(str(file.path))
        self.file = file

    @property
    def title(self) -> str:
        """The name of the file."""
        return self.file.path.name

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values."""
        return self.file.n_bytes


class WholeSource(FileSource):
    """A table in a file that is read as a whole, once."""

    @property
    @abstractmethod
    def _table(self) -> Any:
        """The content as Arrow table; subclasses keep it."""

    @property
    def names(self) -> list[str]:
        """The columns."""
        names: list[str] = self._table.column_names
        return names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        n_rows: int = self._table.num_rows
        return n_rows

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self._table.select(columns).to_batches(max_chunksize=BATCH):
            yield first, batch
            first += batch.num_rows


def has_any(positions: NDArray[np.intp] | None, first: int, n_rows: int) -> bool:
    """Return whether any of the ascending positions is among `n_rows` rows from `first` on."""
    if positions is None:
        return True
    begin, end = np.searchsorted(positions, (first, first + n_rows))
    return bool(begin < end)


def _rechunk(parts: Iterator[tuple[int, Any]], n_rows: int) -> Iterator[Any]:
    """Turn record batches of any size into Arrow tables of `n_rows` rows; the last has fewer."""
    pa = need("pyarrow")
    held: list[Any] = []
    n_held = 0
    for _, batch in parts:
        held.append(batch)
        n_held += batch.num_rows
        while n_held >= n_rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, n_rows)
            held = table.slice(n_rows).to_batches()
            n_held -= n_rows
    if n_held:
        yield pa.Table.from_batches(held)
