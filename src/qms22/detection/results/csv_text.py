"""Tables as CSV that no spreadsheet runs or splits in another way.

`csvCell` in the scripts of the page follows the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from qms22.tables.texts.words import FORMULA_STARTS, NUMBER

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = re.compile(NUMBER, re.ASCII)
# In many countries spreadsheets split lines at semicolons. A carriage return alone ends a line.
_QUOTED = re.compile(r'[",;\t\r\n]')
# Rows whose cells are texts at a time: these take more memory than their values.
ROWS_AT_ONCE = 1 << 12


def csv_lines(table: pd.DataFrame, *, header: bool = True) -> Iterator[str]:
    """Yield the lines of a table, each with its end."""
    if header:
        yield _line([csv_cell(str(name)) for name in table.columns])
    # The dates of a column are written alike: without a time if none of them has one.
    dates = {
        at: _texts(table.iloc[:, at]) for at, kind in enumerate(table.dtypes) if kind.kind == "M"
    }
    for first in range(0, len(table), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        columns = [
            dates[at][rows] if at in dates else _texts(table.iloc[rows, at])
            for at in range(table.shape[1])
        ]
        yield from map(_line, zip(*columns, strict=True))


def csv_cell(text: str, *, is_quoted: bool = False) -> str:
    """Return a text as a cell, with an apostrophe if a spreadsheet would run it as a formula.

    >>> csv_cell("=1+1"), csv_cell("-5"), csv_cell("a;b")
    ("'=1+1", '-5', '"a;b"')
    """
    safe = f"'{text}" if text.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(text) else text
    if not is_quoted and not _QUOTED.search(safe):
        return safe
    return '"{}"'.format(safe.replace('"', '""'))


def _line(cells: tuple[str, ...] | list[str]) -> str:
    # Readers leave out empty lines, so a single empty cell is quoted.
    return (",".join(cells) or '""') + "\n"


def _texts(column: pd.Series) -> list[str]:
    """Return the cells of a column; missing ones are empty."""
    texts = column.astype(str) if column.dtype.kind in "iufbM" else column.map(str)
    cells = texts.astype(object).where(column.notna(), "")
    return cells.tolist() if column.dtype.kind in "iuf" else list(map(csv_cell, cells))
