"""One type for a column of a table in several parts, whatever the types in the parts."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from qms22.tables.sources.values import text_of

if TYPE_CHECKING:
    import pyarrow as pa


def common_type(types: list[pa.DataType]) -> pa.DataType:
    """Return an Arrow type that can hold the values of all the given types.

    Numbers of different types become floats, booleans beside whole numbers become 0 and 1, dates
    and times become moments, in local time if they have different time zones, and values of any
    other different types become texts.
    """
    return reduce(_common, types)


def _common(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    of = pa.types
    if first == second or of.is_null(second):
        return first
    if of.is_null(first):
        return second
    if of.is_dictionary(first) and of.is_dictionary(second):
        value_type = _common(first.value_type, second.value_type)
        return pa.dictionary(pa.int32(), value_type)
    if {first, second} == {pa.bool_(), pa.int64()}:
        return pa.int64()
    if _is_number(first) and _is_number(second):
        are_whole = of.is_signed_integer(first) and of.is_signed_integer(second)
        return pa.int64() if are_whole else pa.float64()
    if of.is_temporal(first) and of.is_temporal(second) and _is_moment(first, second):
        zones = {getattr(each, "tz", None) for each in (first, second)}
        return pa.timestamp("us", zones.pop() if len(zones) == 1 else None)
    return pa.string()


def _is_number(type_: pa.DataType) -> bool:
    from pyarrow import types as of

    return bool(of.is_integer(type_) or of.is_floating(type_) or of.is_decimal(type_))


def _is_moment(*types: pa.DataType) -> bool:
    from pyarrow import types as of

    return all(of.is_timestamp(each) or of.is_date(each) for each in types)


def is_text(type_: pa.DataType | None) -> bool:
    """Return whether a type is that of texts or of categories."""
    from pyarrow import types as of

    if type_ is not None and of.is_dictionary(type_):
        type_ = type_.value_type
    return type_ is not None and bool(of.is_string(type_) or of.is_large_string(type_))


def cast_column(column: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Convert an Arrow array to a type that `common_type` has found."""
    import pyarrow as pa
    from pyarrow import compute

    of = pa.types
    if column.type == to:
        return column
    if of.is_dictionary(column.type) and not of.is_dictionary(to):
        column = column.dictionary_decode()
    if of.is_timestamp(column.type) and column.type.tz and getattr(to, "tz", None) is None:
        column = compute.local_timestamp(column)
    if of.is_string(to) and not is_text(column.type) and not of.is_null(column.type):
        texts = [None if value is None else text_of(value) for value in column.to_pylist()]
        array = pa.array(texts, to)
        return pa.chunked_array([array]) if isinstance(column, pa.ChunkedArray) else array
    return column.cast(to, safe=False)


def force_cast(array: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return an array in the common type of its column; as texts if it cannot be cast."""
    import pyarrow as pa

    try:
        return array.cast(to, safe=False)
    except pa.ArrowException:
        return pa.array([plain_text(value) for value in array.to_pylist()], pa.string())


def plain_text(value: Any) -> str | None:
    """Return a value of a database as text."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
