"""The layout of delimited text: separators, the header, and rows of the wrong width."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import TextIO

from qms22.tables.cells import check_names
from qms22.tables.text_encoding import SAMPLE
from qms22.tables.words import is_number_text

# In this order, as a comma is the most likely to occur inside a name. Blanks are tried only if a
# header has none of these.
_SEPARATORS = "\t;|,"
_HEADER = re.compile(r'(?:"[^"]*"|[^"\r\n])*(?=[\r\n]|$)')  # quoted names may have line breaks
_FIRST_LINE = re.compile(r"[^\r\n]*")


@dataclass(frozen=True)
class Dialect:
    """The layout of a file.

    Parameters
    ----------
    separator : str
    skips_blanks : bool
        Whether blanks after a separator are ignored.
    names : tuple of str
        The cells of the header.
    """

    separator: str
    skips_blanks: bool
    names: tuple[str, ...]

    @property
    def column_numbers(self) -> list[str]:
        """Unique names of the columns: their positions."""
        return [str(at) for at in range(len(self.names))]

    def rows(self, text: str | TextIO) -> Iterator[tuple[int, list[str]]]:
        """Read the rows that are not empty, each with the line it ends on.

        Parameters
        ----------
        text : str or text stream
            A stream must not change line ends.
        """
        lines: Iterable[str] = StringIO(text, newline="") if isinstance(text, str) else text
        if self.separator == " ":
            lines = (line.rstrip("\r\n").strip(" ") + "\n" for line in lines)
        reader = csv.reader(lines, delimiter=self.separator, skipinitialspace=self.skips_blanks)
        return ((reader.line_num, row) for row in reader if row)

    def checked_rows(self, text: str | TextIO, path: str) -> Iterator[list[str]]:
        """Read the rows; raise ValueError at the first that is not as wide as the header."""
        width = len(self.names)
        try:
            for line, row in self.rows(text):
                if len(row) != width:
                    raise ValueError(
                        f"{path}, line {line}: the row has {len(row)} cells where the header has "
                        f"{width}; correct that line"
                    )
                yield row
        except csv.Error as error:
            raise ValueError(_unreadable(path, error)) from error

    def without_header(self, text: str) -> str:
        """Cut off the first row that is not empty."""
        start = StringIO(text, newline="")
        for row in csv.reader(iter(start.readline, ""), delimiter=self.separator):
            if row:
                break
        return text[start.tell() :]


def detect_dialect(text: str, path: str) -> Dialect:
    """Find the separator and the names of a file from its first rows.

    Of the separators in the header, the first that gives every row as many cells as the header is
    taken, or else the one that does so for most rows: reading then fails at a row that differs.

    Parameters
    ----------
    text : str
        The start of the file.
    path : str
        The name of the file in messages.
    """
    sample = text[:SAMPLE]
    first = _HEADER.match(sample.lstrip("\r\n")) or _FIRST_LINE.match(sample.lstrip("\r\n"))
    header = first[0].strip(" ") if first else ""
    found = [mark for mark in _SEPARATORS if mark in header] or [" "] * (" " in header)
    layouts = [Dialect(mark, mark == " " or mark + " " in header, ()) for mark in found]
    # A header without any separator has one column.
    best, best_fit = Dialect(",", False, (header.strip('"'),)), -1.0
    for layout in layouts:
        try:
            rows = [row for _, row in layout.rows(sample)]
        except csv.Error as error:
            raise ValueError(_unreadable(path, error)) from error
        # The sample may end in the middle of a row.
        body = rows[1:-1] if len(text) > SAMPLE and len(rows) > 2 else rows[1:]
        fit = sum(len(row) == len(rows[0]) for row in body) / max(len(body), 1)
        if layout.separator == " " and body and fit < 0.5:
            continue  # one column of texts
        if fit > best_fit and (len(rows[0]) > 1 or not body):
            names = tuple(name.strip() for name in rows[0])
            best, best_fit = replace(layout, names=names), fit
    _check_header(best.names, path)
    return best


def _check_header(names: tuple[str, ...], path: str) -> None:
    if all(map(is_number_text, names)) and names != tuple(map(str, range(len(names)))):
        raise ValueError(
            f"{path} starts with numbers ({', '.join(names)[:40]}) in place of column names; add a "
            "first line with names"
        )
    check_names(names, path)


def _unreadable(path: str, error: csv.Error) -> str:
    return f"{path} cannot be read as CSV ({error}); correct the file"
