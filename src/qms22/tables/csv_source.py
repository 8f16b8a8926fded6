"""Delimited text, read part by part: the same rows and types as `read_csv` gives."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.csv_text import (
    NEVER_CLOSED,
    NO_ROWS,
    SAMPLE,
    CellKind,
    Dialect,
    Traits,
    check_header,
    checked_rows,
    column_numbers,
    convert,
    parse_options,
    settle,
    sniff,
    unreadable,
    without_header,
)
from qms22.tables.read import NOT_UTF16, UTF16, check_text, open_unpacked
from qms22.tables.source import TableSource

# Bytes to parse at once, and the most that a row may have.
BLOCK = 1 << 23
# Characters in which the header has to end.
_HEAD = 16 * SAMPLE
_ROWS_REWRITTEN = 4096
# Bytes that mean nothing in Windows-1252.
_NOT_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")


class CsvSource(TableSource):
    """Delimited text.

    What a column holds is told from all of its cells, as `read_csv` does: before the first row is
    given, the file is read once for its encoding and once for the types.
    """

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return [name for name in self._dialect.names if name]

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._contents.n_rows

    @cached_property
    def _text(self) -> _Text:
        with open_unpacked(self.path) as stream:
            blocks = iter(lambda: stream.read(BLOCK), b"")
            first = next(blocks)
            look = _look_at_utf16 if first.startswith(UTF16) else _look_at_bytes
            return look(chain([first], blocks), self.path)

    @cached_property
    def _dialect(self) -> Dialect:
        dialect = sniff(_first_characters(self._texts()), str(self.path))
        check_header(dialect.names, str(self.path))
        return dialect

    @cached_property
    def _contents(self) -> _Contents:
        """Look at all cells."""
        n_rows, last_cell = 0, ""
        traits: list[Traits] = []
        for batch in self._batches(column_numbers(self._dialect)):
            found = [Traits.of(column, self._dialect.separator) for column in batch.columns]
            traits = list(map(add, traits, found)) if traits else found
            n_rows += batch.num_rows
            last_cell = str(batch.columns[-1][-1])
        if not n_rows:
            raise ValueError(NO_ROWS.format(path=self.path))
        if self._text.n_quotes % 2 and "\n" in last_cell:
            raise ValueError(NEVER_CLOSED.format(path=self.path))
        return _Contents(n_rows, settle(self._dialect, traits, str(self.path)))

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        pa = need("pyarrow", str(self.path))
        places = [self._dialect.names.index(name) for name in columns]
        kinds = [self._contents.kinds[at] for at in places]
        first = 0
        for batch in self._batches([str(at) for at in places]):
            typed = [convert(cells, kind) for cells, kind in zip(batch.columns, kinds, strict=True)]
            yield first, pa.record_batch(typed, names=columns)
            first += batch.num_rows

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        """Give record batches of texts, their columns named by numbers."""
        pa, arrow_csv = need("pyarrow", str(self.path)), need("pyarrow.csv", str(self.path))
        options = parse_options(
            self._dialect, block_size=BLOCK, path=str(self.path), columns=columns
        )
        try:
            with arrow_csv.open_csv(_as_file(self._body()), **options) as reader:
                yield from (batch for batch in reader if batch.num_rows)
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            if self._text.n_quotes % 2 and "straddling" in str(error):
                raise ValueError(NEVER_CLOSED.format(path=self.path)) from error
            raise unreadable(self._lines(), self._dialect, str(self.path), error) from error

    def _body(self) -> Iterator[bytes]:
        """Give what stands below the header, in UTF-8, with tabs where blanks do not count."""
        if not self._dialect.skips_blanks:
            texts = self._texts()
            yield without_header(_first_characters(texts), self._dialect.separator).encode()
            yield from (text.encode() for text in texts)
            return
        rows = checked_rows(self._lines(), self._dialect, str(self.path))
        next(rows)
        while some := list(islice(rows, _ROWS_REWRITTEN)):
            rewritten = io.StringIO(newline="")
            csv.writer(rewritten, delimiter="\t").writerows(some)
            yield rewritten.getvalue().encode()

    def _lines(self) -> io.TextIOWrapper:
        blocks = _as_file(text.encode() for text in self._texts())
        return io.TextIOWrapper(blocks, encoding="utf-8", newline="")

    def _texts(self) -> Iterator[str]:
        """Give the text in pieces."""
        decoder = codecs.getincrementaldecoder(self._text.encoding)()
        n_left = self._text.n_bytes
        with open_unpacked(self.path) as stream:
            while block := stream.read(min(SAMPLE, n_left)):
                n_left -= len(block)
                yield decoder.decode(block, final=not n_left)


@dataclass(frozen=True)
class _Text:
    """How to read a file as text.

    Parameters
    ----------
    encoding : str
    n_bytes : int
        Where the text ends.
    n_quotes : int
        How many quotation marks it has.
    """

    encoding: str
    n_bytes: int
    n_quotes: int


@dataclass(frozen=True)
class _Contents:
    """What is known once all cells have been seen.

    Parameters
    ----------
    n_rows : int
    kinds : list of str
        What each column holds.
    """

    n_rows: int
    kinds: list[CellKind]


def _look_at_utf16(blocks: Iterable[bytes], path: Path) -> _Text:
    decoder = codecs.getincrementaldecoder("utf-16")()
    n_bytes = n_quotes = 0
    try:
        for block in blocks:
            n_bytes += len(block)
            n_quotes += decoder.decode(block).count('"')
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ValueError(NOT_UTF16.format(path=path, reason=error.reason)) from error
    return _Text("utf-16", n_bytes, n_quotes)


def _look_at_bytes(blocks: Iterable[bytes], path: Path) -> _Text:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    is_utf8 = is_1252 = True
    n_bytes = n_text = n_quotes = 0
    for block in blocks:
        check_text(block, path, is_start=not n_bytes)
        if text := block.rstrip(b"\x1a"):  # DOS ended files so
            n_text = n_bytes + len(text)
        n_bytes += len(block)
        n_quotes += block.count(b'"')
        is_utf8 = is_utf8 and _decodes(decoder, block)
        is_1252 = is_1252 and not _NOT_1252.search(block)
    if is_utf8 and _decodes(decoder, b"", final=True):
        return _Text("utf-8-sig", n_text, n_quotes)
    return _Text("cp1252" if is_1252 else "latin-1", n_text, n_quotes)


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _first_characters(texts: Iterator[str]) -> str:
    """Take pieces of a text until the header is surely among them."""
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
