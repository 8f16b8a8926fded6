"""Delimited text files."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.sources.block_file import Blocks
from qms22.tables.sources.compressed import TableFile
from qms22.tables.sources.csv_dialect import Dialect, detect_dialect
from qms22.tables.sources.csv_repair import Repair, find_footer, footer_note
from qms22.tables.sources.source import EmptyTableError, FileSource
from qms22.tables.sources.storage_types import (
    CellTraits,
    StorageType,
    convert,
    name_columns,
    resolve_types,
)
from qms22.tables.sources.summary_rows import sum_rows, sums_note
from qms22.tables.sources.text_encoding import SAMPLE, TextEncoding, detect_encoding
from qms22.tables.texts.words import CSV_MISSING

# Bytes to parse at once, and the most that a row may have.
BLOCK = 1 << 23
# Cells of files up to this size are parsed once and kept.
MOST_KEPT = 1 << 24
# Characters in which the header must end.
_HEAD = BLOCK
_ROWS_REWRITTEN = 4096
# What pyarrow says about a row of another width.
_RAGGED = re.compile(r"Expected \d+ columns, got \d+")


class CsvSource(FileSource):
    """Delimited text.

    The storage type of a column depends on all of its cells: before the first row is returned, the
    file is read once for its encoding and once for the types.

    Parameters
    ----------
    file : TableFile
    """

    def __init__(self, file: TableFile) -> None:
        super().__init__(file)
        self._is_ragged = False

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        if all(self._dialect.names):
            return list(self._dialect.names)
        return [name for name in self._contents.names if name]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._contents.n_rows

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed or left out to read the table."""
        return self._contents.notes

    @contextmanager
    def _parsed_once(self) -> Iterator[None]:
        is_first = "_contents" not in self.__dict__
        if is_first:
            self._contents = self._scan(keep=True)
        yield
        if is_first and self.n_bytes > MOST_KEPT:
            self._contents.kept = None

    @cached_property
    def _encoding(self) -> TextEncoding:
        with self.file.open() as stream:
            return detect_encoding(iter(lambda: stream.read(BLOCK), b""), self.name)

    @cached_property
    def _dialect(self) -> Dialect:
        head = _first_characters(self._texts(self._encoding.n_bytes))
        dialect = detect_dialect(head, self.name)
        if dialect.start == len(head) >= _HEAD:
            raise ValueError(
                f"{self.name} has column names of more than {_HEAD} characters in all; give the "
                "columns shorter names"
            )
        return dialect

    @cached_property
    def _footer(self) -> str:
        """What follows the table at the end of the file."""
        head = _first_characters(self._texts(self._encoding.n_bytes))
        tail = self._encoding.tail
        start = self._dialect.start
        # Of a short file the tail has the header, too.
        return find_footer(head[start:] if len(head) - start <= len(tail) else tail, self._dialect)

    @cached_property
    def _contents(self) -> _Contents:
        return self._scan(keep=self.n_bytes <= MOST_KEPT)

    def _scan(self, *, keep: bool) -> _Contents:
        """Read all cells, to count rows and find the types of columns."""
        try:
            return self._scan_rows(keep=keep)
        except _RaggedError:
            self._is_ragged = True
            return self._scan_rows(keep=keep)

    def _scan_rows(self, *, keep: bool) -> _Contents:
        n_rows, last_cell = 0, ""
        traits: list[CellTraits] = []
        kept = []
        sums = _Sums()
        repair = Repair(self._dialect, self.name)
        # A large block lets a row be as wide.
        block_size = 8 * BLOCK if keep else BLOCK
        for parsed in self._parse(self._dialect.column_numbers, block_size, repair):
            batch = sums.find(parsed)
            if not batch.num_rows:
                continue
            found = [CellTraits.of(column, self._dialect.separator) for column in batch.columns]
            traits = list(map(add, traits, found)) if traits else found
            n_rows += batch.num_rows
            last_cell = str(batch.columns[-1][-1])
            if keep:
                kept.append(batch)
        if not n_rows:
            raise EmptyTableError(
                f"{self.name} has a header but no rows; give a file with at least one row below "
                "the names"
            )
        if self._encoding.n_quotes % 2 and "\n" in last_cell:
            raise ValueError(self._never_closed())
        names, notes = name_columns(self._dialect.names, traits, self.name)
        types = resolve_types(names, traits)
        notes = [*self._layout_notes(), *notes, *repair.notes()]
        if sums.labels:
            notes.append(sums_note(sums.labels, self.name))
        return _Contents(n_rows, names, types, tuple(notes), sums, kept if keep else None)

    def _layout_notes(self) -> list[str]:
        guessed = f"{self.name} is read as UTF-16, though it has no mark that says so"
        notes = [guessed] * self._encoding.is_guessed + list(self._dialect.notes)
        return notes + list(filter(None, [footer_note(self._footer, self.name)]))

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        pa = need("pyarrow", self.name)
        place_of = {name: at for at, name in enumerate(self._contents.names)}
        places = [place_of[name] for name in columns]
        types = [
            "text" if name in self._in_words else self._contents.types[at]
            for name, at in zip(columns, places, strict=True)
        ]
        numbers = [str(at) for at in places]
        first = 0
        repair = Repair(self._dialect, self.name)
        batches = self._contents.kept or self._contents.sums.leave_out(
            self._parse(numbers, BLOCK, repair)
        )
        for batch in batches:
            typed = [convert(batch[at], to) for at, to in zip(numbers, types, strict=True)]
            yield first, pa.record_batch(typed, names=columns)
            first += batch.num_rows

    def _parse(self, columns: list[str], block_size: int, repair: Repair) -> Iterator[Any]:
        """Read record batches of texts, with None for missing cells; columns go by numbers."""
        pa, arrow_csv = need("pyarrow", self.name), need("pyarrow.csv", self.name)
        names = self._dialect.column_numbers
        separator = "\t" if self._is_rewritten else self._dialect.separator
        blocks = Blocks(self._body(repair))
        try:
            with blocks.read_ahead() as readers:
                reader = arrow_csv.open_csv(
                    blocks.as_file(),
                    # With threads, errors do not name the row.
                    arrow_csv.ReadOptions(
                        column_names=names, block_size=block_size, use_threads=False
                    ),
                    arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
                    arrow_csv.ConvertOptions(
                        include_columns=columns,
                        column_types={name: pa.string() for name in names},
                        null_values=sorted(CSV_MISSING),
                        strings_can_be_null=True,
                    ),
                )
                readers.append(reader)
                yield from (batch for batch in reader if batch.num_rows)
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> ValueError:
        """Return an error that names the file and the reason."""
        if self._encoding.n_quotes % 2 and ("straddling" in str(error) or "limit" in str(error)):
            return ValueError(self._never_closed())
        reason = " ".join(str(error).split())[:200]
        kind = _RaggedError if _RAGGED.search(reason) else ValueError
        return kind(f"{self.name} cannot be read as CSV ({reason}); correct the file")

    def _never_closed(self) -> str:
        return (
            f"{self.name} has a quotation mark that opens a cell and is never closed; close or "
            "remove it"
        )

    @property
    def _is_rewritten(self) -> bool:
        """Whether rows are written anew, with tabs, for the parser."""
        return self._dialect.skips_blanks or self._is_ragged

    def _body(self, repair: Repair) -> Iterator[bytes]:
        """Return what is between header and footer, in UTF-8."""
        n_bytes = self._encoding.n_bytes
        texts = self._texts(n_bytes - len(self._footer.encode(self._encoding.inner_codec)))
        head = _first_characters(texts)
        pieces = repair.without_headers(chain([head[self._dialect.start :]], texts))
        blocks = (piece.encode() for piece in pieces)
        if not self._is_rewritten:
            yield from blocks
            return
        lines = io.TextIOWrapper(Blocks(blocks).as_file(), encoding="utf-8", newline="")
        rows = repair.equal_rows(self._dialect.rows(lines))
        try:
            while some := list(islice(rows, _ROWS_REWRITTEN)):
                rewritten = io.StringIO(newline="")
                csv.writer(rewritten, delimiter="\t").writerows(some)
                yield rewritten.getvalue().encode()
        except csv.Error as error:
            raise self._fault(error) from error

    def _texts(self, n_bytes: int) -> Iterator[str]:
        """Return the first bytes of the file as text in pieces."""
        decoder = codecs.getincrementaldecoder(self._encoding.codec)()
        with self.file.open() as stream:
            while block := stream.read(min(SAMPLE, n_bytes)):
                n_bytes -= len(block)
                yield decoder.decode(block, final=not n_bytes)


