"""Python values as columns of Arrow, and as texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from qms22.tables.texts.words import CSV_MISSING, number_text

# The largest whole number that Arrow can hold as such, and the type of larger ones.
_LARGEST = 2**63 - 1
_HUGE = pa.decimal128(38)
# Of lists and all other values, which cannot be compared.
_OTHER = pa.list_(pa.string())
_TYPES: tuple[tuple[tuple[type, ...], pa.DataType], ...] = (
    ((bool, np.bool_), pa.bool_()),
    ((Integral,), pa.int64()),
    ((Real, Decimal), pa.float64()),
    ((str,), pa.string()),
    ((date, pd.Period), pa.timestamp("us")),
    ((time,), pa.time64("us")),
    ((timedelta,), pa.duration("us")),
)


@lru_cache(maxsize=256)
def _type_of(kind: type) -> pa.DataType:
    return next((to for kinds, to in _TYPES if issubclass(kind, kinds)), _OTHER)


def value_types(
    values: Sequence[Any], missing: Collection[str] = CSV_MISSING
) -> frozenset[pa.DataType]:
    """Return the Arrow types of the values that are not `missing`; those of parts add up."""
    types = {_type_of(kind) for kind in set(map(type, values)) - {type(None)}}
    if pa.string() in types:
        texts = {value for value in values if isinstance(value, str)}
        if all(text.strip() in missing for text in texts):
            types.discard(pa.string())
    if pa.int64() in types and any(
        isinstance(value, int | np.uint64) and not -_LARGEST <= value <= _LARGEST
        for value in values
    ):
        types.add(_HUGE)
    return frozenset(types)


def column_type(types: frozenset[pa.DataType]) -> pa.DataType:
    """Return the Arrow type of a column with values of these types.

    Values of different types become texts. So do whole numbers of more than 64 bits, which are
    mostly identifiers, unless other numbers of the column are fractions.
    """
    if not types or (pa.float64() in types and types <= {pa.int64(), _HUGE, pa.float64()}):
        return pa.float64()
    return pa.string() if len(types) > 1 or types & {_HUGE, pa.time64("us")} else next(iter(types))


def arrow_column(
    values: Sequence[Any], to: pa.DataType, missing: Collection[str] = CSV_MISSING
) -> pa.Array:
    """Return values as an Arrow array of the type `to`, which `column_type` has found for them."""
    if to == pa.string():
        return pa.array([text_of(value, missing) for value in values], to)
    # Columns of these types have texts only where they mean missing.
    present = [None if isinstance(value, str) else value for value in values]
    if (convert := _CONVERTERS.get(to)) is not None:
        present = [None if value is None else convert(value) for value in present]
    return pa.array(present, to, from_pandas=True)


def text_of(value: Any, missing: Collection[str] = CSV_MISSING) -> str | None:
    """Return a value as text, as a text file would have it; None for words that mean missing."""
    if value is None:
        return None
    if isinstance(value, str):
        return None if value.strip() in missing else value
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Real | Decimal) and not isinstance(value, Integral):
        number = to_float(value)
        return None if math.isnan(number) else number_text(number)
    return str(value)


def to_float(value: Any) -> float:
    """Return a number as a float: infinite if it is too large for one, as in a text."""
    try:
        return float(value)
    except OverflowError:  # a whole number or a fraction
        return math.inf if value > 0 else -math.inf


def _texts(values: Any) -> list[str | None]:
    return [text_of(each) for each in values] if isinstance(values, list) else []


def _moment(value: Any) -> datetime:
    value = getattr(value, "start_time", value)  # of a period of pandas
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return moment.replace(tzinfo=None)


# Arrow refuses whole numbers that a float cannot hold to the last digit.
_CONVERTERS: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.float64(): to_float,
    pa.timestamp("us"): _moment,
    _OTHER: _texts,
}
