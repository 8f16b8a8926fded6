"""Columns of Arrow, of data frames and of arrays as cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as of

from qms22.tables.columns.cells import (
    LONGEST_TRUTH,
    Cells,
    Levels,
    check_names,
    from_codes,
    one_spelling,
)
from qms22.tables.columns.python_values import arrow_column, column_type, value_types
from qms22.tables.columns.typed import to_levels

# Of texts that are Python values no other ones mean missing.
_BLANK = frozenset({""})
# Columns of frames, besides numbers and times, that Arrow has types for.
_ARROW_TYPES = (nw.Boolean, nw.String, nw.Categorical, nw.Enum)


def as_narwhals(table: Any, name: str = "the table") -> nw.DataFrame[Any] | None:
    """Return a data frame as narwhals frame, or None if it is not a data frame.

    Raise ValueError if it is lazy, or if two columns have the same name as text.
    """
    if type(table).__name__ == "LazyFrame":
        raise ValueError(f"{name} is a lazy frame, which is not read yet; call its collect() first")
    try:
        frame = nw.from_native(table, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        check_names(map(str, getattr(table, "column_names", table.columns)), name)
        raise
    if not isinstance(frame, nw.DataFrame):
        return None
    check_names(map(str, frame.columns), name)
    return frame


def frame_cells(table: Any) -> list[Cells] | None:
    """Return the columns of a data frame."""
    frame = as_narwhals(table)
    if frame is None:
        return None
    pairs = zip(frame.columns, frame.iter_columns(), strict=True)
    columns = [_from_series(str(name), series) for name, series in pairs]
    # A pandas frame that is a part of a table has the positions of its rows there as index.
    index = getattr(table, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") not in ("i", "u"):
        return columns
    numbers = np.asarray(index)
    return [replace(cells, numbers=numbers) for cells in columns]


def _from_series(name: str, series: Any) -> Cells:
    dtype = series.dtype
    if dtype.is_numeric() or dtype.is_temporal() or dtype in _ARROW_TYPES:
        try:
            return arrow_cells(name, pa.chunked_array([series.to_arrow()]))
        except (pa.ArrowException, TypeError, ValueError):
            pass  # only the first rows decide on the type of a column of objects
    return column_of_values(name, series.to_list())


def column_of_values(name: str, values: Sequence[Any]) -> Cells:
    """Return a column of Python values, all of one type or as texts."""
    series = pd.Series(values, dtype=object)
    present = series.where(series.notna(), None).tolist()
    types = value_types(present, _BLANK)
    # Whole numbers become floats, however large they are.
    to = column_type(types | {pa.float64()} if pa.int64() in types else types)
    return arrow_cells(name, pa.chunked_array([arrow_column(present, to, _BLANK)]))


def arrow_cells(name: str, column: pa.ChunkedArray) -> Cells:
    """Return an Arrow column."""
    kind = column.type
    if of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind):
        return Cells(name, "number", _arrow_floats(column))
    if of.is_boolean(kind):
        return Cells(name, "boolean", _arrow_floats(column.cast(pa.int8())))
    if of.is_timestamp(kind):
        return Cells(name, "date", _arrow_microseconds(column), zone=kind.tz or "")
    if of.is_date(kind):
        return replace(arrow_cells(name, column.cast(pa.timestamp("us"))), zone=None)
    if of.is_duration(kind):
        return Cells(name, "number", _arrow_microseconds(column) / 1e6)
    if of.is_dictionary(kind):
        return replace(to_levels(arrow_cells(name, column.cast(kind.value_type))), form="category")
    if _is_string(kind):
        return _from_arrow_texts(name, column)
    if of.is_list(kind) or of.is_large_list(kind):  # which may be long
        is_list = column.is_valid().to_numpy()
        return Cells(name, "other" if is_list.any() else "number", np.where(is_list, 0.0, np.nan))
    return column_of_values(name, column.to_pylist())


def _is_string(kind: pa.DataType) -> bool:
    return bool(of.is_string(kind) or of.is_large_string(kind))


def _arrow_floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    return values


def _arrow_microseconds(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return times or durations, those of a time zone in its local time."""
    if getattr(column.type, "tz", None):
        column = pc.local_timestamp(column)
    is_time = of.is_timestamp(column.type)
    if is_time and column.type.unit == "ns":  # a cast would round those before 1970 up
        column = pc.floor_temporal(column, unit="microsecond")
    to = pa.timestamp("us") if is_time else pa.duration("us")
    return _arrow_floats(column.cast(to, safe=False).cast(pa.int64()))


def _from_arrow_texts(name: str, column: pa.ChunkedArray) -> Cells:
    # Chunks together may have more than 2 GiB of texts.
    encoded = pc.dictionary_encode(column.cast(pa.large_string()).combine_chunks())
    codes, texts = pc.fill_null(encoded.indices, -1).to_numpy(), encoded.dictionary
    lengths = pc.binary_length(texts)
    is_blank = pc.or_(pc.utf8_is_space(texts), pc.equal(lengths, 0))
    short = texts.filter(pc.less_equal(lengths, LONGEST_TRUTH))
    truths = short.filter(pc.match_substring_regex(short, r"(?i)^\s*(true|false)\s*$"))
    if pc.any(is_blank).as_py() or one_spelling(truths.to_pylist()):
        levels = pc.if_else(is_blank, None, texts).to_pylist()
        return from_codes(name, "text", codes, levels)
    return Cells(name, "text", codes, Levels(texts.to_pylist()))