class _RaggedError(ValueError):
    """A row has more or fewer cells than the header."""


class _Sums:
    """Rows of a file with sums of others, which are left out."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._positions: list[int] = []
        self._n_rows = 0

    def find(self, batch: Any) -> Any:
        """Return the next batch of all columns without its sums, and remember these."""
        found = sum_rows(batch)
        self._positions += [self._n_rows + at for at in found]
        self._n_rows += batch.num_rows
        for at in found:
            cells = (column[at].as_py() for column in batch.columns)
            self.labels.append(next(cell for cell in cells if cell))
        return _without(batch, found)

    def leave_out(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return the batches of some columns without the rows that were found."""
        first = 0
        for batch in batches:
            end = first + batch.num_rows
            yield _without(batch, [at - first for at in self._positions if first <= at < end])
            first = end


def _without(batch: Any, positions: list[int]) -> Any:
    """Return a record batch without some rows."""
    if not positions:
        return batch
    kept = np.ones(batch.num_rows, dtype=bool)
    kept[positions] = False
    return batch.filter(need("pyarrow").array(kept))


@dataclass
class _Contents:
    """What is known once all cells have been read.

    Parameters
    ----------
    n_rows : int
    names : list of str
        The name of each column; empty where one is left out.
    types : list of str
        The storage type of each column.
    notes : tuple of str
        What was guessed or left out.
    sums : _Sums
        Rows that are left out.
    kept : list of record batches or None
        The cells as texts.
    """

    n_rows: int
    names: list[str]
    types: list[StorageType]
    notes: tuple[str, ...]
    sums: _Sums
    kept: list[Any] | None


def _first_characters(texts: Iterator[str]) -> str:
    """Join pieces of a text until the header is among them."""
    head = ""
    while len(head) < _HEAD and (piece := next(texts, None)) is not None:
        head += piece
    return head
