"""Reader of delimited text: what separates the cells is found out, nothing is guessed silently."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, Literal, TextIO

from qms22._runtime.packages import need
from qms22.tables.columns import MISSING
from qms22.tables.labels import is_number_text

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

NO_ROWS = "{path} has a header but no rows; give a file with at least one row below the names"
NEVER_CLOSED = (
    "{path} has a quotation mark that opens a cell and is never closed; close or remove it"
)

CellKind = Literal["text", "boolean", "whole", "float", "comma float"]


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

    @property
    def parsed_separator(self) -> str:
        """The separator once blanks that do not count are gone."""
        return "\t" if self.skips_blanks else self.separator

    def rows(self, text: str | TextIO) -> Iterator[tuple[int, list[str]]]:
        """Give the rows that are not empty, each with the line it ends on.

        Parameters
        ----------
        text : str or text stream
            A stream must leave the ends of lines as they are.
        """
        lines: Iterable[str] = StringIO(text, newline="") if isinstance(text, str) else text
        if self.separator == " ":
            lines = (line.rstrip("\r\n").strip(" ") + "\n" for line in lines)
        reader = csv.reader(lines, delimiter=self.separator, skipinitialspace=self.skips_blanks)
        return ((reader.line_num, row) for row in reader if row)


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
    check_header(dialect.names, path)
    table = _parse(text, dialect, path)
    if not table.num_rows:
        raise ValueError(NO_ROWS.format(path=path))
    traits = [Traits.of(column, dialect.separator) for column in table.columns]
    pa = need("pyarrow", path)
    types = settle(dialect, traits, path)
    columns = {
        name: convert(table.column(at), kind)
        for at, (name, kind) in enumerate(zip(dialect.names, types, strict=True))
        if name
    }
    return pa.table(columns).to_pandas()


def check_header(names: tuple[str, ...], path: str) -> None:
    """Raise ValueError if the first line holds numbers, or a name twice."""
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


def _parse(text: str, dialect: Dialect, path: str) -> Any:
    """Split into columns of texts, with nothing for missing cells."""
    pa, arrow_csv = need("pyarrow", path), need("pyarrow.csv", path)
    source = _rewrite(text, dialect, path) if dialect.skips_blanks else text
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(without_header(source, dialect.parsed_separator).encode()),
            # A large block lets a row be as wide.
            **parse_options(dialect, block_size=1 << 26, path=path),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            names = column_numbers(dialect)
            return pa.table({name: pa.array([], pa.string()) for name in names})
        raise unreadable(text, dialect, path, error) from error
    if text.count('"') % 2 and table.num_rows and "\n" in str(table.columns[-1][-1]):
        raise ValueError(NEVER_CLOSED.format(path=path))
    return table


def parse_options(
    dialect: Dialect, *, block_size: int, path: str, columns: list[str] | None = None
) -> dict[str, Any]:
    """Give the options by which pyarrow splits rows below a header into columns of texts.

    Parameters
    ----------
    dialect : Dialect
    block_size : int
        Bytes to read at once, and the most a row may have.
    path : str
        The name to use in messages.
    columns : list of str, optional
        Which of `column_numbers` are wanted; all where not given.
    """
    pa, arrow_csv = need("pyarrow", path), need("pyarrow.csv", path)
    names = column_numbers(dialect)
    return {
        # Threads would make no row of an error known.
        "read_options": arrow_csv.ReadOptions(
            column_names=names, block_size=block_size, use_threads=False
        ),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=dialect.parsed_separator, newlines_in_values=True
        ),
        "convert_options": arrow_csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in names},
            null_values=MISSING_CELLS,
            strings_can_be_null=True,
        ),
    }


def column_numbers(dialect: Dialect) -> list[str]:
    """Name the columns by their numbers, as names may be anything."""
    return [str(at) for at in range(len(dialect.names))]


def unreadable(text: str | TextIO, dialect: Dialect, path: str, error: Exception) -> ValueError:
    """Say what pyarrow could not read: the first row of another width, or else its own words."""
    try:
        for _ in checked_rows(text, dialect, path):
            pass
    except ValueError as ragged:
        return ragged
    reason = " ".join(str(error).split())[:200]
    return ValueError(f"{path} cannot be read as CSV ({reason}); correct the file")


def without_header(text: str, separator: str) -> str:
    """Cut off the first row that is not empty, which may hold line breaks in quotes."""
    start = StringIO(text[: 64 * SAMPLE], newline="")
    rows = csv.reader(iter(start.readline, ""), delimiter=separator)
    for row in rows:
        if row:
            break
    return text[start.tell() :]


def _rewrite(text: str, dialect: Dialect, path: str) -> str:
    """Write with tabs what has blanks between or before the cells."""
    rewritten = StringIO(newline="")
    csv.writer(rewritten, delimiter="\t").writerows(checked_rows(text, dialect, path))
    return rewritten.getvalue()


def checked_rows(text: str | TextIO, dialect: Dialect, path: str) -> Iterator[list[str]]:
    """Give the rows; raise for the first that has not as many cells as the header."""
    width = len(dialect.names)
    try:
        for line, row in dialect.rows(text):
            if len(row) != width:
                raise ValueError(
                    f"{path}, line {line}: the row has {len(row)} cells where the header has "
                    f"{width}; correct that line"
                )
            yield row
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}); correct the file") from error


@dataclass(frozen=True)
class Traits:
    """What the cells of a column are; traits of its parts add up to those of all of it.

    Parameters
    ----------
    n_cells, n_missing : int
    numbers, whole, comma_numbers, booleans : bool
        Whether all cells that are there are numbers, whole ones, numbers with decimal commas, or
        truth values. Where that no longer matters it is False.
    commas, points, leading_zeros : bool
        Whether some cell of nothing but numbers has one.
    """

    n_cells: int
    n_missing: int
    numbers: bool
    whole: bool
    comma_numbers: bool
    booleans: bool
    commas: bool
    points: bool
    leading_zeros: bool

    @classmethod
    def of(cls, column: Any, separator: str) -> Traits:
        """Look at a column of texts."""
        numbers = _all(column, _NUMBER)
        comma_numbers = separator != "," and _all(column, _COMMA_NUMBER)
        return cls(
            n_cells=len(column),
            n_missing=column.null_count,
            numbers=numbers,
            whole=numbers and _all(column, _WHOLE),
            comma_numbers=comma_numbers,
            booleans=not numbers and _all(column, _BOOLEAN),
            commas=comma_numbers and _any(column, ","),
            points=separator != "," and numbers and _any(column, r"\."),
            leading_zeros=(numbers or comma_numbers) and _any(column, _LEADING_ZERO),
        )

    def __add__(self, other: Traits) -> Traits:
        return Traits(
            n_cells=self.n_cells + other.n_cells,
            n_missing=self.n_missing + other.n_missing,
            numbers=self.numbers and other.numbers,
            whole=self.whole and other.whole,
            comma_numbers=self.comma_numbers and other.comma_numbers,
            booleans=self.booleans and other.booleans,
            commas=self.commas or other.commas,
            points=self.points or other.points,
            leading_zeros=self.leading_zeros or other.leading_zeros,
        )

    def kind(self, has_commas: bool) -> CellKind:
        """Tell what to turn the cells into; `has_commas` of the table, where commas do not part."""
        if self.n_missing == self.n_cells:
            return "float"
        with_commas = has_commas and self.comma_numbers
        if self.leading_zeros or not (self.numbers or with_commas):
            return "boolean" if self.booleans and not self.n_missing else "text"
        if self.whole and not self.n_missing:
            return "whole"
        return "comma float" if with_commas else "float"


def settle(dialect: Dialect, traits: list[Traits], path: str) -> list[CellKind]:
    """Tell what each column holds, from what is known of all its cells.

    A column without a name is refused, but for row numbers, which pandas writes into such a first
    column, and for what trailing separators make.
    """
    named = []
    for at, (name, found) in enumerate(zip(dialect.names, traits, strict=True)):
        if name:
            named.append(found)
        elif at > 0 and found.n_missing < found.n_cells:
            raise ValueError(f"column {at + 1} of {path} has no name; add one to the first line")
    # Some column has numbers such as 1,5 and none has numbers such as 1.5.
    with_commas = any(found.commas and found.comma_numbers for found in named)
    with_points = any(found.points and found.numbers for found in named)
    has_commas = dialect.separator != "," and with_commas and not with_points
    return [found.kind(has_commas) for found in traits]


def convert(column: Any, kind: CellKind) -> Any:
    """Turn texts into what `settle` says they are."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if kind == "text":
        return column
    if kind == "boolean":
        return column.cast(pa.bool_())
    if kind == "comma float":
        column = compute.replace_substring(column, ",", ".")
    return compute.utf8_trim_whitespace(column).cast(
        pa.int64() if kind == "whole" else pa.float64()
    )


def _all(column: Any, pattern: str) -> bool:
    """Whether all cells that are there match."""
    compute = need("pyarrow.compute")
    return compute.all(compute.match_substring_regex(column, pattern)).as_py() is not False


def _any(column: Any, pattern: str) -> bool:
    """Whether any cell matches."""
    compute = need("pyarrow.compute")
    return compute.any(compute.match_substring_regex(column, pattern)).as_py() is True
