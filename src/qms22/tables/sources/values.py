"""Columns of Python values, as spreadsheets and JSON files have them, in Arrow's types."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from qms22.tables.columns.cells import to_float
from qms22.tables.texts.words import CSV_MISSING, number_text

if TYPE_CHECKING:
    import pyarrow as pa

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
    if "text" in kinds and _all_missing(values):
        kinds.remove("text")
    if "integer" in kinds:
        whole = [value for value in values if type(value) is int]
        if max(whole) > _LARGEST or min(whole) < -_LARGEST:
            kinds.add("huge")
    return frozenset(kinds)


def _all_missing(values: Sequence[Any]) -> bool:
    return all(
        text.strip() in CSV_MISSING for text in {each for each in values if type(each) is str}
    )


def arrow_type(kinds: frozenset[str]) -> pa.DataType:
    """Return the Arrow type of a column with values of these kinds.

    Values of different kinds become texts. So do whole numbers of more than 64 bits, which are
    mostly identifiers, unless other numbers of the column are fractions.
    """
    import pyarrow as pa

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
    import pyarrow as pa

    types = set(map(type, values)) - {type(None)}
    if types <= {str} and pa.types.is_string(to):
        texts = {value: text_of(value) for value in set(values) if value is not None}
        return pa.array(list(map(texts.get, values)), to)
    are_numbers = types <= {int, float, bool} and not pa.types.is_string(to)
    if are_numbers and not (int in types and pa.types.is_floating(to)):
        return pa.array(values, to, from_pandas=True)
    read: Callable[[Any], Any]
    if pa.types.is_string(to):
        read = text_of
    elif pa.types.is_floating(to):
        read = _number
    elif pa.types.is_timestamp(to):
        read = _moment
    elif pa.types.is_list(to):
        read = _texts
    else:
        read = _unless_text
    return pa.array(
        [None if value is None else read(value) for value in values], to, None, None, True
    )


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


def _texts(value: Any) -> list[str | None] | None:
    if type(value) is str:
        return None
    return [None if each is None else text_of(each) for each in value]


def _moment(value: Any) -> datetime | None:
    if type(value) is date:
        return datetime.combine(value, time())
    return None if type(value) is str else value


def _number(value: Any) -> float | None:
    # Arrow refuses whole numbers that a float cannot hold to the last digit.
    return None if type(value) is str else to_float(value)


def _unless_text(value: Any) -> Any:
    # A column of numbers has texts only where they mean missing.
    return None if type(value) is str else value
