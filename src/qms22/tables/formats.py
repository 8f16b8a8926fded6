"""The format of a table file, and the source that reads it."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

from qms22.tables.arrow_source import ArrowSource, ArrowStreamSource
from qms22.tables.compressed import COMPRESSED, TableFile
from qms22.tables.csv_source import CsvSource
from qms22.tables.frame_source import FrameSource
from qms22.tables.keel_source import KeelSource
from qms22.tables.parquet_source import ParquetSource
from qms22.tables.source import FileSource, TableSource
from qms22.tables.text_encoding import SAMPLE, looks_binary

PARQUET = (".parquet", ".pq", ".parq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv")
KEEL = (".arff", ".dat")
_KEEL_START = re.compile(rb"(\xef\xbb\xbf)?(\s|%[^\n\r]*[\n\r])*@\w")
# A stream of Arrow batches starts with a marker and the length of its schema.
_ARROW_STARTS = (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")


def open_table(table: str | Path | TableSource | Any) -> TableSource:
    r"""Open a table to read it whole or in parts.

    Parameters
    ----------
    table : str, Path, data frame or TableSource
        A file of any format that `read_table` reads, a pandas or polars frame or another one that
        narwhals supports, or a source, which is returned unchanged. ARFF and KEEL files, compressed
        Parquet and Arrow files, and pipes are read into memory as a whole; a pipe at once.

    Returns
    -------
    TableSource

    Raises
    ------
    ValueError
        As in `read_table`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from qms22.tables import open_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "squares.csv")
    ...     _ = path.write_text("x,y\n1,1\n2,4\n3,9\n")
    ...     source = open_table(path)
    ...     source.n_rows, source.take([0, 2])["y"].tolist()
    (3, [1, 9])
    """
    if isinstance(table, TableSource):
        return table
    if not isinstance(table, str | os.PathLike):
        return FrameSource(table)
    file = TableFile(Path(table).expanduser())
    with file.open() as stream:
        head = stream.read(SAMPLE)
    if len(head) < SAMPLE and not head.strip(b" \t\r\n\xef\xbb\xbf"):
        raise ValueError(f"{file.path} is empty; give a file with a header and rows")
    source = _source_class(head, split_suffix(file.path)[1])
    if file.is_compressed and source not in (CsvSource, KeelSource):
        file.load()  # these formats are not read from start to end
    return source(file)


def read_table(path: str | Path) -> Any:
    r"""Read a table from a file.

    The format is given by the file's suffix or, if that is unknown, by its content. Any file may be
    compressed by gzip, bzip2, xz or zstandard.

    The cells of a text file may be separated by commas, semicolons, tabs, bars or blanks, and be
    quoted; numbers may have decimal commas if commas do not separate. It may be UTF-8, UTF-16 or
    Windows-1252 (Latin-1). Columns of numbers become numbers, unless one starts with a needless
    zero as codes do; columns of true and false become booleans; all others, dates too, stay texts.
    Empty cells, ``?`` and words such as ``NA`` and ``null`` are missing.

    What is not a table in a text file is left out: titles above the names, the names where they
    occur again, sums and remarks below. Rows with too few cells get missing ones at the end; if a
    row has too many, a separator belongs to a cell. Columns with the name of another one get a
    number, those without a name are called "column 3", and "x1", "x2", … where no column has one; a
    first one without a name that holds whole numbers is left out. A warning says so each time; it
    is also in ``open_table(path).notes``.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv, .parquet, .arrow, .feather, .arff or KEEL .dat file.

    Returns
    -------
    pandas.DataFrame
        At least one row, its index counting from 0.

    Raises
    ------
    ValueError
        If there is no such file, or it holds no table; the message is one sentence that names it.
    ImportError
        If pandas or pyarrow is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from qms22.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("name;height\nAnn;1,7\nBob;1,8\n")
    ...     frame = read_table(path)
    >>> frame["height"].tolist()
    [1.7, 1.8]
    """
    source = open_table(path)
    frame = source.read()
    warn_of_notes(source)
    return frame


def warn_of_notes(source: TableSource) -> None:
    """Warn of what was guessed or left out to read a table."""
    for note in source.notes:
        warnings.warn(note, stacklevel=3)


def split_suffix(path: Path) -> tuple[str, str]:
    """Return a file's name without suffix, and its suffix, both without that of a compression."""
    name = Path(path.name)
    if name.suffix.lower() in COMPRESSED:
        name = Path(name.stem)
    return name.stem, name.suffix.lower()


def _source_class(head: bytes, suffix: str) -> type[FileSource]:
    """Return the class that reads a format, chosen by the suffix or the start of the content."""
    has_own_start = suffix not in TEXT
    is_binary = has_own_start and looks_binary(head)
    if suffix in PARQUET or (is_binary and head.startswith(b"PAR1")):
        return ParquetSource
    if suffix in ARROW or (is_binary and head.startswith(_ARROW_STARTS)):
        return ArrowSource if head.startswith(b"ARROW1") else ArrowStreamSource
    # Tables of other formats are called .dat too.
    if suffix == ".arff" or (has_own_start and _KEEL_START.match(head)):
        return KeelSource
    return CsvSource
