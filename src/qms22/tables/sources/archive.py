"""Tables in zip archives."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, cast

from qms22._runtime.stages import reading_ended
from qms22.tables.sources.compressed import (
    Decompressed,
    TableFile,
    cut_off,
    decompressing,
    shorten_error,
)
from qms22.tables.sources.found_files import choose_tables
from qms22.tables.texts.words import list_some

ZIP_START = b"PK\x03\x04"
# Files that are in every workbook of Excel and of OpenDocument.
_BOOK_FILES = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}


class ArchivedFile(TableFile):
    """A file in a zip archive, which is decompressed whenever it is read."""

    def __init__(self, archive: TableFile, member: zipfile.ZipInfo) -> None:
        super().__init__(Path(f"{archive.path}#{member.filename}"))
        self._archive = archive
        self._member = member
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
        with opened(self._archive) as archive:
            try:
                file = archive.open(self._member)
                stream = decompressing(cast(BufferedReader, file), self.path)
            except (RuntimeError, NotImplementedError) as error:
                raise ValueError(
                    f"{self.path} cannot be unpacked ({shorten_error(error)}); unpack the archive, "
                    "and give the file itself"
                ) from error
            except (zipfile.BadZipFile, EOFError, zlib.error) as error:
                raise cut_off(self.path, error) from error
            with file:
                try:
                    yield Decompressed(stream, self.path, self.n_bytes, self._member.compress_size)
                finally:
                    reading_ended()


@contextmanager
def opened(file: TableFile) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raise ValueError if it is damaged."""
    content: Any = file.path if file.content is None else BytesIO(file.content)
    try:
        archive = zipfile.ZipFile(content)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(
            f"{file.path} starts as a zip archive or an Excel workbook but is damaged "
            f"({shorten_error(error)}); get it again"
        ) from error
    with archive:
        yield archive


def is_workbook(file: TableFile) -> bool:
    """Return whether an archive is a workbook of Excel or of OpenDocument."""
    with opened(file) as archive:
        return not _BOOK_FILES.isdisjoint(archive.namelist())


def archived_tables(file: TableFile, inner: str | None) -> tuple[list[ArchivedFile], list[str]]:
    """Return the tables in an archive, and the names of files that are not tables.

    `inner` is the name of the only file that is wanted, if there is one.
    """
    with opened(file) as archive:
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
        raise ValueError(
            f"{file.path} has no file {inner!r}; its files are {list_some(list(map(repr, names)))}"
        )
    return [ArchivedFile(file, members[name]) for name in sorted(chosen)], others


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in Path(name).parts)
