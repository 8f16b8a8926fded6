"""Delimited text files."""

from __future__ import annotations

import codecs
import csv
import io
import re
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from operator import add

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from qms22.tables.sources.compressed import Buffer, TableFile
from qms22.tables.sources.csv_dialect import Dialect, detect_dialect
from qms22.tables.sources.csv_repair import Repair, find_footer, footer_note
from qms22.tables.sources.spool import SpooledRows
from qms22.tables.sources.storage_types import CellTraits, name_columns, resolve_types
from qms22.tables.sources.stored_rows import Content, EmptyTableError, MemoryRows
from qms22.tables.sources.summary_rows import sum_rows, sums_note
from qms22.tables.sources.text_encoding import SAMPLE, detect_encoding
from qms22.tables.texts.words import CSV_MISSING

# Bytes to parse at once, and the most that a row may have; of a file in memory, more.
BLOCK = 1 << 23
_LARGE_BLOCK = 8 * BLOCK
# Characters in which the header must end.
_HEAD = BLOCK
# Rows to rewrite at once, so that few are in memory twice.
_ROWS_REWRITTEN = 4096
# Arrow's threads let go of a text within milliseconds; never wait for ever.
_MOST_SECONDS = 5.0
# What pyarrow says about a row of another width.
_RAGGED = re.compile(r"Expected \d+ columns, got \d+")


def read_csv(file: TableFile) -> Content:
    """Read delimited text.

    Cells are kept as texts: the storage type of a column depends on all of them, and numbers may
    have to be texts after all. A large file goes into a temporary one.
    """
    text = _Text(file)
    try:
        return text.read(is_ragged=False)
    except _RaggedError:
        return text.read(is_ragged=True)


class _RaggedError(ValueError):
    """A row has more or fewer cells than the header."""


class _Text:
    """A file, and what is known of its layout."""

    def __init__(self, file: TableFile) -> None:
        self.name = str(file.path)
        self._file = file
        self._content = file.buffer()
        self._encoding = detect_encoding(self._content, self.name)

    @cached_property
    def _head(self) -> str:
        """The first characters, among which the header is."""
        head = ""
        for piece in self._texts(self._encoding.n_bytes):
            head += piece
            if len(head) >= _HEAD:
                break
        return head

    @cached_property
    def _dialect(self) -> Dialect:
        dialect = detect_dialect(self._head, self.name)
        if dialect.start == len(self._head) >= _HEAD:
            raise ValueError(
                f"{self.name} has column names of more than {_HEAD} characters in all; give the "
                "columns shorter names"
            )
        return dialect

    @cached_property
    def _footer(self) -> str:
        """What follows the table at the end of the file."""
        tail, start = self._encoding.tail, self._dialect.start
        # Of a short file the tail has the header, too.
        is_short = len(self._head) - start <= len(tail)
        return find_footer(self._head[start:] if is_short else tail, self._dialect)

    def read(self, *, is_ragged: bool) -> Content:
        """Read all cells, to count rows and find the types of columns."""
        repair, scan = Repair(self._dialect, self.name), _Scan(self._dialect.separator)
        batches = scan.rows(self._parse(repair, is_ragged=is_ragged))
        rows = SpooledRows(batches) if self._file.is_large else None
        kept = [] if rows else list(batches)
        if not scan.traits:
            raise EmptyTableError(
                f"{self.name} has a header but no rows; give a file with at least one row below "
                "the names"
            )
        if self._encoding.n_quotes % 2 and "\n" in scan.last_cell:
            raise ValueError(self._never_closed())
        names, notes = name_columns(self._dialect.names, scan.traits, self.name)
        types = dict(zip(names, resolve_types(names, scan.traits), strict=True))
        notes = [*self._layout_notes(), *notes, *repair.notes()]
        if scan.sums:
            notes.append(sums_note(scan.sums, self.name))
        own = {name: str(at) for at, name in enumerate(names) if name}
        if rows is not None:
            return Content(rows.with_texts(own, types), tuple(notes))
        table = pa.Table.from_batches(kept)
        named = pa.table({name: table.column(number) for name, number in own.items()})
        return Content(MemoryRows(named, types), tuple(notes))

    def _layout_notes(self) -> list[str]:
        guessed = f"{self.name} is read as UTF-16, though it has no mark that says so"
        notes = [guessed] * self._encoding.is_guessed + list(self._dialect.notes)
        return notes + list(filter(None, [footer_note(self._footer, self.name)]))

    def _parse(self, repair: Repair, *, is_ragged: bool) -> Iterator[pa.RecordBatch]:
        """Read record batches of texts, with None for missing cells; columns go by numbers."""
        names = [str(at) for at in range(len(self._dialect.names))]
        is_rewritten = self._dialect.skips_blanks or is_ragged
        reader = None
        body = memoryview(self._body(repair, is_rewritten=is_rewritten))
        try:
            reader = arrow_csv.open_csv(
                pa.BufferReader(pa.py_buffer(body)),
                # With threads, errors do not name the row.
                arrow_csv.ReadOptions(
                    column_names=names,
                    block_size=BLOCK if self._file.is_large else _LARGE_BLOCK,
                    use_threads=False,
                ),
                arrow_csv.ParseOptions(
                    delimiter="\t" if is_rewritten else self._dialect.separator,
                    newlines_in_values=True,
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=sorted(CSV_MISSING),
                    strings_can_be_null=True,
                ),
            )
            for batch in reader:  # in this frame, so that no traceback keeps the reader
                if batch.num_rows:
                    yield batch
        except (pa.ArrowInvalid, csv.Error) as error:
            if "Empty CSV file" not in str(error):
                raise self._fault(error) from error
        finally:
            del reader
            _wait_for_release(body)

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

    def _body(self, repair: Repair, *, is_rewritten: bool) -> Buffer | memoryview:
        """Return what is between header and footer, in UTF-8; rewritten, with tabs."""
        encoding, dialect = self._encoding, self._dialect
        end = encoding.n_bytes - len(self._footer.encode(encoding.inner_codec))
        if not is_rewritten and encoding.inner_codec == "utf-8":
            mark = codecs.BOM_UTF8 if self._content[:3] == codecs.BOM_UTF8 else b""
            start = len(mark) + len(self._head[: dialect.start].encode())
            # The header is rarely there again.
            if not dialect.header or self._content.find(dialect.header.encode(), start, end) < 0:
                return memoryview(self._content)[start:end]
        texts = self._texts(end)
        pieces = repair.without_headers(_without_first(texts, dialect.start))
        if not is_rewritten:
            return self._file.keep(piece.encode() for piece in pieces)
        rows = repair.equal_rows(dialect.read_lines(_lines(pieces)))
        return self._file.keep(_with_tabs(rows))

    def _texts(self, n_bytes: int) -> Iterator[str]:
        """Return the first bytes of the file as text in pieces."""
        decoder = codecs.getincrementaldecoder(self._encoding.codec)()
        for start in range(0, n_bytes, SAMPLE):
            end = min(start + SAMPLE, n_bytes)
            yield decoder.decode(self._content[start:end], final=end == n_bytes)


