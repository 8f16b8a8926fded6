"""Encodings of text files: UTF-8, UTF-16, Windows-1252 and Latin-1."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import NamedTuple

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


def detect_encoding(blocks: Iterable[bytes], path: str) -> TextEncoding:
    """Return the encoding of a text file, of which `blocks` are the whole content.

    Raise ValueError if the file is not text.
    """
    n_bytes = n_text = n_quotes = 0
    tail = b""
    decoders: dict[str, codecs.IncrementalDecoder] = {}
    for block in blocks:
        if not n_bytes:
            utf16 = _UTF16_MARKS.get(block[:2])
            unmarked = None if utf16 else _utf16_without_mark(block[:SAMPLE])
            names = ["utf-16"] if utf16 else [unmarked] if unmarked else _BYTE_CODECS
            decoders = {name: codecs.getincrementaldecoder(name)() for name in names}
            quote = '"'.encode(utf16 or unmarked or "ascii")
        if not (utf16 or unmarked):
            _check_text(block, path, is_start=not n_bytes)
        if text := block.rstrip(b"" if utf16 or unmarked else b"\x1a"):
            n_text = n_bytes + len(text)
        n_bytes += len(block)
        n_quotes += block.count(quote)
        tail = (tail + block)[-TAIL:]
        decoders = {name: decoder for name, decoder in decoders.items() if _reads(decoder, block)}
    fitting = [name for name, decoder in decoders.items() if _reads(decoder, b"", final=True)]
    if not fitting:
        raise ValueError(f"{path} starts as UTF-16 text but is not; save it as UTF-8")
    codec = fitting[0]
    inner = utf16 or codec.removesuffix("-sig")
    end = tail[: len(tail) - (n_bytes - n_text)].decode(inner, "replace")
    return TextEncoding(codec, n_text, n_quotes, end, inner, unmarked is not None)


def decode_text(content: bytes, path: str) -> str:
    """Return the content of a text file as text; raise ValueError if it is not text."""
    encoding = detect_encoding([content], path)
    return content[: encoding.n_bytes].decode(encoding.codec)


def looks_binary(start: bytes) -> bool:
    """Return whether the start of a file has characters that no text has."""
    return _CONTROL.search(start) is not None


def _utf16_without_mark(start: bytes) -> str | None:
    """Return the kind of UTF-16 if every other byte is zero, as in texts of Latin letters."""
    for codec, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        n_zeros = start[first::2].count(0)
        is_other_free = not start[1 - first :: 2].count(0)
        if len(start) >= 4 and is_other_free and n_zeros > _LEAST_ZEROS * len(start) / 2:
            return codec
    return None


def _check_text(block: bytes, path: str, *, is_start: bool) -> None:
    start = block[:SAMPLE] if is_start else b""
    foreign = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
    if foreign or b"\x00" in block or looks_binary(start):
        raise ValueError(
            f"{path} is {foreign or 'binary, not text'}; give a CSV, Excel, Parquet, Arrow, JSON, "
            "ARFF or KEEL file"
        )


def _reads(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True
