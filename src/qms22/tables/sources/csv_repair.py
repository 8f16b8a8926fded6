"""Lines of a table that are no rows (sums, remarks), and rows with too many or too few cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from qms22.tables.sources.csv_dialect import LINE, Dialect
from qms22.tables.sources.header import is_value, left_out
from qms22.tables.texts.words import CSV_MISSING, NA

_LETTER = re.compile(r"[^\W\d_]")
_SUMMARY = re.compile(
    r"((grand|sub|over ?all) ?-?)?(totals?|sums?|averages?|mean|count|summen?|gesamt(summe)?"
    r"|insgesamt|mittelwert|totale?s?|somme|suma|moyenne|итого)\b[^,;]{0,20}",
    re.IGNORECASE,
)
# Rows at the end of a table in which remarks are looked for; a longer text is part of it.
MOST_FOOTER = 20
# With a larger share of irregular rows than this the file is ambiguous, and is refused.
_MOST_SHORT, _MOST_LONG = 0.5, 0.2
_SUM = (
    r"(?:grand|sub|over ?all|zwischen|teil|end)?[ -]?"
    r"(?:totals?|sums?|summen?|gesamt(?:summe)?|ergebnis|totale|somme|suma|subtotales?|итого)"
)
# "Subtotal week 12", or "North total" as Excel writes it.
_LABEL = re.compile(rf"{_SUM}\b[^,;]{{0,20}}|[^,;]{{1,30}} {_SUM}\W?", re.IGNORECASE)
# A label, a number, and an empty cell that tells a sum from other rows.
LEAST_COLUMNS = 3
# Where rows with sums are, in a note.
SUMS = "with sums between the others"


def is_sum(cells: Sequence[str | None]) -> bool:
    """Return whether a row has nothing but a word such as "Subtotal", and numbers.

    >>> is_sum(["Subtotal week", None, None, "$ 11,775.22"])
    True
    >>> is_sum(["Subtotal week", None, "Berlin", "$ 11,775.22"])
    False
    """
    label, *others = [cell.strip() for cell in cells if cell is not None and cell.strip()] or [""]
    return bool(others) and _LABEL.fullmatch(label) is not None and all(map(is_value, others))


def find_sums(
    filled: NDArray[np.intp], cells_of: Callable[[int], Sequence[str | None]]
) -> dict[int, tuple[int, str]]:
    """Return which rows look like sums of others, with the places and texts of their labels.

    Such a row has at most half of the cells that rows usually have; `filled` are their numbers. Its
    label must be in no other row, too.
    """
    found = {}
    for at in np.flatnonzero(filled <= np.median(filled) / 2).tolist():
        cells = cells_of(at)
        if is_sum(cells):
            found[at] = next((n, cell) for n, cell in enumerate(cells) if cell)
    return found


def _sum_rows(batch: pa.RecordBatch) -> dict[int, str]:
    """Return the positions of sums between rows of texts, and their labels."""
    filled = _count_filled(batch)
    if filled is None:
        return {}
    found = find_sums(filled, lambda at: [column[at].as_py() for column in batch.columns])
    kept = np.delete(np.arange(batch.num_rows), [*found])
    others = {n: set(pc.unique(batch.column(n).take(kept)).to_pylist()) for n, _ in found.values()}
    return {at: label for at, (n, label) in found.items() if label not in others[n]}


def _count_filled(batch: pa.RecordBatch) -> NDArray[np.intp] | None:
    """Return the number of cells in each row; None if no row can have few of them."""
    with_gaps = [column for column in batch.columns if column.null_count]
    n_full = batch.num_columns - len(with_gaps)
    if batch.num_columns < LEAST_COLUMNS or n_full > batch.num_columns / 2:
        return None
    filled = np.full(batch.num_rows, n_full)
    for column in with_gaps:
        filled += column.is_valid().to_numpy(zero_copy_only=False)
    return filled


def find_footer(tail: str, dialect: Dialect) -> str:
    """Return the footer of a text, which is no part of the table; empty if there is none.

    A footer has empty rows, sums ("Total,,,123") and remarks ("Exported on 1 May"), which have one
    cell with words. `tail` has the last rows of the table.
    """
    if len(dialect.names) < 2:
        return ""
    lines = LINE.findall(tail)
    rows = [_row_of(line, dialect) for line in lines[1:]]
    header = [cell.strip() for cell in dialect.header]
    return "".join(lines[1 + end_of_rows(rows, len(dialect.names), header) :])


def end_of_rows(
    rows: Sequence[list[str] | None], width: int, header: list[str] | None = None
) -> int:
    """Return where the footer begins among the last rows of a table of some width.

    Cells have no blanks around them. Where the header is there again, it is left out anyway.
    """
    first = len(rows)
    for at in range(len(rows) - 1, max(len(rows) - MOST_FOOTER, 0) - 1, -1):
        row = rows[at]
        if row is None or (row != header and not _is_footer(row, rows[:at], width)):
            break
        first = first if row == header else at
    return first


def _row_of(line: str, dialect: Dialect) -> list[str] | None:
    """Return the cells of a line; None if it may belong to a cell with several lines."""
    if line.count('"') % 2:
        return None
    rows = list(dialect.rows([line]))
    return [cell.strip() for cell in rows[0][1]] if rows else []


def _is_footer(row: list[str], before: Sequence[list[str] | None], width: int) -> bool:
    """Return whether a row at the end, below others, is no part of the table."""
    filled = [at for at, cell in enumerate(row) if cell]
    if not filled:
        return True
    text = row[filled[0]]
    if len(filled) == 1 and _has_words(text):
        # A row may have lost all cells but its name, which rarely has blanks.
        return len(row) < width or " " in text
    if not _SUMMARY.fullmatch(text):
        return False
    same = [other for other in before if other and len(other) > filled[0]]
    return not any(other[filled[0]].lower() == text.lower() for other in same)


def _has_words(text: str) -> bool:
    return _LETTER.search(text) is not None and not is_value(text)


def footer_note(footer: str, path: str) -> str:
    """Return a sentence about lines that were left out at the end; empty if none had cells."""
    lines = [line.strip() for line in footer.splitlines() if line.strip()]
    if not lines:
        return ""
    words = next((line for line in lines if re.search(r"\w", line)), "")
    where = "below the table" if words else "without any text at the end"
    return left_out(path, len(lines), "line", where, words)


class Repair:
    """Leaves out repeated headers, sums and remarks, and makes all rows as wide as the header.

    Remarks between the rows are those of files put together; they are one cell with several words.
    Rows that are too short get missing cells at the end. In rows that are too long, cells are
    joined where only one place leaves numbers in columns of numbers, or else at the end.
    """

    def __init__(self, dialect: Dialect, path: str) -> None:
        self._dialect = dialect
        self._path = path
        self._n_headers = self._n_rows = 0
        self._remarks: list[int] = []
        self._short: list[int] = []
        self._long: list[int] = []
        self.sums: list[str] = []

    def plain_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch of texts without headers and sums."""
        batch = self._without_headers(batch)
        sums = _sum_rows(batch)
        self.sums += sums.values()
        return batch.take(np.delete(np.arange(batch.num_rows), [*sums])) if sums else batch

    def equal_rows(self, rows: Iterable[tuple[int, list[str]]]) -> Iterator[list[str]]:
        """Return rows of equal width.

        `rows` come with the line they are in, counted from the first one below the header. Raise
        ValueError at the end if too many rows have another width than the header.
        """
        width, header = len(self._dialect.names), list(self._dialect.header)
        for line, row in rows:
            if row == header:
                self._n_headers += 1
                continue
            self._n_rows += 1
            if len(row) == width:
                yield row
            elif len(row) == 1 < width and " " in row[0].strip() and _has_words(row[0]):
                self._remarks.append(self._dialect.n_lines + line)
            elif len(row) < width:
                self._short.append(self._dialect.n_lines + line)
                yield row + [""] * (width - len(row))
            else:
                yield self._joined(row, self._dialect.n_lines + line)
        self._check(self._short, _MOST_SHORT, "fewer")
        # Cells of a single column can only be joined in one way.
        self._check(self._long, _MOST_LONG if width > 1 else 1, "more")

    def notes(self) -> list[str]:
        """Return sentences about what was changed."""
        notes = []
        if self._n_headers:
            again = "once more" if self._n_headers == 1 else f"{self._n_headers} times more"
            notes.append(f"{self._path} has its header {again} between the rows; left out there")
        if self._remarks:
            notes.append(f"{self._path}: {_lines(self._remarks)} words in place of a row; left out")
        if self._short:
            notes.append(
                f"{self._path}: {_lines(self._short)} fewer cells than the header; the last ones "
                "are taken for missing"
            )
        if self._long:
            notes.append(
                f"{self._path}: {_lines(self._long)} more cells than the header; a separator "
                "inside a cell is taken for the cause, and cells are joined"
            )
        if self.sums:
            notes.append(left_out(self._path, len(self.sums), "row", SUMS, self.sums[0]))
        return notes

    def _without_headers(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if len(self._dialect.header) != batch.num_columns:
            return batch
        found = pa.array(np.ones(batch.num_rows, dtype=bool))
        for column, name in zip(batch.columns, self._dialect.header, strict=True):
            is_name = column.is_null() if name in CSV_MISSING - {NA} else pc.equal(column, name)
            found = pc.and_(found, pc.fill_null(is_name, False))
            if not pc.any(found).as_py():  # most often after the first column
                return batch
        self._n_headers += pc.sum(found).as_py()
        return batch.filter(pc.invert(found))

    def _joined(self, row: list[str], line: int) -> list[str]:
        width, mark = len(self._dialect.names), self._dialect.separator
        while len(row) > width and not row[-1].strip():
            row = row[:-1]
        n_more = len(row) - width
        if not n_more:
            return row
        self._long.append(line)
        joined = [
            [*row[:at], mark.join(row[at : at + n_more + 1]), *row[at + n_more + 1 :]]
            for at in range(width)
        ]
        fitting = [cells for cells in joined if self._fits(cells)]
        return fitting[0] if len(fitting) == 1 else joined[-1]

    def _fits(self, cells: list[str]) -> bool:
        pairs = zip(cells, self._dialect.are_values, strict=True)
        return all(is_value(cell) == is_column for cell, is_column in pairs if cell.strip())

    def _check(self, lines: list[int], most: float, what: str) -> None:
        if len(lines) > max(most * self._n_rows, 1):
            raise ValueError(
                f"{self._path}, line {lines[0]}: the row has {what} cells than the header, which "
                f"has {len(self._dialect.names)}, and so have {len(lines)} of {self._n_rows} rows; "
                "correct these lines"
            )


def _lines(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]} has"
    return f"{len(lines)} lines (the first is line {lines[0]}) have"
