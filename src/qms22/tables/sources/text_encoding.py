"""Encodings of text files: UTF-8, UTF-16, Windows-1252 and Latin-1."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from qms22.tables.sources.compressed import Buffer

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
# Bytes at the end of a file that are searched for a footer; an even number.
TAIL = 1 << 16
# Bytes to decode at once.
_BLOCK = 1 << 23
_UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class TextEncoding(NamedTuple):
    """How to read a file as text.

    Parameters
    ----------
    codec : str
        Python's name of the encoding.
    n_bytes : int
        Number of bytes up to the end of the text; DOS put a mark behind it.
    n_quotes : int
        Number of quotation marks.
    tail : str
        The last part of the text, or all of it; the very first character may be damaged.
    inner_codec : str
        The encoding of what follows the mark at the start of the file.
    is_guessed : bool
        Whether the file is UTF-16 without the mark that says so.
    """

    codec: str
    n_bytes: int
    n_quotes: int
    tail: str
    inner_codec: str
    is_guessed: bool


def detect_encoding(content: Buffer, path: str) -> TextEncoding:
    """Return the encoding of a text file; raise ValueError if it is not text."""
    start = content[:SAMPLE]
    utf16 = _UTF16_MARKS.get(start[:2])
    unmarked = None if utf16 else _utf16_without_mark(start)
    inner = utf16 or unmarked
    quote = '"'.encode(inner or "ascii")
    n_bytes, n_quotes = len(content), 0
    for block in _blocks(content):
        n_quotes += block.count(quote)
        if inner is None:
            _check_text(block, path, start)
            start = b""
    names = ["utf-16"] if utf16 else [unmarked] if unmarked else _BYTE_CODECS
    codec = next((name for name in names if _fits(content, name)), None)
    if codec is None:
        raise ValueError(f"{path} starts as UTF-16 text but is not; save it as UTF-8")
    n_text = n_bytes if inner else _end_of_text(content)
    inner = inner or codec.removesuffix("-sig")
    tail = content[max(n_bytes - TAIL, 0) : n_text].decode(inner, "replace")
    return TextEncoding(codec, n_text, n_quotes, tail, inner, unmarked is not None)


def decode_text(content: bytes, path: str) -> str:
    """Return the content of a text file as text; raise ValueError if it is not text."""
    encoding = detect_encoding(content, path)
    return content[: encoding.n_bytes].decode(encoding.codec)


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


def _utf16_without_mark(start: bytes) -> str | None:
    """Return the kind of UTF-16 if every other byte is zero, as in texts of Latin letters."""
    for codec, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        n_zeros = start[first::2].count(0)
        is_other_free = not start[1 - first :: 2].count(0)
        if len(start) >= 4 and is_other_free and n_zeros > _LEAST_ZEROS * len(start) / 2:
            return codec
    return None


def _check_text(block: bytes, path: str, start: bytes) -> None:
    """Raise ValueError if a block is not text; `start` is the start of the file, if it has that."""
    foreign = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
    if foreign or b"\x00" in block or looks_binary(start):
        raise ValueError(
            f"{path} is {foreign or 'binary, not text'}; give a CSV, Excel, Parquet, Arrow, JSON, "
            "ARFF or KEEL file"
        )


def _blocks(content: Buffer) -> Iterator[bytes]:
    return (content[at : at + _BLOCK] for at in range(0, len(content), _BLOCK))


def _fits(content: Buffer, codec: str, *, is_whole: bool = True) -> bool:
    """Return whether a content can be decoded; one that is not whole may end in a character."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        for block in _blocks(content):
            decoder.decode(block)
        decoder.decode(b"", final=is_whole)
    except UnicodeDecodeError:
        return False
    return True


def _end_of_text(content: Buffer) -> int:
    """Return where a text ends; DOS puts marks behind it."""
    end = len(content)
    while end and content[end - 1 : end] == b"\x1a":
        end -= 1
    return end
