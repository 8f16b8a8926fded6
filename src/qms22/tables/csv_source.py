"""Delimited text files."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.csv_dialect import Dialect, detect_dialect
from qms22.tables.source import FileSource
from qms22.tables.storage_types import CellTraits, StorageType, convert, resolve_types
from qms22.tables.text_encoding import SAMPLE, TextEncoding, detect_encoding
from qms22.tables.words import CSV_MISSING

# Bytes to parse at once, and the most that a row may have.
BLOCK = 1 << 23
# Cells of files up to this size are parsed once and kept.
MOST_KEPT = 1 << 24
# Characters in which the header must end.
_HEAD = 16 * SAMPLE
_ROWS_REWRITTEN = 4096


class CsvSource(FileSource):
    """Delimited text.

    The storage type of a column depends on all of its cells: before the first row is returned, the
    file is read once for its encoding and once for the types.
    """

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return [name for name in self._dialect.names if name]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._contents.n_rows

    def read(self) -> Any:
        """Read the whole table; the cells are parsed once."""
        if "_contents" in self.__dict__:
            return super().read()
        self._contents = self._scan(keep=True)
        frame = super().read()
        if self.n_bytes > MOST_KEPT:
            self._contents.kept = None
        return frame

    @cached_property
    def _encoding(self) -> TextEncoding:
        with self.file.open() as stream:
            return detect_encoding(iter(lambda: stream.read(BLOCK), b""), self.name)

    @cached_property
    def _dialect(self) -> Dialect:
        return detect_dialect(_first_characters(self._texts()), self.name)

    @cached_property
    def _contents(self) -> _Contents:
        return self._scan(keep=self.n_bytes <= MOST_KEPT)

    def _scan(self, *, keep: bool) -> _Contents:
        """Read all cells, to count rows and find the types of columns."""
        n_rows, last_cell = 0, ""
        traits: list[CellTraits] = []
        kept = []
        # A large block lets a row be as wide.
        for batch in self._parse(self._dialect.column_numbers, 8 * BLOCK if keep else BLOCK):
            found = [CellTraits.of(column, self._dialect.separator) for column in batch.columns]
            traits = list(map(add, traits, found)) if traits else found
            n_rows += batch.num_rows
            last_cell = str(batch.columns[-1][-1])
            if keep:
                kept.append(batch)
        if not n_rows:
            raise ValueError(
                f"{self.name} has a header but no rows; give a file with at least one row below "
                "the names"
            )
        if self._encoding.n_quotes % 2 and "\n" in last_cell:
            raise ValueError(self._never_closed())
        types = resolve_types(self._dialect.names, traits, self.name)
        return _Contents(n_rows, types, kept if keep else None)

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        pa = need("pyarrow", self.name)
        places = [self._dialect.names.index(name) for name in columns]
        types = [self._contents.types[at] for at in places]
        numbers = [str(at) for at in places]
        first = 0
        for batch in self._contents.kept or self._parse(numbers, BLOCK):
            typed = [convert(batch[at], to) for at, to in zip(numbers, types, strict=True)]
            yield first, pa.record_batch(typed, names=columns)
            first += batch.num_rows

    def _parse(self, columns: list[str], block_size: int) -> Iterator[Any]:
        """Read record batches of texts, with None for missing cells; columns go by numbers."""
        pa, arrow_csv = need("pyarrow", self.name), need("pyarrow.csv", self.name)
        names = self._dialect.column_numbers
        separator = "\t" if self._dialect.skips_blanks else self._dialect.separator
        try:
            with arrow_csv.open_csv(
                _as_file(self._body()),
                # With threads, errors do not name the row.
                arrow_csv.ReadOptions(column_names=names, block_size=block_size, use_threads=False),
                arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=columns,
                    column_types={name: pa.string() for name in names},
                    null_values=sorted(CSV_MISSING),
                    strings_can_be_null=True,
                ),
            ) as reader:
                yield from (batch for batch in reader if batch.num_rows)
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> ValueError:
        """Return an error that names the first row of the wrong width, or else the reason."""
        if self._encoding.n_quotes % 2 and "straddling" in str(error):
            return ValueError(self._never_closed())
        try:
            for _ in self._dialect.checked_rows(self._lines(), self.name):
                pass
        except ValueError as ragged:
            return ragged
        reason = " ".join(str(error).split())[:200]
        return ValueError(f"{self.name} cannot be read as CSV ({reason}); correct the file")

    def _never_closed(self) -> str:
        return (
            f"{self.name} has a quotation mark that opens a cell and is never closed; close or "
            "remove it"
        )

    def _body(self) -> Iterator[bytes]:
        """Return what follows the header, in UTF-8, with tabs if blanks are ignored."""
        if not self._dialect.skips_blanks:
            texts = self._texts()
            yield self._dialect.without_header(_first_characters(texts)).encode()
            yield from (text.encode() for text in texts)
            return
        rows = self._dialect.checked_rows(self._lines(), self.name)
        next(rows)
        while some := list(islice(rows, _ROWS_REWRITTEN)):
            rewritten = io.StringIO(newline="")
            csv.writer(rewritten, delimiter="\t").writerows(some)
            yield rewritten.getvalue().encode()

    def _lines(self) -> io.TextIOWrapper:
        blocks = _as_file(text.encode() for text in self._texts())
        return io.TextIOWrapper(blocks, encoding="utf-8", newline="")

    def _texts(self) -> Iterator[str]:
        """Return the text in pieces."""
        decoder = codecs.getincrementaldecoder(self._encoding.codec)()
        n_left = self._encoding.n_bytes
        with self.file.open() as stream:
            while block := stream.read(min(SAMPLE, n_left)):
                n_left -= len(block)
                yield decoder.decode(block, final=not n_left)


@dataclass
class _Contents:
    """What is known once all cells have been read.

    Parameters
    ----------
    n_rows : int
    types : list of str
        The storage type of each column.
    kept : list of record batches or None
        The cells as texts.
    """

    n_rows: int
    types: list[StorageType]
    kept: list[Any] | None


def _first_characters(texts: Iterator[str]) -> str:
    """Join pieces of a text until the header is among them."""
    head = ""
    while len(head) < _HEAD and (piece := next(texts, None)) is not None:
        head += piece
    return head


def _as_file(blocks: Iterable[bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Blocks(blocks), SAMPLE)


class _Blocks(io.RawIOBase):
    """Pieces of a file as a file."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            if (block := next(self._blocks, None)) is None:
                return 0
            self._held = block
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size
