"""Files of tables as bytes: decompressed, also out of zip archives."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import mmap
import os
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeAlias, cast
from zipfile import BadZipFile

import pyarrow as pa

from qms22._runtime.memory import MemoryBudget, memory_allowed
from qms22._runtime.stages import reading_ended, report_reading
from qms22.tables.sources.found_files import choose_tables
from qms22.tables.texts.words import list_quoted

# The estimated ratio of the sizes of a table's content and its compressed file.
_RATIO = 4
# A content that is so many times as large as its compressed file is refused if it is also larger
# than the memory that it may take; others go into a temporary file.
MOST_RATIO = 100
# Work on a table takes up to sixteen times the size of its values (benchmarks/memory_limit.py); of
# larger files, rows are kept in temporary ones.
SHARE_OF_MEMORY = 1 / 16
# Bytes of rows to hold at once: more save no time, and fewer take long.
_LEAST_AT_ONCE, _MOST_AT_ONCE = 1 << 20, 1 << 28
# Bytes to read at once, between two updates of the line that shows progress.
_BLOCK = 1 << 18
_LARGE_BLOCK = 1 << 24

Buffer: TypeAlias = "bytes | bytearray | mmap.mmap"
ZIP_START = b"PK\x03\x04"
# The usual remedy of files that cannot be read.
DAMAGED = "the file looks truncated or damaged, get it again"
# Files that are in every workbook of Excel and of OpenDocument.
_BOOK_FILES = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}


def bytes_at_once() -> int:
    """Return how many bytes of rows to hold at once where a table is read in parts."""
    return int(min(max(_room(), _LEAST_AT_ONCE), _MOST_AT_ONCE))


def _room() -> float:
    """Return how many bytes a content may have, so that work on all of it fits into memory."""
    allowed = memory_allowed()
    return math.inf if allowed is None else SHARE_OF_MEMORY * allowed


class TableFile:
    """A file whose content, decompressed, can be read any number of times.

    If the content is already in memory, `path` is only its name in messages.
    """

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = path
        self.content = content
        self.is_compressed = False
        self._n_kept = 0
        if content is None and os.path.exists(path) and not os.path.isfile(path):
            self.load()  # a pipe can be read only once

    @classmethod
    def standard_input(cls) -> TableFile:
        """Read standard input, compressed or not, which can be read only once."""
        path = Path("standard input")
        if sys.stdin.isatty():
            raise ValueError("nothing is piped into standard input; give a file in place of '-'")
        content = Decompressed(sys.stdin.buffer, path).read()
        if not content:
            raise ValueError("standard input is empty, or was read already; pipe one table into it")
        packed = _decompressing(BufferedReader(BytesIO(content)))
        return cls(path, Decompressed(packed, path).read())

    @property
    def n_bytes(self) -> int:
        """Size of the content, estimated if the file is compressed."""
        if self.content is not None:
            return len(self.content)
        ratio = _RATIO if self.is_compressed else 1
        return max(self.path.stat().st_size * ratio, self._n_kept)

    @property
    def is_large(self) -> bool:
        """Whether work on the content, in memory as a whole, might not fit there."""
        return self.n_bytes > _room()

    def load(self) -> None:
        """Read the content into memory and keep it."""
        with self.open() as stream:
            self.content = stream.read()

    def buffer(self) -> Buffer:
        """Read the content once; a large one is mapped into memory, not read."""
        if self.content is not None:
            return self.content
        with self.open() as stream:
            if self.is_large and isinstance(stream.file, BufferedReader):
                return mmap.mmap(stream.file.fileno(), 0, access=mmap.ACCESS_READ)
            return self.keep(iter(lambda: stream.read(_BLOCK), b""))

    def keep(self, pieces: Iterable[bytes]) -> Buffer:
        """Return pieces of a content as one; those of a large file are in a temporary file."""
        room = 0.0 if self.is_large else _room()
        rest, content = iter(pieces), bytearray()
        for piece in rest:
            content += piece
            if len(content) > room:
                break
        else:
            return content
        with tempfile.TemporaryFile() as file:
            file.writelines(chain([content], rest))
            file.flush()
            self._n_kept = file.tell()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @contextmanager
    def open(self) -> Iterator[Decompressed]:
        """Open the content for reading from its beginning."""
        if self.content is not None:
            yield Decompressed(BytesIO(self.content), self.path)
            return
        try:
            file = self.path.open("rb")
        except FileNotFoundError as error:
            raise ValueError(f"there is no file {str(self.path)!r}; correct the path") from error
        except (OSError, ValueError) as error:
            raise _unreadable(self.path, error) from error
        with file:
            content = _decompressing(file)
            self.is_compressed = content is not file
            size = os.fstat(file.fileno()).st_size
            sizes = (None, size) if self.is_compressed else (size, None)
            try:
                yield Decompressed(content, self.path, *sizes)
            finally:
                reading_ended()


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class Decompressed:
    """The content of an open file; faults are raised as ValueError with the path.

    `n_bytes` of content and `n_packed` of the compressed file are for the line that shows how much
    was read.
    """

    def __init__(
        self, file: _Readable, path: Path, n_bytes: int | None = None, n_packed: int | None = None
    ) -> None:
        self.file = file
        self._path = path
        self._n_bytes = n_bytes
        self._n_packed = n_packed
        self._n_read = 0
        self._budget = MemoryBudget(path)

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes, or all that are left, if memory has room for them."""
        if size >= 0:
            return self._read(size)
        pieces = []
        while piece := self._read(_LARGE_BLOCK):
            pieces.append(piece)
            self._budget.check(self._n_read)
        return b"".join(pieces)

    def _read(self, size: int) -> bytes:
        try:
            content = self.file.read(size)
        except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, BadZipFile) as error:
            if isinstance(self.file, BufferedReader):
                raise _unreadable(self._path, error) from error
            raise _cut_off(self._path, error) from error
        self._n_read += len(content)
        if self._n_packed is not None and self._n_read > MOST_RATIO * self._n_packed:
            self._budget.check(self._n_read)
        if not isinstance(self.file, BytesIO):
            report_reading(self._path.name, self._n_read, self._n_bytes)
        return content


