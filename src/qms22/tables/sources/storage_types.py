"""The types in which columns of text files are stored: numbers, booleans or texts.

A storage type only says how to keep all cells of a column without loss. What a column means (a
category, a date, an identifier) is its kind, which `kinds` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qms22.tables.texts.number_text import MOST_DIGITS
from qms22.tables.texts.words import BOOLEANS, NA, NUMBER, list_some

# Of codes, texts some of which are "NA", these are left out unless the texts are asked for.
StorageType = Literal["text", "code", "boolean", "integer", "float", "comma float"]

# Infinite values are stored as numbers, so that the encoder can name and refuse them.
_NUMBER = rf"^\s*({NUMBER}|[+-]?(?i:inf|infinity))\s*$"
_INTEGER = r"^\s*-?\d{1,18}\s*$"
_COMMA_NUMBER = rf"^\s*{NUMBER}\s*$".replace(r"\.", ",")
# "007" is a code that differs from 7.
_LEADING_ZERO = r"^\s*[+-]?0\d"
# More digits in a row are a code, which a float would round.
_MANY_DIGITS = rf"^\s*[+-]?\d{{{MOST_DIGITS + 1},}}\s*$"
_BOOLEAN = rf"^\s*(?i:{'|'.join(BOOLEANS)})\s*$"
# Bytes with which a cell with a needless zero may begin, and blanks.
_MAY_PAD, _IS_BLANK = (
    np.isin(np.arange(256), list(each)) for each in (b"0-+ \t\n\r\f\v", b" \t\n\r\f\v")
)
# The first cells tell most columns of texts; whole numbers below the limit fit into 64 bits.
_FIRST_CELLS = 100
_TOO_LARGE = 10**18


@dataclass(frozen=True)
class CellTraits:
    """Traits of the cells of a column; those of its parts add up to those of the column."""

    # Those of "number", "integer", "comma number" and "boolean" that are true of every cell that is
    # not missing; "missing" and "present" if every cell is.
    every: frozenset[str]
    # Those of "comma", "point", "leading zero" and "many digits" that some cell of a column of
    # numbers has; and "NA" if some cell is.
    some: frozenset[str]

    @classmethod
    def of(cls, column: pa.Array, separator: str) -> CellTraits:
        """Return the traits of an Arrow column of texts."""
        every, some = set(), set()
        if pc.any(pc.equal(column, NA)).as_py():
            column = _without_na(column)
            some.add(NA)
        if _are_numbers(column):
            every |= {"number", "integer"} if _are_integers(column) else {"number"}
            if separator != "," and _any(column, r"\."):
                some.add("point")
        elif _all(column.slice(0, _FIRST_CELLS), _BOOLEAN) and _all(column.unique(), _BOOLEAN):
            every.add("boolean")
        if separator != "," and _all(column, _COMMA_NUMBER):
            every.add("comma number")
            if _any(column, ","):
                some.add("comma")
        if every & {"number", "comma number"} and _any(_with_zeros(column), _LEADING_ZERO):
            some.add("leading zero")
        if "number" in every:
            long = column.filter(pc.greater(pc.binary_length(column), MOST_DIGITS))
            if _any(long, _MANY_DIGITS):
                some.add("many digits")
        if not column.null_count:
            every.add("present")
        if column.null_count == len(column):
            every.add("missing")
        return cls(frozenset(every), frozenset(some))

    def __add__(self, other: CellTraits) -> CellTraits:
        return CellTraits(self.every & other.every, self.some | other.some)

    def storage_type(self, decimal_commas: bool) -> StorageType:
        """Return the type of a column, in a table with or without decimal commas."""
        if "missing" in self.every:
            return "float"
        with_commas = decimal_commas and "comma number" in self.every
        is_code = bool(self.some & {"leading zero", "many digits"})
        if is_code or not ("number" in self.every or with_commas):
            if {"boolean", "present"} <= self.every:
                return "boolean"
            return "code" if NA in self.some else "text"
        if {"integer", "present"} <= self.every:
            return "integer"
        return "comma float" if with_commas else "float"


def fill_names(names: Sequence[str]) -> list[str]:
    """Return names, each only once, with others such as "column 3" in the place of empty ones."""
    found = []
    for at, name in enumerate(names, start=1):
        title = name or f"column {at}"
        while not name and title in names:
            title += "_"
        found.append(title)
    return found


def resolve_types(
    names: Sequence[str], traits: Sequence[CellTraits], path: str
) -> tuple[dict[str, StorageType], list[str]]:
    """Return the storage types of the columns that are used, and notes about those without a name.

    An empty column, as trailing separators make it, is left out if it has no name. So is a first
    one with whole numbers, in which pandas and R write row numbers.
    """
    notes = []
    used: dict[str, CellTraits] = {}
    called: dict[str, str] = {}
    for at, (name, title, cells) in enumerate(zip(names, fill_names(names), traits, strict=True)):
        if not name and "missing" in cells.every:
            continue
        if not name and at == 0 and {"integer", "present"} <= cells.every:
            notes.append(f"{path}: column 1 has no name and whole numbers, taken for row numbers")
            continue
        used[title] = cells
        if not name:
            called[str(at + 1)] = repr(title)
    if called:
        places, titles = list_some(list(called)), list_some(list(called.values()))
        is_one = len(called) == 1
        have = f"column {places} has" if is_one else f"columns {places} have"
        notes.append(f"{path}: {have} no name, and {'is' if is_one else 'are'} called {titles}")
    # Some column has numbers such as 1,5 and none has numbers such as 1.5.
    has = [
        any(sign in each.some and kind in each.every for each in used.values())
        for sign, kind in (("comma", "comma number"), ("point", "number"))
    ]
    return {name: each.storage_type(has == [True, False]) for name, each in used.items()}, notes


def convert(
    column: pa.Array | pa.ChunkedArray, storage_type: StorageType | None
) -> pa.Array | pa.ChunkedArray:
    """Convert an Arrow column of texts to its storage type, if it has one."""
    if storage_type in (None, "text"):
        return column
    if storage_type == "code":
        return _without_na(column)
    types = {"boolean": pa.bool_(), "integer": pa.int64()}
    if storage_type == "comma float":
        column = pc.replace_substring(column, ",", ".")
    to = types.get(storage_type, pa.float64())
    try:
        return column.cast(to)
    except pa.ArrowInvalid:  # of blanks and of "NA", which are rare
        return pc.utf8_trim_whitespace(_without_na(column)).cast(to)


def _without_na(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.if_else(pc.equal(column, NA), pa.scalar(None, column.type), column)


def _are_numbers(column: pa.Array) -> bool:
    """Return whether all cells that are not missing are numbers, or infinite."""
    if not _all(column.slice(0, _FIRST_CELLS), _NUMBER):
        return False
    try:  # which is quick, and reads no more than the pattern but words such as "NAN"
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        return _all(column, _NUMBER)
    return pc.any(pc.is_nan(numbers)).as_py() is not True


def _are_integers(column: pa.Array) -> bool:
    """Return whether all numbers that are not missing are whole ones of up to 18 digits."""
    if not _all(column.slice(0, _FIRST_CELLS), _INTEGER):
        return False
    try:
        ends = pc.min_max(column.cast(pa.int64())).as_py()
    except pa.ArrowInvalid:
        return _all(column, _INTEGER)
    return all(end is None or abs(end) < _TOO_LARGE for end in ends.values())


def _with_zeros(column: pa.Array) -> pa.Array:
    """Return the cells that may begin with a needless zero: all that do, and few others."""
    _, offsets, data = column.buffers()
    letters = np.frombuffer(data or b"\0", np.uint8)
    starts = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column)]
    last = len(letters) - 1
    found = np.flatnonzero(_MAY_PAD[letters[np.minimum(starts, last)]])
    first, second, third = (letters[np.minimum(starts[found] + at, last)] for at in range(3))
    zero, follows = np.where(first == ord("0"), (first, second), (second, third))
    is_padded = (zero == ord("0")) & (follows >= ord("0"))
    return column.take(pa.array(found[_IS_BLANK[first] | is_padded]))


def _all(column: pa.Array, pattern: str) -> bool:
    """Return whether all cells that are not missing match."""
    parts = (column.slice(0, _FIRST_CELLS), column.slice(_FIRST_CELLS))
    matches = (pc.all(pc.match_substring_regex(part, pattern)) for part in parts)
    return all(found.as_py() is not False for found in matches)


def _any(column: pa.Array, pattern: str) -> bool:
    return pc.any(pc.match_substring_regex(column, pattern)).as_py() is True
