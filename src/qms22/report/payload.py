"""Arrays and a JSON header in one text, which the script of the page unpacks."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The names of typed arrays in JavaScript; browsers run on little-endian machines.
_WORDS = {"i": "Int", "u": "Uint", "f": "Float"}
_TYPE_NAMES = {
    np.dtype(f"<{kind}{width}"): f"{_WORDS[kind]}{8 * int(width)}Array"
    for kind, width in ("i1", "i2", "i4", "u1", "u2", "u4", "f8")
}

# Width of the widest type: a typed array has to start at a multiple of the width of its type.
_ALIGNMENT = 8

# Numbers without a short decimal form are rounded to 32 bits: an error of 2 ** -32 is less than
# half of the ninth digit, and the zeros that follow compress well.
DIGITS = 9
_DROPPED_BITS = np.uint64(52 - 31)


class Payload:
    """Collects arrays and packs them with a header that has their positions.

    The packed bytes are the position of the header (8 bytes), the arrays and the header, compressed
    by gzip and written in base64, so that nothing in them can be taken for markup.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._end = _ALIGNMENT

    def add(self, array: NDArray[Any]) -> list[Any]:
        """Add an array; return its type, position and length for the header."""
        dtype = array.dtype.newbyteorder("<")
        data = np.ascontiguousarray(array, dtype=dtype).tobytes()
        padding = -len(data) % _ALIGNMENT
        place = [_TYPE_NAMES[dtype], self._end, len(array)]
        self._chunks.append(data + bytes(padding))
        self._end += len(data) + padding
        return place

    def pack(self, header: Any) -> str:
        """Return the arrays and a header as one text."""
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
        start = self._end.to_bytes(_ALIGNMENT, "little")
        packed = gzip.compress(b"".join([start, *self._chunks, text]), compresslevel=4, mtime=0)
        return base64.b64encode(packed).decode("ascii")


def shorten(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 32 binary digits, which is a little more than nine decimal ones."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    half = np.uint64(1) << (_DROPPED_BITS - np.uint64(1))
    kept = (bits + half) >> _DROPPED_BITS << _DROPPED_BITS
    rounded = kept.view(np.float64)
    # Rounding up must not make infinity of the largest numbers; subnormal numbers have fewer
    # digits; NaN and infinity stay.
    is_safe = np.isfinite(rounded) & (np.abs(values) >= np.finfo(np.float64).tiny)
    return np.where(is_safe & np.isfinite(values), rounded, values)
