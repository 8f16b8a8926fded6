"""The sizes of the batches of an Arrow file, before they are unpacked.

A few kilobytes can claim to be terabytes. pyarrow does not tell what they claim, so the FlatBuffers
in front of each batch are read here (https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

MAGIC = b"ARROW1"  # at the start and end of a file, not of a stream
_CONTINUATION = 0xFFFFFFFF
# Kinds of messages.
_DICTIONARY, _BATCH = 2, 3
# Bytes of a cell in work on a table, even if it takes none in the file.
_CELL = 8


def batch_sizes(data: pa.NativeFile, *, is_stream: bool) -> Iterator[int]:
    """Yield the unpacked size of each batch of a file or stream; none of what is damaged."""
    try:
        yield from _stream_sizes(data) if is_stream else _file_sizes(data)
    except (struct.error, IndexError, SystemError):  # the last for negative sizes
        return  # damaged, as pyarrow will say


def _file_sizes(data: pa.NativeFile) -> Iterator[int]:
    end = data.size() - len(MAGIC) - 4
    data.seek(end)
    length = _number(data, "<i")
    data.seek(end - length)
    footer = _Table(data.read(length))
    for field in (2, 3):  # dictionaries and record batches
        for place in footer.structs(field, 24):
            data.seek(footer.number("<q", place))
            yield _message_size(data)[0]


def _stream_sizes(data: pa.NativeFile) -> Iterator[int]:
    data.seek(0)
    size, following = _message_size(data)
    while following:
        yield size
        data.seek(following)
        size, following = _message_size(data)


def _number(data: pa.NativeFile, form: str) -> int:
    number: int = struct.unpack(form, data.read(struct.calcsize(form)))[0]
    return number


def _message_size(data: pa.NativeFile) -> tuple[int, int]:
    """Return the unpacked size of the batch at this place, and where the next message is.

    The size of other messages is 0; so is the place after the last one.
    """
    if data.tell() + 4 > data.size():
        return 0, 0
    length = _number(data, "<I")
    if length == _CONTINUATION:  # not in old files
        length = _number(data, "<I")
    if length == 0:
        return 0, 0
    message = _Table(data.read(length))
    body = data.tell()
    kind, batch = message.scalar("<B", 1), message.table(2)
    if kind == _DICTIONARY:
        batch = batch.table(1)
    size = _unpacked(data, batch, body) if kind in (_DICTIONARY, _BATCH) else 0
    return size, body + message.scalar("<q", 3)


def _unpacked(data: pa.NativeFile, batch: _Table, body: int) -> int:
    is_packed = batch.place(3) is not None
    total = 0
    for place in batch.structs(2, 16):
        offset, length = batch.number("<q", place), batch.number("<q", place + 8)
        if is_packed and length >= 8:
            data.seek(body + offset)
            length = max(_number(data, "<q"), length)  # -1 if this one is not packed
        total += length
    return max(_CELL * batch.scalar("<q", 0), total)


class _Table:
    """A table of a FlatBuffer: numbered fields that may be absent; the outermost one by default."""

    def __init__(self, buffer: bytes, at: int | None = None) -> None:
        self._buffer = buffer
        self._at = self.number("<I", 0) if at is None else at
        self._fields = self._at - self.number("<i", self._at)

    def number(self, form: str, at: int) -> int:
        """Return the number at a place."""
        number: int = struct.unpack_from(form, self._buffer, at)[0]
        return number

    def place(self, field: int) -> int | None:
        """Return where a field is, or None if it is absent."""
        slot = 4 + 2 * field
        is_known = slot < self.number("<H", self._fields)
        offset = self.number("<H", self._fields + slot) if is_known else 0
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
            first, n_structs = start + 4, self.number("<I", start)
            yield from range(first, first + n_structs * size, size)
