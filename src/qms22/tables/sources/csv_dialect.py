"""The layout of delimited text: separators, titles above the header, and the header."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from qms22.tables.sources.header import (
    find_header,
    joined_names,
    left_out,
    typical_width,
    unique_names,
    value_columns,
)
from qms22.tables.sources.text_encoding import SAMPLE

# In this order, as a comma is the most likely to occur inside a name. Blanks are tried only if none
# of these is in a header, and fits so large a share of the rows.
_SEPARATORS = "\t;|,"
_LEAST_FIT = 0.5
# The first line of files that Excel is to read.
_DECLARED = re.compile(r'[\r\n]*"?sep=([^\r\n"])"?[\r\n]+', re.IGNORECASE)
# Rows of an R file have one more cell than the header in nearly all lines.
_LEAST_WITH_ONE_MORE = 0.9
# Makes every line one cell.
_NO_SEPARATOR = "\x1f"
# Rows that show which columns have values: a round number, enough for those with many gaps.
_ROWS_TYPED = 200
# Rows that are read to find the layout, at least; of most files many more fit into the sample.
_LEAST_ROWS = 50
# Characters of a cell. The limit of the csv module is lower.
_MOST_CHARACTERS = 1 << 26
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class Dialect:
    """The layout of a file."""

    separator: str
    skips_blanks: bool  # whether blanks after a separator are ignored
    names: tuple[str, ...]  # of the columns, each only once; empty where a column has none
    start: int = 0  # number of characters before the first row below the header
    n_lines: int = 0  # number of lines before that row
    # The cells of the header as they are there; empty if there is none.
    header: tuple[str, ...] = ()
    are_values: tuple[bool, ...] = ()  # which columns seem to have numbers or dates
    notes: tuple[str, ...] = ()  # what was guessed

    def rows(self, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Read the rows that are not empty of some lines, each with the line it ends on.

        The lines have their ends, as they are in the file.
        """
        csv.field_size_limit(max(csv.field_size_limit(), _MOST_CHARACTERS))
        if self.separator == " ":
            lines = (line.rstrip("\r\n").strip(" ") + "\n" for line in lines)
        reader = csv.reader(lines, delimiter=self.separator, skipinitialspace=self.skips_blanks)
        return ((reader.line_num, row) for row in reader if row)


def detect_dialect(text: str, path: str) -> Dialect:
    """Find the separator, the header and the names of a file from its first rows.

    Of the separators in the header, the first that gives every row as many cells as the header is
    taken, or else the one that does so for most rows. `text` is the start of the file; `path` is
    its name in messages.
    """
    declared = _DECLARED.match(text)
    start = declared.end() if declared else 0
    marks = [declared[1]] if declared else [mark for mark in _SEPARATORS if mark in text]
    found = [_attempt(mark, text, start, path) for mark in marks]
    found = [attempt for attempt in found if len(attempt.header) > 1]
    if not any(attempt.fit >= _LEAST_FIT for attempt in found):
        blanks = _attempt(" ", text, start, path)
        found = [blanks] if len(blanks.header) > 1 and blanks.fit >= _LEAST_FIT else found
    found = found or [_attempt(_NO_SEPARATOR, text, start, path)]
    return max(found, key=lambda attempt: attempt.fit).dialect(path)


def _attempt(mark: str, text: str, start: int, path: str) -> _Attempt:
    """Read the first rows of a file, without blanks after marks if the header has such."""
    found = _Attempt(Dialect(mark, mark == " ", ()), text, start, path)
    if not found.layout.skips_blanks and mark + " " in found.header_text:
        return _Attempt(Dialect(mark, True, ()), text, start, path)
    return found


class _Row(NamedTuple):
    """A row, and the characters of the text up to its end."""

    cells: list[str]
    end: int


class _Attempt:
    """The start of a file, from some character on, read with one separator."""

    def __init__(self, layout: Dialect, text: str, start: int, path: str) -> None:
        self.layout, self._text, self._start = layout, text, start
        end = start

        def lines() -> Iterator[str]:
            nonlocal end
            for line in LINE.finditer(text, start):
                end = line.end()
                yield line[0]

        # From the first that has any text.
        self._rows: list[_Row] = []
        try:
            for _, cells in layout.rows(lines()):
                if self._rows or any(cell.strip() for cell in cells):
                    self._rows.append(_Row(cells, end))
                if len(self._rows) >= _LEAST_ROWS and end >= start + SAMPLE:
                    break
        except csv.Error as error:
            raise ValueError(f"{path} cannot be read as CSV ({error}); correct the file") from error
        if not self._rows:
            raise ValueError(f"{path} has no cells; give a file with a header and rows")
        self._at, self._first = find_header([row.cells for row in self._rows])
        self._body = [row.cells for row in self._rows[self._first :]]
        self.header = self._find_header()
        # The share of rows that are as wide as the header.
        n_fitting = sum(len(row) == len(self.header) for row in self._body)
        self.fit = n_fitting / max(len(self._body), 1)

    @property
    def header_text(self) -> str:
        """The line of the header, or the first row where there is none."""
        at = self._at or 0
        return self._text[self._end_before(at) : self._rows[at].end].strip("\r\n")

    def _find_header(self) -> list[str]:
        """Return the cells of the header, one for each column, or else those of the first row."""
        cells, body = self._rows[self._at or 0].cells, self._body
        width = typical_width(body or [cells])
        if width == len(cells) - 1 and not cells[-1].strip():
            return cells[:-1]
        n_wider = sum(len(row) == len(cells) + 1 for row in body)
        if len(cells) > 1 and n_wider > _LEAST_WITH_ONE_MORE * len(body):
            # R writes no name above row labels; other programs end all rows by a separator.
            is_last = not any(row[-1].strip() for row in body if len(row) > len(cells))
            return [*cells, ""] if is_last else ["", *cells]
        return cells

    def dialect(self, path: str) -> Dialect:
        """Return the layout of the file."""
        at, header, start = self._at, self.header, self._end_before(self._first)
        notes = []
        if at is None:
            names = [f"x{number}" for number in range(1, len(header) + 1)]
            notes.append(
                f"{path} has no column names: its first line has values ({self.header_text[:40]}), "
                f"and the columns are called {', '.join(names[:3])}{', …' if names[3:] else ''}"
            )
        else:
            joined = joined_names(header, self._rows[at - 1].cells) if at else None
            names, notes = unique_names(joined or header, path)
            at -= joined is not None
        if at:
            title = " ".join(filter(None, self._rows[0].cells))
            notes.insert(0, left_out(path, at, "line", "above the header", title))
        return replace(
            self.layout,
            names=tuple(names),
            start=start,
            n_lines=len(LINE.findall(self._text, 0, start)),
            header=() if self._at is None else tuple(self._rows[self._at].cells),
            are_values=tuple(value_columns(self._body[:_ROWS_TYPED], len(header))),
            notes=tuple(notes),
        )

    def _end_before(self, row: int) -> int:
        return self._rows[row - 1].end if row else self._start
