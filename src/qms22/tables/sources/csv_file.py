"""Delimited text files."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, tee
from operator import add

import pyarrow as pa
import pyarrow.csv as arrow_csv

from qms22.tables.sources.compressed import TableFile, bytes_at_once
from qms22.tables.sources.csv_dialect import detect_dialect
from qms22.tables.sources.csv_repair import Repair, find_footer, footer_note
from qms22.tables.sources.file_rows import SpooledRows
from qms22.tables.sources.storage_types import CellTraits, fill_names, resolve_types
from qms22.tables.sources.stored_rows import Content, EmptyTableError, MemoryRows
from qms22.tables.sources.text_encoding import read_text
from qms22.tables.texts.words import CSV_MISSING, NA

# Bytes to parse at once, and the most that a row may have; of a file in memory, more.
BLOCK = 1 << 23
_LARGE_BLOCK = 8 * BLOCK
# Characters in which the header must end, and bytes in which a footer is looked for.
_HEAD, _TAIL = BLOCK, 1 << 16
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
        self._text = read_text(file)
        head = self._decode(self._text.start, self._text.start + _HEAD)
        self._dialect = dialect = detect_dialect(head, self.name)
        self._start = self._text.start + len(head[: dialect.start].encode())
        if dialect.start == len(head) and self._start < self._text.end:
            raise ValueError(
                f"{self.name} has column names of more than {_HEAD} characters in all; give the "
                "columns shorter names"
            )
        tail = self._decode(max(self._start, self._text.end - _TAIL), self._text.end)
        self._footer = find_footer(tail, dialect)
        self._end = self._text.end - len(self._footer.encode())

    def _decode(self, start: int, end: int) -> str:
        """Return a part of the text, without what is left of a character at its ends."""
        return self._text.content[start : min(end, self._text.end)].decode(errors="ignore")

    def read(self, *, is_ragged: bool) -> Content:
        """Read all cells, to count rows and find the types of columns."""
        repair, traits = Repair(self._dialect, self.name), list[CellTraits]()
        batches = self._learned(self._parse(repair, is_ragged=is_ragged), traits)
        rows = SpooledRows(batches) if self._file.is_large else None
        kept = [] if rows else list(batches)
        if not traits:
            raise EmptyTableError(
                f"{self.name} has a header but no rows; give a file with at least one row below "
                "the names"
            )
        types, notes = resolve_types(self._dialect.names, traits, self.name)
        guessed = f"{self.name} is read as UTF-16, though it has no mark that says so"
        layout = [guessed] * self._text.is_guessed + list(self._dialect.notes)
        layout += filter(None, [footer_note(self._footer, self.name)])
        found = (*layout, *notes, *repair.notes())
        commas = frozenset(name for name, kind in types.items() if kind == "comma float")
        with_na = frozenset(name for name, kind in types.items() if kind == "code")
        content = Content(
            rows or MemoryRows(pa.Table.from_batches(kept).select(list(types)), types),
            found,
            with_commas=commas,
            with_na=with_na,
            separator=self._dialect.separator,
        )
        if rows is not None:
            rows.types, rows.names = types, list(types)
        n_columns, file = len(self._dialect.names), self._file
        if len(self._dialect.header) in (0, n_columns) and n_columns > 1 and not repair.sums:
            # The file is opened again, lest its text stays in memory.
            return replace(content, written=lambda: _Text(file).lines())
        return content

    def lines(self) -> Iterator[str]:
        """Yield all above the first row, and the rows; those of another width as they are read."""
        lines, again = tee(self._open_body())
        cells, raw, n_read = list[str](), "", 0

        def records() -> Iterator[tuple[int, list[str]]]:
            nonlocal cells, raw, n_read
            for line, cells in self._dialect.rows(lines):
                raw, n_read = "".join(islice(again, line - n_read)), line
                yield line, cells

        yield self._decode(0, self._start)
        for row in Repair(self._dialect, self.name).equal_rows(records()):
            text = raw.strip("\r\n") + ("\r\n" if raw.endswith("\r\n") else "\n")
            yield text if row is cells else _text_of([row], self._dialect.separator)

    def _learned(
        self, batches: Iterable[pa.RecordBatch], traits: list[CellTraits]
    ) -> Iterator[pa.RecordBatch]:
        """Return batches, and learn what the cells of each column have in common."""
        batch = None
        for batch in batches:
            found = [CellTraits.of(column, self._dialect.separator) for column in batch.columns]
            traits[:] = map(add, traits, found) if traits else found
            yield batch
        if batch is not None and "\n" in str(batch.columns[-1][-1]) and self._has_open_quote():
            raise ValueError(self._never_closed())

    def _parse(self, repair: Repair, *, is_ragged: bool) -> Iterator[pa.RecordBatch]:
        """Read record batches of texts, with None for missing cells."""
        names = fill_names(self._dialect.names)
        is_rewritten = self._dialect.skips_blanks or is_ragged
        reader, body = None, memoryview(b"")
        try:
            body = self._body(repair, is_rewritten=is_rewritten)
            is_large = self._file.is_large
            reader = arrow_csv.open_csv(
                pa.BufferReader(pa.py_buffer(body)),
                # With threads, errors do not name the row.
                arrow_csv.ReadOptions(
                    column_names=names,
                    block_size=min(BLOCK, bytes_at_once() // 2) if is_large else _LARGE_BLOCK,
                    use_threads=False,
                ),
                arrow_csv.ParseOptions(
                    delimiter="\t" if is_rewritten else self._dialect.separator,
                    newlines_in_values=True,
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=sorted(CSV_MISSING - {NA}),
                    strings_can_be_null=True,
                ),
            )
            for batch in reader:  # in this frame, so that no traceback keeps the reader
                if (rows := repair.plain_rows(batch)).num_rows:
                    yield rows
        except (pa.ArrowInvalid, csv.Error) as error:
            if "Empty CSV file" not in str(error):
                raise self._fault(error) from error
        finally:
            del reader
            _wait_for_release(body)

    def _body(self, repair: Repair, *, is_rewritten: bool) -> memoryview:
        """Return what is between header and footer; rewritten, with tabs."""
        body = memoryview(self._text.content)[self._start : self._end]
        if not is_rewritten:
            return body
        rows = repair.equal_rows(self._dialect.rows(self._open_body()))
        return memoryview(self._file.keep(_with_tabs(rows)))

    def _open_body(self) -> io.TextIOWrapper:
        return self._text._replace(start=self._start, end=self._end).open(newline="")

    def _fault(self, error: Exception) -> ValueError:
        if ("straddling" in str(error) or "limit" in str(error)) and self._has_open_quote():
            return ValueError(self._never_closed())
        reason = " ".join(str(error).split())[:200]
        kind = _RaggedError if _RAGGED.search(reason) else ValueError
        return kind(f"{self.name} cannot be read as CSV ({reason}); correct the file")

    def _has_open_quote(self) -> bool:
        """Return whether the number of quotation marks is odd."""
        blocks = range(0, self._text.end, BLOCK)
        return sum(self._text.content[at : at + BLOCK].count(b'"') for at in blocks) % 2 == 1

    def _never_closed(self) -> str:
        return (
            f"{self.name} has a quotation mark that opens a cell and is never closed; close or "
            "remove it"
        )


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


def _with_tabs(rows: Iterator[list[str]]) -> Iterator[bytes]:
    while some := list(islice(rows, _ROWS_REWRITTEN)):
        yield _text_of(some, "\t").encode()


def _text_of(rows: Iterable[list[str]], separator: str) -> str:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=separator).writerows(rows)
    return written.getvalue()
