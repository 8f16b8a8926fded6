"""The sizes of the batches of an Arrow file, before they are unpacked.

A few kilobytes can claim to be terabytes. pyarrow does not tell what they claim, so the FlatBuffers
in front of each batch are read here (https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
# Kinds of messages.
_DICTIONARY, _BATCH = 2, 3
# Bytes of a cell in work on a table, even if it takes none in the file.
_CELL = 8


def batch_sizes(data: pa.NativeFile) -> Iterator[int]:
    """Yield the unpacked size of each batch of a file or stream; none of what is damaged."""
    try:
        yield from _file_sizes(data) if data.read(6) == _MAGIC else _stream_sizes(data)
    except (struct.error, IndexError, SystemError):  # the last for negative sizes
        return  # damaged, as pyarrow will say


def _file_sizes(data: pa.NativeFile) -> Iterator[int]:
    end = data.size() - len(_MAGIC) - 4
    data.seek(end)
    (length,) = struct.unpack("<i", data.read(4))
    data.seek(end - length)
    footer = _Table(data.read(length))
    for field in (2, 3):  # dictionaries and record batches
        for place in footer.structs(field, 24):
            offset = footer.number("<q", place)
            data.seek(offset)
            yield _message_size(data)[0]


def _stream_sizes(data: pa.NativeFile) -> Iterator[int]:
    at = 0
    while True:
        data.seek(at)
        size, at = _message_size(data)
        if at == 0:
            return
        yield size


def _message_size(data: pa.NativeFile) -> tuple[int, int]:
    """Return the unpacked size of the batch at this place, and where the next message is.

    The size of other messages is 0; so is the place after the last one.
    """
    head = data.read(4)
    if len(head) < 4:
        return 0, 0
    (length,) = struct.unpack("<I", head)
    if length == _CONTINUATION:  # not in old files
        (length,) = struct.unpack("<I", data.read(4))
    if length == 0:
        return 0, 0
    message = _Table(data.read(length))
    body = data.tell()
    n_body = message.scalar("<q", 3)
    kind, batch = message.scalar("<B", 1), message.table(2)
    if kind == _DICTIONARY:
        batch = batch.table(1)
    size = _unpacked(data, batch, body) if kind in (_DICTIONARY, _BATCH) else 0
    return size, body + n_body


def _unpacked(data: pa.NativeFile, batch: _Table, body: int) -> int:
    size = _CELL * batch.scalar("<q", 0)
    is_packed = batch.place(3) is not None
    total = 0
    for place in batch.structs(2, 16):
        offset, length = batch.number("<q", place), batch.number("<q", place + 8)
        if is_packed and length >= 8:
            data.seek(body + offset)
            (unpacked,) = struct.unpack("<q", data.read(8))
            length = max(unpacked, length)  # -1 if this one is not packed
        total += length
    return max(size, total)


class _Table:
    """A table of a FlatBuffer: numbered fields that may be absent; the outermost one by default."""

    def __init__(self, buffer: bytes, at: int | None = None) -> None:
        self._buffer = buffer
        self._at = self.number("<I", 0) if at is None else at
        self._fields = self._at - self.number("<i", self._at)

    def number(self, form: str, at: int) -> Any:
        """Return the number at a place."""
        return struct.unpack_from(form, self._buffer, at)[0]

    def place(self, field: int) -> int | None:
        """Return where a field is, or None if it is absent."""
        slot = 4 + 2 * field
        if slot >= self.number("<H", self._fields):
            return None
        offset = self.number("<H", self._fields + slot)
        return self._at + offset if offset else None

    def scalar(self, form: str, field: int) -> int:
        """Return a number, 0 if it is absent."""
        at = self.place(field)
        return 0 if at is None else self.number(form, at)

    def table(self, field: int) -> _Table:
        """Return a table that this one refers to."""
        at = self.place(field)
        if at is None:
            raise IndexError(field)
        return _Table(self._buffer, at + self.number("<I", at))

    def structs(self, field: int, size: int) -> Iterator[int]:
        """Yield the places of the structures of a vector."""
        at = self.place(field)
        if at is not None:
            start = at + self.number("<I", at)
            n_structs = self.number("<I", start)
            yield from range(start + 4, start + 4 + n_structs * size, size)
