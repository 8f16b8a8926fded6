"""Reader of delimited text: what separates the cells is found out, nothing is guessed silently."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

from qms22.datasets._columns import MISSING
from qms22.datasets._labels import is_number_text
from qms22.tabular._needs import need

# In this order, as a comma is the most likely to stand inside a name; blanks only where a header
# has none of these.
SEPARATORS = "\t;|,"
SAMPLE = 1 << 18
# As pandas has it, and as KEEL and ARFF have it.
MISSING_CELLS = sorted(
    {"#N/A", "N/A", "n/a", "NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT"}
    | MISSING
)
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$|^\s*[+-]?(?i:inf|infinity)\s*$"
_WHOLE = r"^\s*-?\d{1,18}\s*$"
_COMMA_NUMBER = r"^\s*[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?\s*$"
# "007" is a code, and 7 would be another one.
_LEADING_ZERO = r"^\s*[+-]?0\d"
_HEADER = re.compile(r'(?:"[^"]*"|[^"\r\n])*(?=[\r\n]|$)')  # names in quotes may have line breaks
_FIRST_LINE = re.compile(r"[^\r\n]*")
_BOOLEAN = r"^(True|False|true|false|TRUE|FALSE)$"


@dataclass(frozen=True)
class Dialect:
    """How a file is laid out.

    Parameters
    ----------
    separator : str
    skips_blanks : bool
        Whether blanks after a separator do not count.
    names : tuple of str
        The cells of the header.
    """

    separator: str
    skips_blanks: bool
    names: tuple[str, ...]

    def rows(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Give the rows that are not empty, each with the line it ends on."""
        if self.separator == " ":
            # Not str.splitlines, which also splits at characters that are letters in Latin-1.
            text = "\n".join(line.strip(" ") for line in re.split(r"\r\n|\r|\n", text))
        lines = csv.reader(
            StringIO(text, newline=""),
            delimiter=self.separator,
            skipinitialspace=self.skips_blanks,
        )
        return ((lines.line_num, row) for row in lines if row)


def sniff(text: str, path: str) -> Dialect:
    """Find out what separates the cells of a file, from its first rows.

    Of the separators in the header the first one that gives every row as many cells as the header
    is taken, else the one that does so for most rows: the reader then names the row that differs.
    """
    sample = text[:SAMPLE]
    first = _HEADER.match(sample.lstrip("\r\n")) or _FIRST_LINE.match(sample.lstrip("\r\n"))
    header = first[0].strip(" ") if first else ""
    found = [mark for mark in SEPARATORS if mark in header] or [" "] * (" " in header)
    layouts = [Dialect(mark, mark == " " or mark + " " in header, ()) for mark in found]
    # Without any separator there is one column.
    best, best_fit = Dialect(",", False, (header.strip('"'),)), -1.0
    for layout in layouts:
        try:
            rows = [row for _, row in layout.rows(sample)]
        except csv.Error as error:
            raise ValueError(f"{path} cannot be read as CSV ({error}); correct the file") from error
        # The sample may end in the middle of a row.
        body = rows[1:-1] if len(text) > SAMPLE and len(rows) > 2 else rows[1:]
        fit = sum(len(row) == len(rows[0]) for row in body) / max(len(body), 1)
        if layout.separator == " " and body and fit < 0.5:
            continue  # one column of texts
        if fit > best_fit and (len(rows[0]) > 1 or not body):
            names = tuple(name.strip() for name in rows[0])
            best, best_fit = replace(layout, names=names), fit
    return best


def read_csv(text: str, path: str) -> Any:
    """Read delimited text.

    Columns in which every cell is a number, or true or false, become so; all others stay the texts
    they are.

    Parameters
    ----------
    text : str
    path : str
        The name to use in messages.

    Returns
    -------
    pandas.DataFrame
    """
    dialect = sniff(text, path)
    _check_header(dialect.names, path)
    table = _parse(text, dialect, path)
    if not table.num_rows:
        raise ValueError(
            f"{path} has a header but no rows; give a file with at least one row below the names"
        )
    columns = dict(zip(dialect.names, table.columns, strict=True))
    if "" in columns:
        _check_unnamed(columns.pop(""), dialect.names.index(""), path)
    has_commas = dialect.separator != "," and _has_decimal_commas(list(columns.values()))
    pa = need("pyarrow", path)
    typed = {name: _settle(column, has_commas) for name, column in columns.items()}
    return pa.table(typed).to_pandas()


