"""Reader of table files: CSV and its kin, Parquet, Arrow, ARFF and KEEL."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from qms22._runtime.packages import need
from qms22.tables.csv_text import SAMPLE, check_names, read_csv
from qms22.tables.keel_format import read_dat

PARQUET = (".parquet", ".pq", ".parq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv")
PACKED = (".gz", ".bz2", ".xz", ".zst")
# How files start that people take for tables.
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
# pandas writes row labels without a name into such a column.
_ROW_LABELS = re.compile(r"__index_level_\d+__")
BATCH = 1 << 16
UTF16 = (b"\xff\xfe", b"\xfe\xff")

EMPTY = "{path} is empty; give a file with a header and rows"
NOT_UTF16 = "{path} starts as UTF-16 text but is not ({reason}); save it as UTF-8"


def read_table(path: str | Path) -> Any:
    r"""Read a table from a file.

    The format is that of the file's ending or, where that says nothing, of its content. Any file
    may be compressed by gzip, bzip2, xz or zstandard.

    A text file needs a header. Its cells may be separated by commas, semicolons, tabs, bars or
    blanks, and be quoted; numbers may have decimal commas where commas do not separate. It may be
    UTF-8, UTF-16 (with its mark) or Windows-1252 (Latin-1). Columns of nothing but numbers become
    numbers, unless one starts with a needless zero as codes do; columns of true and false become
    booleans; all others, dates too, stay the texts they are. Empty cells, ``?`` and words such as
    ``NA`` and ``null`` are missing. A first column without a name holds row numbers and is left
    out.

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
    path = Path(path).expanduser()
    with open_unpacked(path) as stream:
        content = stream.read()
    if is_blank(content):
        raise ValueError(EMPTY.format(path=path))
    kind = table_format(content, path)
    if kind == "parquet":
        return _from_arrow(_read_parquet(content, path), path)
    if kind == "arrow":
        return _from_arrow(_read_arrow(content, path), path)
    text = _decode(content, path)
    return _read_keel(text, path) if kind == "keel" else read_csv(text, str(path))


class Unpacked:
    """A file's content as it was before it was compressed, if it was.

    Parameters
    ----------
    file : binary file
    path : Path
        The name to use in messages.
    """

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._path = path
        self._stream: Any = file
        start = file.peek(6)[:6]  # endings lie
        if start.startswith(b"\x1f\x8b"):
            self._stream = gzip.GzipFile(fileobj=file)
        elif start.startswith(b"BZh"):
            self._stream = bz2.BZ2File(file)
        elif start == b"\xfd7zXZ\x00":
            self._stream = lzma.LZMAFile(file)  # noqa: SIM115 - the file is closed, that is enough
        elif start.startswith(b"\x28\xb5\x2f\xfd"):
            pa = need("pyarrow", str(path))
            self._stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
        self.is_packed = self._stream is not file

    def read(self, size: int = -1) -> bytes:
        """Read all that is left, or at most `size` bytes."""
        try:
            content: bytes = self._stream.read(None if size < 0 else size)
        except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
            if not self.is_packed:
                raise ValueError(_unread(self._path, error)) from error
            raise ValueError(
                f"{self._path} cannot be decompressed ({shortened(error)}); the file looks "
                "truncated, get it anew"
            ) from error
        return content


@contextmanager
def open_unpacked(path: Path) -> Iterator[Unpacked]:
    """Open a file to read its content, decompressed."""
    if path.is_dir():
        raise ValueError(f"{path} is a directory; give a file in it")
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {str(path)!r}; correct the path") from error
    except (OSError, ValueError) as error:
        raise ValueError(_unread(path, error)) from error
    with file:
        yield Unpacked(file, path)


