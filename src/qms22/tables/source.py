"""Tables that are read part by part, as they may be larger than memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.csv_text import SAMPLE
from qms22.tables.read import (
    BATCH,
    EMPTY,
    is_blank,
    open_unpacked,
    read_table,
    shortened,
    table_columns,
    table_format,
    to_frame,
)

# A Parquet column is read in pieces of this many bytes, however large its row groups are.
_BUFFER = 1 << 17
# And so many values at once.
_CELLS = 1 << 19
# What a packed table unpacks to.
_UNPACKED = 4


def open_table(path: str | Path) -> TableSource:
    r"""Open a table to read it part by part.

    Parameters
    ----------
    path : str or Path
        A file of any kind that `read_table` takes. ARFF and KEEL files, compressed Parquet and
        Arrow files, and pipes are read whole all the same.

    Returns
    -------
    TableSource

    Raises
    ------
    ValueError
        As of `read_table`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from qms22.tables import open_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "squares.csv")
    ...     _ = path.write_text("x,y\n1,1\n2,4\n3,9\n")
    ...     source = open_table(path)
    ...     source.n_rows, source.take([0, 2])["y"].tolist()
    (3, [1, 9])
    """
    path = Path(path).expanduser()
    if path.exists() and not path.is_file() and not path.is_dir():
        return WholeSource(path)
    with open_unpacked(path) as stream:
        head = stream.read(SAMPLE)
        is_packed = stream.is_packed
    if is_blank(head) and len(head) < SAMPLE:
        raise ValueError(EMPTY.format(path=path))
    kind = table_format(head, path)
    if kind == "csv":
        from qms22.tables.csv_source import CsvSource

        return CsvSource(path, is_packed)
    if kind == "keel" or is_packed:
        return WholeSource(path, is_packed)
    if kind == "parquet":
        return ParquetSource(path)
    return ArrowSource(path) if head.startswith(b"ARROW1") else ArrowStreamSource(path)


class TableSource(ABC):
    """A table in a file, read part by part; it may be read any number of times.

    Parameters
    ----------
    path : Path
    is_packed : bool
        Whether the file is compressed as a whole.

    Attributes
    ----------
    names : list of str
        The columns.
    n_rows : int
        How many rows there are. A text file or a stream has to be read once to tell.
    n_bytes : int
        About how many bytes the values take; of a pipe 0.
    """

    def __init__(self, path: Path, is_packed: bool = False) -> None:
        self.path = path
        self.is_packed = is_packed

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns."""

    @cached_property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def n_bytes(self) -> int:
        """About how many bytes the values take."""
        if not self.path.is_file():
            return 0
        return self.path.stat().st_size * (_UNPACKED if self.is_packed else 1)

    @abstractmethod
    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        """Read Arrow record batches, each with the number of its first row.

        Batches without any of `positions`, which ascend, may be left out.
        """

    def check(self) -> None:
        """Refuse a table without rows or columns."""
        if not self.n_rows or not self.names:
            raise ValueError(
                f"{self.path} has {self.n_rows} rows of {len(self.names)} columns; give a file "
                "with at least one row"
            )

    def chunks(
        self, columns: Sequence[str] | None = None, n_rows: int = BATCH, *, exact: bool = False
    ) -> Iterator[Any]:
        """Read the table in chunks.

        Parameters
        ----------
        columns : sequence of str, optional
            Those to read; all where not given.
        n_rows : int
            How many rows a chunk has; the last one may have fewer.
        exact : bool
            Whether columns keep the types of the file (as ``ArrowDtype``), so that all chunks are
            alike; else they have the types that `read_table` gives.

        Yields
        ------
        pandas.DataFrame
            Its index counts the rows of the table from 0.
        """
        pd = need("pandas", str(self.path))
        first = 0
        for table in _rechunked(self._parts(self._wanted(columns), None), n_rows):
            if exact:
                frame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
            else:
                frame = to_frame(table, self.path)
            frame.index = pd.RangeIndex(first, first + len(frame))
            first += len(frame)
            yield frame
        self._check_count(first, self.n_rows)

    def take(self, positions: Any, columns: Sequence[str] | None = None) -> Any:
        """Read some rows, in one pass.

        Parameters
        ----------
        positions : array-like of int
            Their numbers, each at most once, in any order.
        columns : sequence of str, optional
            Those to read; all where not given.

        Returns
        -------
        pandas.DataFrame
            The rows in the order asked for; the index holds their numbers.
        """
        pa = need("pyarrow", str(self.path))
        wanted = np.asarray(positions, dtype=np.intp)
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        pieces, n_found = [], 0
        for first, batch in self._parts(self._wanted(columns), ascending):
            last = np.searchsorted(ascending, first + batch.num_rows)
            if last > n_found:
                pieces.append(pa.table(batch).take(pa.array(ascending[n_found:last] - first)))
                n_found = int(last)
            if n_found == len(ascending):
                break
        self._check_count(n_found, len(ascending))
        frame = to_frame(pa.concat_tables(pieces), self.path).iloc[np.argsort(order)]
        frame.index = need("pandas").Index(wanted)
        return frame

    def _wanted(self, columns: Sequence[str] | None) -> list[str]:
        return self.names if columns is None else list(columns)

    def _check_count(self, n_found: int, n_expected: int) -> None:
        if n_found != n_expected:
            raise ValueError(
                f"{self.path} claims {self.n_rows} rows but holds others; the file looks damaged "
                "or has changed while it was read, get it anew"
            )


