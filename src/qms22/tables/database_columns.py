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


def common_type(kinds: Sequence[Any]) -> Any:
    """Return the type in which parts of a column of different types are kept."""
    pa = need("pyarrow")
    types = pa.types
    found = {kind for kind in kinds if not types.is_null(kind)}
    if len(found) < 2:
        return next(iter(found), pa.null())
    if all(types.is_boolean(kind) or types.is_integer(kind) for kind in found):
        return pa.int64() if pa.uint64() not in found else pa.float64()
    if all(types.is_boolean(kind) or _is_number(kind) for kind in found):
        return pa.float64()
    if all(types.is_date(kind) or kind == pa.timestamp("us") for kind in found):
        return pa.timestamp("us")
    return pa.string()


def convert(array: Any, kind: Any) -> Any:
    """Return an array in the common type of its column."""
    pa = need("pyarrow")
    try:
        return array.cast(kind, safe=False)
    except pa.ArrowException:
        return pa.array([_text(value) for value in array.to_pylist()], pa.string())


def _is_number(kind: Any) -> bool:
    types = need("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    return float(value.months * _MONTH + value.days * _DAY + value.nanoseconds / 1e9)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