class _Scan:
    """Reads all batches of a file, and learns what their cells have in common."""

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self.traits: list[CellTraits] = []
        self.sums: list[str] = []
        self.last_cell = ""

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches without rows that have sums of others."""
        for parsed in batches:
            batch = self._without_sums(parsed)
            if batch.num_rows:
                found = [CellTraits.of(column, self._separator) for column in batch.columns]
                self.traits = list(map(add, self.traits, found)) if self.traits else found
                self.last_cell = str(batch.columns[-1][-1])
                yield batch

    def _without_sums(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = sum_rows(batch)
        for at in found:
            cells = (column[at].as_py() for column in batch.columns)
            self.sums.append(next(cell for cell in cells if cell))
        kept = np.ones(batch.num_rows, dtype=bool)
        kept[found] = False
        return batch.filter(pa.array(kept)) if found else batch


def _wait_for_release(body: memoryview) -> None:
    """Wait until no thread of Arrow has the text, moments after the reader has gone.

    Letting go of it takes Python's lock, which aborts the process if Python is about to end.
    """
    end = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < end:
        try:
            return body.release()
        except BufferError:
            time.sleep(0.001)


def _without_first(texts: Iterable[str], n: int) -> Iterator[str]:
    """Return a text, given in pieces, without its first characters."""
    for text in texts:
        yield text[n:]
        n = max(n - len(text), 0)


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    """Return the lines of a text that is given in pieces; line ends do not change."""
    held = ""
    for piece in pieces:
        *lines, held = io.StringIO(held + piece, newline="").readlines() or [""]
        yield from lines
    if held:
        yield held


def _with_tabs(rows: Iterator[list[str]]) -> Iterator[bytes]:
    """Write rows for the parser, with tabs."""
    while some := list(islice(rows, _ROWS_REWRITTEN)):
        rewritten = io.StringIO(newline="")
        csv.writer(rewritten, delimiter="\t").writerows(some)
        yield rewritten.getvalue().encode()
