"""Columns of a table, packed so that a page shows them as the user knows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from qms22.report.payload import DIGITS, Payload, shorten

# Integers beyond it are not all numbers of a page.
_LARGEST_INTEGER = 2**53
_MOST_PLACES = 9
_INTEGERS = (np.int8, np.int16, np.int32)


def pack_column(name: str, values: pd.Series, payload: Payload) -> dict[str, Any]:
    """Pack a column: decimal numbers as integers, other numbers as they are, the rest as levels.

    Parameters
    ----------
    name : str
        Its heading.
    values : Series
    payload : Payload
        Gets the array.

    Returns
    -------
    dict
        What the page needs to read the column.
    """
    numbers = as_numbers(values)
    if numbers is not None:
        return {"name": name, "type": "number", **_pack_numbers(numbers, payload)}
    codes, levels = as_levels(values)
    # The number after the last level stands for a missing value.
    codes = np.where(codes < 0, len(levels), codes)
    packed = codes.astype(np.min_scalar_type(len(levels)))
    return {"name": name, "type": "text", "levels": levels, "data": payload.add(packed)}


def as_numbers(values: pd.Series) -> NDArray[np.float64] | None:
    """Give a column as numbers, NaN where they are missing, or None where it holds others."""
    dtype = values.dtype
    if (
        not types.is_numeric_dtype(dtype)
        or types.is_bool_dtype(dtype)
        or types.is_complex_dtype(dtype)
    ):
        return None
    if types.is_integer_dtype(dtype):
        ends = [int(end) for end in (values.min(), values.max()) if not pd.isna(end)]
        if any(abs(end) > _LARGEST_INTEGER for end in ends):
            return None
    if dtype in (np.float16, np.float32):
        # 0.1 in single precision is 0.1 to its owner, not 0.10000000149.
        values = values.astype(str).astype(np.float64)
    numbers: NDArray[np.float64] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def as_seconds(values: pd.Series) -> NDArray[np.float64] | None:
    """Give a column of dates as seconds since 1970, or None where it holds others."""
    if not types.is_datetime64_any_dtype(values.dtype):
        return None
    if values.dt.tz is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    seconds = (values - pd.Timestamp(0)) / pd.Timedelta(1, "s")
    return seconds.to_numpy(dtype=np.float64, na_value=np.nan)  # type: ignore[no-any-return]


def as_levels(values: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Give a column as texts: the number of each row's text, -1 where it is missing, and the texts.

    Parameters
    ----------
    values : Series
        Of anything.

    Returns
    -------
    codes : ndarray of shape (n,)
    levels : list of str
        In the order of their first rows.
    """
    if types.is_datetime64_any_dtype(values.dtype):
        # Without the time of day where it is midnight in all rows.
        values = values.astype(str).where(values.notna(), None)
    try:
        codes, unique = pd.factorize(values)
    except TypeError:  # lists and other values without a hash
        codes, unique = pd.factorize(values.map(str))
    texts = [str(level) for level in unique]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    # Two values may read the same, such as 1 and "1"; the last place is for -1, missing.
    renumbered = np.array([*(numbers[text] for text in texts), -1], dtype=np.intp)
    return renumbered[codes], list(numbers)


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
    """Count the decimal places that hold all numbers to the bit, or None."""
    if not np.isfinite(numbers).all():
        return None
    largest = np.abs(numbers).max(initial=0)
    for places in range(_MOST_PLACES + 1):
        scale = 10.0**places
        if largest > _LARGEST_INTEGER / scale:
            return None
        if (np.rint(numbers * scale) / scale == numbers).all():
            return places
    return None