def _unread(path: Path, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else error
    return f"{path} cannot be read ({reason}); give a readable file"


def is_blank(content: bytes) -> bool:
    """Whether nothing is to be seen in a text."""
    return not content.strip(b" \t\r\n\xef\xbb\xbf")


def table_format(content: bytes, path: Path) -> str:
    """Tell the format of a file from its ending, or from how it starts."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in PACKED:
        endings.pop()
    ending = endings[-1] if endings else ""
    head = content[:SAMPLE]
    is_binary = bool(_CONTROL.search(head))
    is_keel = re.match(rb"(\xef\xbb\xbf)?(\s|%[^\n\r]*[\n\r])*@\w", head) is not None
    if ending in PARQUET or (ending not in TEXT and is_binary and head.startswith(b"PAR1")):
        return "parquet"
    # A stream of Arrow batches starts with a marker and the length of its schema.
    starts = (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")
    if ending in ARROW or (ending not in TEXT and is_binary and head.startswith(starts)):
        return "arrow"
    # Others than KEEL name tables .dat as well.
    return "keel" if ending == ".arff" or (ending not in TEXT and is_keel) else "csv"


def _decode(content: bytes, path: Path) -> str:
    if content.startswith(UTF16):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise ValueError(NOT_UTF16.format(path=path, reason=error.reason)) from error
    check_text(content, path)
    content = content.rstrip(b"\x1a")  # DOS ended files so
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1")


def check_text(content: bytes, path: Path, *, is_start: bool = True) -> None:
    """Refuse what is no text, judging by zeros anywhere, and by how it starts."""
    head = content[:SAMPLE] if is_start else b""
    foreign = next((what for start, what in _FOREIGN.items() if head.startswith(start)), None)
    if foreign or b"\x00" in content or _CONTROL.search(head):
        raise ValueError(
            f"{path} is {foreign or 'binary, not text'}; give a CSV, Parquet, Arrow, ARFF or KEEL "
            "file"
        )


def _read_keel(text: str, path: Path) -> Any:
    table = read_dat(text.encode(), str(path))
    check_names(table.names, str(path))
    columns = dict(zip(table.names, table.columns, strict=True))
    return need("pandas", str(path)).DataFrame(columns)


def _read_parquet(content: bytes, path: Path) -> Any:
    """Read in batches: no more memory is asked for than there are values, whatever a footer says.

    Reading all at once would set aside room for the number of rows that the footer claims.
    """
    pa, parquet = need("pyarrow", str(path)), need("pyarrow.parquet", str(path))
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        n_rows, schema = file.metadata.num_rows, file.schema_arrow
        _check_claim(n_rows, len(schema), path)
        batches = list(file.iter_batches(batch_size=BATCH))
        table = pa.Table.from_batches(batches, schema if not batches else None)
    except _ClaimError as error:
        raise ValueError(str(error)) from error
    except (OSError, ValueError, MemoryError, TypeError, pa.ArrowException) as error:
        raise ValueError(
            f"{path} cannot be read as Parquet ({shortened(error)}); the file looks truncated or "
            "damaged, get it anew"
        ) from error
    if table.num_rows != n_rows:
        raise ValueError(
            f"{path} claims {n_rows} rows but holds {table.num_rows}; the file looks damaged, get "
            "it anew"
        )
    return table


class _ClaimError(Exception):
    """A file claims to hold what no memory could."""


def _check_claim(n_rows: int, n_columns: int, path: Path) -> None:
    if n_rows < 0:
        raise _ClaimError(f"{path} claims {n_rows} rows; the file looks damaged, get it anew")
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return
    if (size := n_rows * n_columns * 8) > memory:
        raise _ClaimError(
            f"{path} claims {n_rows} rows of {n_columns} columns, {size / 2**30:.0f} GiB where "
            f"this machine has {memory / 2**30:.0f}; get the file anew if it is damaged, or take "
            "fewer rows"
        )


def _read_arrow(content: bytes, path: Path) -> Any:
    pa, ipc = need("pyarrow", str(path)), need("pyarrow.ipc", str(path))
    source = pa.BufferReader(content)
    try:
        is_file = content.startswith(b"ARROW1")
        table = (ipc.open_file(source) if is_file else ipc.open_stream(source)).read_all()
        # Offsets of a damaged file may point anywhere.
        table.validate(full=True)
    except (OSError, ValueError, MemoryError, TypeError, pa.ArrowException) as error:
        raise ValueError(
            f"{path} cannot be read as Arrow or Feather ({shortened(error)}); the file looks "
            "truncated or damaged, get it anew"
        ) from error
    return table


def _from_arrow(table: Any, path: Path) -> Any:
    names = table_columns(table.schema, path)
    if not table.num_rows or not names:
        raise ValueError(
            f"{path} has {table.num_rows} rows of {len(names)} columns; give a file with at "
            "least one row"
        )
    return to_frame(table.select(names), path)


def table_columns(schema: Any, path: Path) -> list[str]:
    """Name the columns of an Arrow table, but for row labels."""
    names = [name for name in schema.names if not _ROW_LABELS.fullmatch(name)]
    check_names(tuple(names), str(path))
    return names


def to_frame(table: Any, path: Path) -> Any:
    """Turn an Arrow table into a data frame."""
    try:
        # The metadata are pandas' own notes, as damaged or outdated as they may be.
        return table.replace_schema_metadata(None).to_pandas(ignore_metadata=True)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(
            f"{path} holds values that pandas cannot take ({shortened(error)}); the file may be "
            "damaged, get it anew or leave out such columns"
        ) from error


def shortened(error: BaseException) -> str:
    """Shorten what a library says to a part of one sentence."""
    sentence = " ".join(str(error).split()).split(". ")[0]
    return sentence.rstrip(".")[:160] or type(error).__name__
