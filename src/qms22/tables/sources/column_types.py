"""Arrow types of the columns of a table in several parts."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as of

from qms22.tables.columns.python_values import arrow_column


def common_type(types: list[pa.DataType]) -> pa.DataType:
    """Return an Arrow type that can hold the values of all the given types.

    Numbers of different types become floats, booleans beside whole numbers become 0 and 1, dates
    and times become moments, in local time if they have different time zones, and values of any
    other different types become texts.
    """
    return reduce(_common, types)


def _common(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    types = (first, second)
    if first == second or of.is_null(second):
        return first
    if of.is_null(first):
        return second
    if all(map(of.is_dictionary, types)):
        return pa.dictionary(pa.int32(), _common(first.value_type, second.value_type))
    if {*types} == {pa.bool_(), pa.int64()} or all(map(of.is_signed_integer, types)):
        return pa.int64()
    if all(of.is_integer(each) or of.is_floating(each) or of.is_decimal(each) for each in types):
        return pa.float64()
    if all(of.is_timestamp(each) or of.is_date(each) for each in types):
        zones = {getattr(each, "tz", None) for each in types}
        return pa.timestamp("us", zones.pop() if len(zones) == 1 else None)
    return pa.string()


def is_text(type_: pa.DataType | None) -> bool:
    """Return whether a type is that of texts or of categories."""
    if type_ is not None and of.is_dictionary(type_):
        type_ = type_.value_type
    return type_ is not None and bool(of.is_string(type_) or of.is_large_string(type_))


def cast_column(column: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Convert an Arrow array to a type that `common_type` has found."""
    if column.type == to:
        return column
    if of.is_dictionary(column.type) and not of.is_dictionary(to):
        column = column.dictionary_decode()
    if of.is_timestamp(column.type) and column.type.tz and getattr(to, "tz", None) is None:
        column = pc.local_timestamp(column)
    if of.is_string(to) and not is_text(column.type) and not of.is_null(column.type):
        array = arrow_column(column.to_pylist(), to)
        return pa.chunked_array([array]) if isinstance(column, pa.ChunkedArray) else array
    return column.cast(to, safe=False)


def force_cast(array: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return an array in the common type of its column; as texts if it cannot be cast."""
    try:
        return array.cast(to, safe=False)
    except pa.ArrowException:
        return pa.array([plain_text(value) for value in array.to_pylist()], pa.string())


def plain_text(value: Any) -> str | None:
    """Return a value of a database as text."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