def _check_header(names: tuple[str, ...], path: str) -> None:
    if all(map(is_number_text, names)) and names != tuple(map(str, range(len(names)))):
        raise ValueError(
            f"{path} starts with numbers ({', '.join(names)[:40]}) in place of column names; add a "
            "first line with names"
        )
    check_names(names, path)


def check_names(names: tuple[str, ...], path: str) -> None:
    """Refuse names that occur twice."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        what = f"columns named {name!r}" if name else "columns without a name"
        raise ValueError(f"{path} has {count} {what}; give each column a name of its own")


def _check_unnamed(column: Any, at: int, path: str) -> None:
    """Refuse a column without a name, but for row numbers, and for what trailing separators make.

    pandas writes the numbers of the rows into such a first column.
    """
    if at > 0 and column.null_count < len(column):
        raise ValueError(f"column {at + 1} of {path} has no name; add one to the first line")


def _parse(text: str, dialect: Dialect, path: str) -> Any:
    """Split into columns of texts, with nothing for missing cells."""
    pa, arrow_csv = need("pyarrow", path), need("pyarrow.csv", path)
    separator = dialect.separator
    source = _rewrite(text, dialect, path) if dialect.skips_blanks else text
    if dialect.skips_blanks:
        separator = "\t"
    names = [str(at) for at in range(len(dialect.names))]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(_without_header(source, separator).encode()),
            # Threads would make no row of an error known; a large block lets a row be as wide.
            read_options=arrow_csv.ReadOptions(
                column_names=names, block_size=1 << 26, use_threads=False
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                null_values=MISSING_CELLS,
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return pa.table({name: pa.array([], pa.string()) for name in names})
        _name_ragged(text, dialect, path)
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} cannot be read as CSV ({reason}); correct the file") from error
    if text.count('"') % 2 and table.num_rows and "\n" in str(table.columns[-1][-1]):
        raise ValueError(
            f"{path} has a quotation mark that opens a cell and is never closed; close or remove it"
        )
    return table


def _without_header(text: str, separator: str) -> str:
    """Cut off the first row that is not empty, which may hold line breaks in quotes."""
    start = StringIO(text[: 64 * SAMPLE], newline="")
    rows = csv.reader(iter(start.readline, ""), delimiter=separator)
    for row in rows:
        if row:
            break
    return text[start.tell() :]


def _rewrite(text: str, dialect: Dialect, path: str) -> str:
    """Write with tabs what has blanks between or before the cells."""
    _name_ragged(text, dialect, path)
    rewritten = StringIO(newline="")
    csv.writer(rewritten, delimiter="\t").writerows(row for _, row in dialect.rows(text))
    return rewritten.getvalue()


def _name_ragged(text: str, dialect: Dialect, path: str) -> None:
    """Raise for the first row that has not as many cells as the header."""
    width = len(dialect.names)
    try:
        for line, row in dialect.rows(text):
            if len(row) != width:
                raise ValueError(
                    f"{path}, line {line}: the row has {len(row)} cells where the header has "
                    f"{width}; correct that line"
                )
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}); correct the file") from error


def _has_decimal_commas(columns: list[Any]) -> bool:
    """Whether some column has numbers such as 1,5 and none has numbers such as 1.5."""
    with_commas = [
        column for column in columns if _any(column, ",") and _all(column, _COMMA_NUMBER)
    ]
    with_points = any(_any(column, r"\.") and _all(column, _NUMBER) for column in columns)
    return bool(with_commas) and not with_points


def _settle(column: Any, has_commas: bool) -> Any:
    """Turn a column of texts into what all its cells are."""
    pa = need("pyarrow")
    compute = need("pyarrow.compute")
    if column.null_count == len(column):
        return column.cast(pa.float64())
    if has_commas and _all(column, _COMMA_NUMBER):
        column = compute.replace_substring(column, ",", ".")
    if not _all(column, _NUMBER) or _any(column, _LEADING_ZERO):
        is_boolean = column.null_count == 0 and _all(column, _BOOLEAN)
        return column.cast(pa.bool_()) if is_boolean else column
    is_whole = column.null_count == 0 and _all(column, _WHOLE)
    return compute.utf8_trim_whitespace(column).cast(pa.int64() if is_whole else pa.float64())


def _all(column: Any, pattern: str) -> bool:
    """Whether all cells that are there match."""
    compute = need("pyarrow.compute")
    return compute.all(compute.match_substring_regex(column, pattern)).as_py() is not False


def _any(column: Any, pattern: str) -> bool:
    """Whether any cell matches."""
    compute = need("pyarrow.compute")
    return compute.any(compute.match_substring_regex(column, pattern)).as_py() is True
