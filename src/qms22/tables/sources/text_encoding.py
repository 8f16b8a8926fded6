"""Encodings of text files: UTF-8, UTF-16, Windows-1252 and Latin-1."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from qms22.tables.sources.compressed import Buffer, TableFile

# The part of a file that is searched for signs of its format.
SAMPLE = 1 << 18
# The first bytes of files that are mistaken for tables.
_FOREIGN = {
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
# The first that fits is taken; Latin-1 always does.
_BYTE_CODECS = ["utf-8-sig", "cp1252", "latin-1"]
# The share of letters whose first byte is zero in UTF-16; digits and separators are among them.
_LEAST_ZEROS = 0.7
# Bytes to decode at once: small enough for the cache of a processor.
_BLOCK = 1 << 17


class Utf8Text(NamedTuple):
    """The content of a text file in UTF-8."""

    content: Buffer
    # Where the text is in it: marks may be around it.
    start: int
    end: int
    is_guessed: bool  # whether the file is UTF-16 without the mark that says so

    def open(self, newline: str | None) -> io.TextIOWrapper:
        """Open the text; lines end as with `newline` of Python's open."""
        body = memoryview(self.content)[self.start : self.end]
        return io.TextIOWrapper(pa.BufferReader(pa.py_buffer(body)), "utf-8", newline=newline)


def read_text(file: TableFile) -> Utf8Text:
    """Read a text file in any encoding; raise ValueError if it is not text."""
    content = file.buffer()
    codec, is_guessed = _find_codec(content, str(file.path))
    if codec != "utf-8-sig":
        content = file.keep(text.encode() for text in _decoded(content, codec))
    end = len(content)
    while end and content[end - 1 : end] == b"\x1a":  # DOS puts marks behind a text
        end -= 1
    has_mark = content[:3] == codecs.BOM_UTF8
    return Utf8Text(content, 3 if has_mark else 0, end, is_guessed)


def read_whole_text(file: TableFile) -> Utf8Text:
    """Read a text file as `read_text` does, if memory has room for all of it."""
    with file.open() as stream:
        return read_text(TableFile(file.path, stream.read()))


def looks_binary(start: bytes) -> bool:
    """Return whether the start of a file is no text: it has zeros, or no encoding fits.

    A control character alone is a slip in a cell. With bytes that neither UTF-8 nor Windows-1252
    has, it is a sign of another format.
    """
    if b"\x00" in start:
        return True
    if _CONTROL.search(start) is None:
        return False
    return not any(_fits(start, codec, is_whole=False) for codec in _BYTE_CODECS[:2])


def _find_codec(content: Buffer, path: str) -> tuple[str, bool]:
    """Return Python's name of the encoding, and whether it is UTF-16 without a mark."""
    start = bytes(content[:SAMPLE])
    is_marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    unmarked = None if is_marked else _utf16_without_mark(start)
    if not is_marked and not unmarked:
        foreign = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
        if foreign or content.find(b"\x00") >= 0 or looks_binary(start):
            raise ValueError(
                f"{path} is {foreign or 'binary, not text'}; give a CSV, Excel, Parquet, Arrow, "
                "JSON, ARFF or KEEL file"
            )
    names = ["utf-16"] if is_marked else [unmarked] if unmarked else _BYTE_CODECS
    codec = next((name for name in names if _fits(content, name)), None)
    if codec is None:
        raise ValueError(f"{path} starts as UTF-16 text but is not; save it as UTF-8")
    return codec, unmarked is not None


def _utf16_without_mark(start: bytes) -> str | None:
    """Return the kind of UTF-16 if every other byte is zero, as in texts of Latin letters."""
    for codec, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        n_zeros = start[first::2].count(0)
        is_other_free = not start[1 - first :: 2].count(0)
        if len(start) >= 4 and is_other_free and n_zeros > _LEAST_ZEROS * len(start) / 2:
            return codec
    return None


def _decoded(content: Buffer, codec: str, *, is_whole: bool = True) -> Iterator[str]:
    """Decode a content in blocks; one that is not whole may end in a character."""
    decoder = codecs.getincrementaldecoder(codec)()
    for start in range(0, len(content), _BLOCK):
        yield decoder.decode(content[start : start + _BLOCK])
    yield decoder.decode(b"", final=is_whole)


def _fits(content: Buffer, codec: str, *, is_whole: bool = True) -> bool:
    """Return whether a content can be decoded."""
    try:
        if is_whole and codec == _BYTE_CODECS[0]:  # as one text of Arrow, which is quick
            ends = pa.array([0, len(content)]).buffers()[1]
            parts = [None, ends, pa.py_buffer(content)]
            pa.Array.from_buffers(pa.large_string(), 1, parts).validate(full=True)
            return True
        for _ in _decoded(content, codec, is_whole=is_whole):
            pass
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return False
    return True