class ParquetSource(TableSource):
    """A Parquet file; a row group need not fit into memory."""

    @cached_property
    def _schema(self) -> Any:
        with self._opened() as file:
            return file.schema_arrow

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return table_columns(self._schema, self.path)

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are, as the footer has it."""
        with self._opened() as file:
            n_rows: int = file.metadata.num_rows
        if n_rows < 0:
            raise ValueError(
                f"{self.path} claims {n_rows} rows; the file looks damaged, get it anew"
            )
        return n_rows

    @property
    def n_bytes(self) -> int:
        """About how many bytes the values take; the file may be far smaller."""
        return max(super().n_bytes, 8 * self.n_rows * len(self.names))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        parquet = need("pyarrow.parquet", str(self.path))
        with (
            _damage_named(self.path, "Parquet"),
            parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False) as file,
        ):
            yield file

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        size = min(BATCH, max(_CELLS // max(len(columns), 1), 1))
        with self._opened() as file:
            first = 0
            for group in range(file.num_row_groups):
                n_rows = file.metadata.row_group(group).num_rows
                if _has_any(positions, first, n_rows):
                    at = first
                    for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                        yield at, batch.select(columns)
                        at += batch.num_rows
                first += n_rows


class ArrowSource(TableSource):
    """An Arrow or Feather file, memory-mapped where the address space has room for it."""

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        with self._opened() as file:
            return table_columns(file.schema, self.path)

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(self._sizes)

    @cached_property
    def _sizes(self) -> list[int]:
        with self._opened(self.names[:1]) as file:
            return [file.get_batch(at).num_rows for at in range(file.num_record_batches)]

    @contextmanager
    def _opened(self, columns: list[str] | None = None) -> Iterator[Any]:
        pa, ipc = need("pyarrow", str(self.path)), need("pyarrow.ipc", str(self.path))
        with _damage_named(self.path, "Arrow or Feather"):
            try:
                file = pa.memory_map(str(self.path))
            except OSError:
                file = pa.OSFile(str(self.path))
            with file:
                fields = None
                if columns:
                    names = ipc.open_file(file).schema.names
                    fields = [names.index(name) for name in columns]
                yield ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        with self._opened(columns) as file:
            first = 0
            for at, n_rows in enumerate(self._sizes):
                if _has_any(positions, first, n_rows):
                    batch = file.get_batch(at).select(columns)
                    # Offsets of a damaged file may point anywhere.
                    batch.validate(full=True)
                    yield first, batch
                first += n_rows


class ArrowStreamSource(TableSource):
    """A stream of Arrow batches in a file."""

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        with self._opened() as stream:
            return table_columns(stream.schema, self.path)

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for _, batch in self._parts(self.names, None))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pa, ipc = need("pyarrow", str(self.path)), need("pyarrow.ipc", str(self.path))
        with _damage_named(self.path, "Arrow or Feather"), pa.OSFile(str(self.path)) as file:
            yield ipc.open_stream(file)

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        with self._opened() as stream:
            first = 0
            for batch in stream:
                batch.validate(full=True)
                yield first, batch.select(columns)
                first += batch.num_rows


class WholeSource(TableSource):
    """A table that can only be read whole."""

    @cached_property
    def _table(self) -> Any:
        frame = read_table(self.path)
        return need("pyarrow").Table.from_pandas(frame, preserve_index=False)

    @property
    def names(self) -> list[str]:
        """The columns."""
        names: list[str] = self._table.column_names
        return names

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        n_rows: int = self._table.num_rows
        return n_rows

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self._table.select(columns).to_batches(max_chunksize=BATCH):
            yield first, batch
            first += batch.num_rows


def _has_any(positions: NDArray[np.intp] | None, first: int, n_rows: int) -> bool:
    """Whether any of the ascending positions is among `n_rows` rows from `first` on."""
    if positions is None:
        return True
    begin, end = np.searchsorted(positions, (first, first + n_rows))
    return bool(begin < end)


def _rechunked(parts: Iterator[tuple[int, Any]], n_rows: int) -> Iterator[Any]:
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


@contextmanager
def _damage_named(path: Path, what: str) -> Iterator[None]:
    """Say in one sentence what pyarrow could not read."""
    pa = need("pyarrow", str(path))
    try:
        yield
    except MemoryError:
        raise
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        raise ValueError(
            f"{path} cannot be read as {what} ({shortened(error)}); the file looks truncated or "
            "damaged, get it anew"
        ) from error
