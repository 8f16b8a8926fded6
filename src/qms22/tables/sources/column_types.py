"""Arrow types of columns: of Python values, and of a table in several parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as of

from qms22.tables.columns.cells import to_float
from qms22.tables.texts.words import CSV_MISSING, number_text

# The largest whole number that Arrow can hold.
_LARGEST = 2**63 - 1

_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "text",
    datetime: "date",
    date: "date",
    time: "time",
    timedelta: "duration",
    list: "list",
}


def value_kinds(values: Sequence[Any]) -> frozenset[str]:
    """Return the kinds of the values that are not missing; those of parts of a column add up."""
    kinds = {_KINDS.get(kind, "other") for kind in set(map(type, values)) - {type(None)}}
    texts = {value for value in values if type(value) is str} if "text" in kinds else {""}
    if all(text.strip() in CSV_MISSING for text in texts):
        kinds.discard("text")
    if "integer" in kinds and any(type(each) is int and abs(each) > _LARGEST for each in values):
        kinds.add("huge")
    return frozenset(kinds)


def arrow_type(kinds: frozenset[str]) -> pa.DataType:
    """Return the Arrow type of a column with values of these kinds.

    Values of different kinds become texts. So do whole numbers of more than 64 bits, which are
    mostly identifiers, unless other numbers of the column are fractions.
    """
    if not kinds or ("float" in kinds and kinds <= {"integer", "huge", "float"}):
        return pa.float64()
    types = {
        frozenset({"boolean"}): pa.bool_(),
        frozenset({"integer"}): pa.int64(),
        frozenset({"date"}): pa.timestamp("us"),
        frozenset({"duration"}): pa.duration("us"),
        frozenset({"list"}): pa.list_(pa.string()),
    }
    return types.get(kinds, pa.string())


def arrow_column(values: Sequence[Any], to: pa.DataType) -> pa.Array:
    """Return values as an Arrow array of the type `to`, which `arrow_type` has found for them."""
    if of.is_string(to):
        return pa.array([None if value is None else text_of(value) for value in values], to)
    read: Callable[[Any], Any] | None = None
    if of.is_floating(to):
        read = to_float  # Arrow refuses whole numbers that a float cannot hold to the last digit
    elif of.is_timestamp(to):
        read = _moment
    elif of.is_list(to):
        read = _texts
    # Columns of these types have texts only where they mean missing.
    present = [None if type(value) is str else value for value in values]
    if read is not None:
        present = [None if value is None else read(value) for value in present]
    return pa.array(present, to, from_pandas=True)


def text_of(value: Any) -> str | None:
    """Return a value as text, as a text file would have it; None for words that mean missing."""
    if type(value) is str:
        return None if value.strip() in CSV_MISSING else value
    if type(value) is float:
        return number_text(value) if value == value else None
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, int | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _texts(values: list[Any]) -> list[str | None]:
    return [None if each is None else text_of(each) for each in values]


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


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
