"""Columns of databases as Arrow arrays of the types that tables in files have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qms22._runtime.packages import need

# PostgreSQL counts a month of an interval as 30 days, too.
_DAY = 86_400
_MONTH = 30 * _DAY


def from_values(values: Sequence[Any]) -> Any:
    """Return Python values as an Arrow array; texts if they have no type in common."""
    pa = need("pyarrow")
    try:
        return plain(pa.array(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([_text(value) for value in values], pa.string())


def plain(array: Any) -> Any:
    """Return an array of a database as numbers, booleans, dates or texts.

    Decimals become floats, intervals seconds, and times of day, UUIDs and enumerations texts. What
    has no such form, such as lists and bytes, stays.
    """
    pa = need("pyarrow")
    types, kind = pa.types, array.type
    if types.is_decimal(kind):
        return array.cast(pa.float64())
    if types.is_time(kind):
        return array.cast(pa.time32("s"), safe=False).cast(pa.string())
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_interval(kind):
        return pa.array([_seconds(value) for value in array.to_pylist()], pa.float64())
    if isinstance(kind, pa.BaseExtensionType):
        return pa.array([_text(value) for value in array.to_pylist()], pa.string())
    return array


def convert(array: Any, kind: Any) -> Any:
    """Return an array in the common type of its column."""
    pa = need("pyarrow")
    try:
        return array.cast(kind, safe=False)
    except pa.ArrowException:
        return pa.array([_text(value) for value in array.to_pylist()], pa.string())


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    return float(value.months * _MONTH + value.days * _DAY + value.nanoseconds / 1e9)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