def _decompressing(file: BufferedReader) -> _Readable:
    """Return a reader of the decompressed content, chosen by the magic bytes, not the suffix."""
    start = file.peek(6)[:6]
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if start == b"\xfd7zXZ\x00":
        return lzma.LZMAFile(file)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        unpacked: _Readable = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
        return unpacked
    return file


def _cut_off(path: Path, error: Exception) -> ValueError:
    return fault(f"{path} cannot be decompressed", error, DAMAGED)


def _unreadable(path: Path, error: Exception) -> ValueError:
    reason = error.strerror if isinstance(error, OSError) else error
    return ValueError(f"{path} cannot be read ({reason}); give a readable file")


def fault(what: str, error: BaseException, remedy: str) -> ValueError:
    """Return an error that says what went wrong, what a library said about it, and the remedy."""
    return ValueError(f"{what} ({shorten_error(error)}); {remedy}")


def shorten_error(error: BaseException) -> str:
    """Return the first sentence of a library's error, at most 160 characters."""
    sentence = " ".join(str(error).split()).split(". ")[0]
    return sentence.rstrip(".")[:160] or type(error).__name__


class ArchivedFile(TableFile):
    """A file in an open zip archive, which is decompressed whenever it is read."""

    def __init__(self, path: Path, member: zipfile.ZipInfo, archive: zipfile.ZipFile) -> None:
        super().__init__(path)
        self._member, self._archive = member, archive
        self.is_compressed = True

    @property
    def n_bytes(self) -> int:
        """Size of the content."""
        return self._member.file_size

    @contextmanager
    def open(self) -> Iterator[Decompressed]:
        """Open the content for reading from its beginning."""
        if self.content is not None:
            yield Decompressed(BytesIO(self.content), self.path)
            return
        try:
            file = self._archive.open(self._member)
            stream = _decompressing(cast(BufferedReader, file))
        except (RuntimeError, NotImplementedError) as error:
            remedy = "unpack the archive, and give the file itself"
            raise fault(f"{self.path} cannot be unpacked", error, remedy) from error
        except (BadZipFile, EOFError, zlib.error) as error:
            raise _cut_off(self.path, error) from error
        with file:
            try:
                yield Decompressed(stream, self.path, self.n_bytes, self._member.compress_size)
            finally:
                reading_ended()


def _open_zip(file: TableFile) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file.path if file.content is None else BytesIO(file.content))
    except (BadZipFile, NotImplementedError) as error:
        what = f"{file.path} starts as a zip archive or an Excel workbook but is damaged"
        raise fault(what, error, "get it again") from error


def is_workbook(file: TableFile) -> bool:
    """Return whether an archive is a workbook of Excel or of OpenDocument."""
    with _open_zip(file) as archive:
        return not _BOOK_FILES.isdisjoint(archive.namelist())


def archived_tables(file: TableFile, inner: str | None) -> tuple[list[ArchivedFile], list[str]]:
    """Return the tables in an archive, and the names of files that are not tables.

    `inner` is the name of the only file that is wanted, if there is one.
    """
    archive = _open_zip(file)  # and left open, as that reads the names of all its files
    members = {
        member.filename: member
        for member in archive.infolist()
        if not member.is_dir() and not _is_hidden(member.filename)
    }
    names = list(members)
    if inner is None:
        chosen = names if len(names) == 1 else choose_tables(names, str(file.path))
        others = [name for name in names if name not in chosen]
    elif inner in members:
        chosen, others = [inner], []
    else:
        raise ValueError(f"{file.path} has no file {inner!r}; its files are {list_quoted(names)}")
    paths = [(Path(f"{file.path}#{name}"), members[name]) for name in sorted(chosen)]
    return [ArchivedFile(*each, archive) for each in paths], others


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in Path(name).parts)
