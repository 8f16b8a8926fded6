"""Columns of databases as Arrow arrays of the types that tables in files have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from qms22.tables.sources.column_types import plain_text

# PostgreSQL counts a month of an interval as 30 days, too.
_DAY = 86_400
_MONTH = 30 * _DAY


def from_values(values: Sequence[Any]) -> pa.Array:
    """Return Python values as an Arrow array; texts if they have no type in common."""
    try:
        return plain(pa.array(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([plain_text(value) for value in values], pa.string())


def plain(array: pa.Array) -> pa.Array:
    """Return an array of a database as numbers, booleans, dates or texts.

    Decimals become floats, intervals seconds, and times of day, UUIDs and enumerations texts. What
    has no such form, such as lists and bytes, stays.
    """
    kind = array.type
    if types.is_decimal(kind):
        return array.cast(pa.float64())
    if types.is_time(kind):
        return array.cast(pa.time32("s"), safe=False).cast(pa.string())
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_interval(kind):
        return pa.array([_seconds(value) for value in array.to_pylist()], pa.float64())
    if isinstance(kind, pa.BaseExtensionType):
        return pa.array([plain_text(value) for value in array.to_pylist()], pa.string())
    return array


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    return float(value.months * _MONTH + value.days * _DAY + value.nanoseconds / 1e9)
