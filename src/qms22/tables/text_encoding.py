"""Encodings of text files: UTF-8, UTF-16 with its mark, Windows-1252 and Latin-1."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

# The part of a file that is searched for signs of its format.
SAMPLE = 1 << 18
# The first bytes of files that are mistaken for tables.
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
# Bytes that are not used in Windows-1252.
_NOT_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class TextEncoding:
    """How to read a file as text.

    Parameters
    ----------
    codec : str
        Python's name of the encoding.
    n_bytes : int
        Number of bytes up to the end of the text; DOS put a mark behind it.
    n_quotes : int
        Number of quotation marks.
    """

    codec: str
    n_bytes: int
    n_quotes: int


def detect_encoding(blocks: Iterable[bytes], path: str) -> TextEncoding:
    """Return the encoding of a text file; raise ValueError if the file is not text.

    Parameters
    ----------
    blocks : iterable of bytes
        The whole content.
    path : str
        The name of the file in messages.
    """
    blocks = iter(blocks)
    first = next(blocks, b"")
    detect = _detect_utf16 if first.startswith(_UTF16_MARKS) else _detect_bytes
    return detect(chain([first], blocks), path)


def decode_text(content: bytes, path: str) -> str:
    """Return the content of a text file as text; raise ValueError if it is not text."""
    encoding = detect_encoding([content], path)
    return content[: encoding.n_bytes].decode(encoding.codec)


def looks_binary(start: bytes) -> bool:
    """Return whether the start of a file has characters that no text has."""
    return _CONTROL.search(start) is not None


def _detect_utf16(blocks: Iterator[bytes], path: str) -> TextEncoding:
    decoder = codecs.getincrementaldecoder("utf-16")()
    n_bytes = n_quotes = 0
    try:
        for block in blocks:
            n_bytes += len(block)
            n_quotes += decoder.decode(block).count('"')
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} starts as UTF-16 text but is not ({error.reason}); save it as UTF-8"
        ) from error
    return TextEncoding("utf-16", n_bytes, n_quotes)


def _detect_bytes(blocks: Iterator[bytes], path: str) -> TextEncoding:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    is_utf8 = is_1252 = True
    n_bytes = n_text = n_quotes = 0
    for block in blocks:
        _check_text(block, path, is_start=not n_bytes)
        if text := block.rstrip(b"\x1a"):
            n_text = n_bytes + len(text)
        n_bytes += len(block)
        n_quotes += block.count(b'"')
        is_utf8 = is_utf8 and _decodes(decoder, block)
        is_1252 = is_1252 and not _NOT_1252.search(block)
    if is_utf8 and _decodes(decoder, b"", final=True):
        return TextEncoding("utf-8-sig", n_text, n_quotes)
    return TextEncoding("cp1252" if is_1252 else "latin-1", n_text, n_quotes)


def _check_text(block: bytes, path: str, *, is_start: bool) -> None:
    start = block[:SAMPLE] if is_start else b""
    foreign = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
    if foreign or b"\x00" in block or looks_binary(start):
        raise ValueError(
            f"{path} is {foreign or 'binary, not text'}; give a CSV, Parquet, Arrow, ARFF or KEEL "
            "file"
        )


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True
