"""Columns packed so that a page shows them as the user wrote them, and all its data in one text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from qms22.tables.columns.cells import Cells

# JavaScript cannot represent all integers beyond this one.
_LARGEST_INTEGER = 2**53
_INTEGERS = (np.int8, np.int16, np.int32)
_DIGITS = re.compile(r"\d+")

# More texts than this are sorted sign by sign, which is ten times as fast.
_MOST_NATURAL = 2000
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


def pack_column(values: pd.Series, cells: Cells | None, payload: Payload) -> dict[str, Any]:
    """Pack a column: numbers as numbers, everything else as the texts that the user wrote.

    By its cells, as the encoder understands them, texts of dates and numbers sort as such. Return
    what the page needs to read the column; the payload gets the arrays.
    """
    numbers = as_numbers(values)
    if numbers is not None:
        return {"type": "number", **_pack_numbers(numbers, payload)}
    codes, levels = as_levels(values)
    # The number after the last level stands for a missing value.
    codes = np.where(codes < 0, len(levels), codes)
    packed = payload.add(codes.astype(np.min_scalar_type(len(levels))))
    spec = {"type": "text", "levels": levels, "data": packed}
    if cells is not None and cells.form in ("date", "number"):
        keys = np.full(len(levels) + 1, np.nan)
        keys[codes] = cells.values
        spec |= {"keys": payload.add(keys), "form": cells.form}
    return spec


def as_numbers(values: pd.Series) -> NDArray[np.float64] | None:
    """Return a column as numbers, with NaN for missing ones; None if it stores no numbers."""
    dtype = values.dtype
    is_real = types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)
    if not is_real or types.is_bool_dtype(dtype):
        return None
    if types.is_integer_dtype(dtype):
        ends = [int(end) for end in (values.min(), values.max()) if not pd.isna(end)]
        if any(abs(end) > _LARGEST_INTEGER for end in ends):
            return None
    if dtype in (np.float16, np.float32):
        # Show 0.1 in single precision as 0.1, not as 0.10000000149.
        values = values.astype(str).astype(np.float64)
    numbers: NDArray[np.float64] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def as_levels(values: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Return a column as texts: the number of each row's text, -1 if it is missing, and the texts.

    They are in the order of the alphabet, so that their numbers sort as they do.
    """
    if types.is_datetime64_any_dtype(values.dtype):
        # This leaves out the time of day if it is midnight in all rows.
        values = values.astype(str).where(values.notna(), None)
    try:
        codes, unique = pd.factorize(values)
    except TypeError:  # lists and other values without a hash
        codes, unique = pd.factorize(values.map(str))
    texts = [str(level) for level in unique.tolist()]
    numbers = {text: number for number, text in enumerate(alphabetical(set(texts)))}
    # Two values may have the same text, such as 1 and "1"; the last place is for -1, missing.
    renumbered = np.array([*(numbers[text] for text in texts), -1], dtype=np.intp)
    return renumbered[codes], list(numbers)


def alphabetical(texts: Collection[str]) -> list[str]:
    """Return texts as people sort them, if there are not too many: in any case, "2" before "10"."""
    if len(texts) > _MOST_NATURAL:
        return sorted(texts)
    return sorted(texts, key=lambda text: (_sort_key(text), text))


def _sort_key(text: str) -> str:
    return _DIGITS.sub(lambda digits: digits[0].zfill(12), text.casefold())


def _pack_numbers(numbers: NDArray[np.float64], payload: Payload) -> dict[str, Any]:
    known = ~np.isnan(numbers)
    places = _decimal_places(numbers[known])
    if places is None:
        return {"digits": DIGITS, "data": payload.add(shorten(numbers))}
    scaled = np.rint(numbers * 10.0**places)
    largest = np.abs(scaled[known]).max(initial=0)
    for integer in _INTEGERS:
        missing = np.iinfo(integer).min
        if largest < -missing:
            packed = np.where(known, scaled, missing).astype(integer)
            return {"places": places, "missing": missing, "data": payload.add(packed)}
    return {"places": places, "data": payload.add(scaled)}


def _decimal_places(numbers: NDArray[np.float64]) -> int | None:
    """Return how many decimal places represent all numbers exactly, or None."""
    if not np.isfinite(numbers).all():
        return None
    largest = np.abs(numbers).max(initial=0)
    for places in range(DIGITS + 1):
        scale = 10.0**places
        if largest > _LARGEST_INTEGER / scale:
            return None
        if (np.rint(numbers * scale) / scale == numbers).all():
            return places
    return None


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
