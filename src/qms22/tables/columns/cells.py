"""Columns of any table in one form, so that results do not depend on the library."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables.texts.words import BOOLEANS, number_text

Form = Literal["number", "boolean", "date", "text", "category", "other"]

# The longest text, with some blanks, that may be true or false.
LONGEST_TRUTH = 8
# Characters of a text in a message: half a line.
_MOST_SHOWN = 50


class Levels(tuple[str, ...]):
    """Different texts; what parts of a column ask about them is computed once for all parts."""

    @classmethod
    def of(cls, texts: tuple[str, ...]) -> Levels:
        """Return texts as levels."""
        return texts if isinstance(texts, cls) else cls(texts)

    @cached_property
    def _computed(self) -> dict[int, tuple[object, Any]]:
        return {}

    def computed(self, key: object, compute: Callable[[Levels], Any]) -> Any:
        """Return what a function makes of the texts; it is called once for each key."""
        found = self._computed.get(id(key))
        if found is None:
            # With the key: no other object can have its number then.
            found = self._computed[id(key)] = (key, compute(self))
        return found[1]

    def places_in(self, known: Sequence[str]) -> NDArray[np.intp]:
        """Return the position of each text among known ones, -1 for others."""

        def find(levels: Levels) -> NDArray[np.intp]:
            numbers = {level: at for at, level in enumerate(known)}
            return np.fromiter((numbers.get(level, -1) for level in levels), np.intp, len(levels))

        places: NDArray[np.intp] = self.computed(known, find)
        return places


@dataclass(frozen=True, eq=False)
class Cells:
    """One column."""

    name: str
    # How the table stores it. A "category" is text that the table declares categorical; "other"
    # stands for values that cannot be used, such as lists.
    form: Form
    # Numbers, 0 and 1, or microseconds since 1970 in local time, with NaN for missing values; for
    # texts, positions in `levels`, with -1 for missing values.
    values: NDArray[Any]
    # The different texts, in the order in which they occur; with `words`, those of the words.
    levels: tuple[str, ...] = ()
    # The numbers of the rows in the table that they come from.
    numbers: NDArray[np.integer[Any]] | None = None
    # In a column of numbers, booleans or dates: the positions in `levels` of cells with a text that
    # is none ("-", "unknown", "inf"), whose values are NaN; -1 elsewhere.
    words: NDArray[np.intp] | None = None
    zone: str | None = None  # the time zone of moments, "" for local time
    has_commas: bool = False  # whether the file has decimal commas in these numbers
    # Texts: those that these numbers are parts of; where rows are shown, as the file has them.
    written: Cells | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", Levels.of(self.levels))

    def level_places(self, known: Sequence[str]) -> NDArray[np.intp]:
        """Return the position of each level among known texts, -1 for others."""
        return Levels.of(self.levels).places_in(known)

    def is_among(self, known: Sequence[str]) -> NDArray[np.bool_]:
        """Return which cells have one of some texts; none has in a column of other values."""
        if not self.is_text:
            return np.zeros(len(self.values), dtype=bool)
        found: NDArray[np.bool_] = np.append(self.level_places(known) >= 0, False)[self.values]
        return found

    @property
    def level_hashes(self) -> NDArray[np.uint64]:
        """A number for each level, the same in every run, and one for missing cells at the end."""
        hashes: NDArray[np.uint64] = Levels.of(self.levels).computed(_hashes, _hashes)
        return hashes

    @property
    def is_text(self) -> bool:
        """Whether `values` are positions in `levels`."""
        return self.form in ("text", "category")

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are empty."""
        return ~self.has_value if self.words is None else ~self.has_value & (self.words < 0)

    @property
    def has_value(self) -> NDArray[np.bool_]:
        """Which cells are neither empty nor words."""
        return self.values >= 0 if self.is_text else ~np.isnan(self.values)

    def to_array(self) -> NDArray[Any]:
        """Return the values; texts as objects, with None for missing ones."""
        if not self.is_text:
            return self.values
        texts: NDArray[np.object_] = np.array([*self.levels, None], dtype=np.object_)[self.values]
        return texts

    def to_series(self) -> pd.Series:
        """Return the values as a column of pandas."""
        if self.form != "date":
            return pd.Series(self.to_array())
        return pd.Series(pd.to_datetime(self.values, unit="us"))

    def take(self, rows: slice | NDArray[np.intp]) -> Cells:
        """Return some of the rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        words = None if self.words is None else self.words[rows]
        written = None if self.written is None else self.written.take(rows)
        values = self.values[rows]
        return replace(self, values=values, numbers=numbers, words=words, written=written)

    def part(self, rows: slice | NDArray[np.intp]) -> Cells:
        """Return some of the rows as a table of their own: with the levels that occur in them."""
        part = self.take(rows)
        codes = part.values if self.is_text else part.words
        if codes is None:
            return part
        order = pd.unique(codes[codes >= 0])  # in the order in which they occur
        renumbered = np.full(len(self.levels) + 1, -1, dtype=codes.dtype)
        renumbered[order] = np.arange(len(order))
        levels = Levels(self.levels[code] for code in order.tolist())
        if self.is_text:
            return replace(part, values=renumbered[codes], levels=levels)
        return replace(part, words=renumbered[codes], levels=levels)

    def number(self, row: int) -> int:
        """Return the number of a row in its table, or its position."""
        return row if self.numbers is None else int(self.numbers[row])

    def show(self, row: int) -> str:
        """Return a value as text for messages."""
        value = self.values[row]
        if self.words is not None and self.words[row] >= 0:
            return _quoted(self.levels[self.words[row]])
        return _quoted(self.levels[value]) if self.is_text else show_value(self.form, float(value))


def _hashes(levels: Levels) -> NDArray[np.uint64]:
    codes = [
        zlib.crc32(level.encode("utf-8", "surrogatepass")) + (len(level) << 32) for level in levels
    ]
    return np.array([*codes, 0], dtype=np.uint64)


# The columns of a table, or of some rows of it, by name.
Columns: TypeAlias = Mapping[str, Cells]


def count_rows(columns: Columns) -> int:
    """Return the number of rows of a table."""
    return len(next(iter(columns.values())).values) if columns else 0


def take_rows(columns: Columns, rows: NDArray[np.intp]) -> dict[str, Cells]:
    """Return some rows of a table."""
    return {name: cells.take(rows) for name, cells in columns.items()}


def part_of_rows(columns: Columns, rows: slice | NDArray[np.intp]) -> dict[str, Cells]:
    """Return some rows of a table as a table of their own."""
    return {name: cells.part(rows) for name, cells in columns.items()}


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}…"


def show_value(form: str, value: float) -> str:
    """Return a number, a boolean or a date as text for messages."""
    if form == "boolean":
        return "true" if value else "false"
    if form != "date":
        return number_text(value) if form == "identifier" else f"{value:.6g}"
    moment = np.datetime64(round(value), "us")
    coarsest = next(unit for unit in "Dms" if unit == "s" or moment == moment.astype(f"M8[{unit}]"))
    return str(moment.astype(f"M8[{coarsest}]")).replace("T", " ")


def check_names(names: Iterable[str], where: str) -> None:
    """Raise ValueError if a column name occurs twice."""
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        what = f"columns named {name!r}" if name else "columns without a name"
        raise ValueError(f"{where} has {count} {what}; give each column a name of its own")


def from_codes(
    name: str, form: Form, codes: NDArray[np.integer[Any]], texts: Sequence[str | None]
) -> Cells:
    """Return a column from positions in `texts`, some of which may be missing or the same."""
    if spelled := one_spelling(texts):
        texts = [None if text is None else spelled.get(text, text) for text in texts]
    levels = Levels(dict.fromkeys(text for text in texts if text is not None))
    if len(levels) == len(texts):
        return Cells(name, form, codes, levels)
    numbers: dict[str | None, int] = {text: at for at, text in enumerate(levels)}
    renumbered = np.array([*(numbers.get(text, -1) for text in texts), -1], dtype=codes.dtype)
    return Cells(name, form, renumbered[codes], levels)


def missing_cells(n_rows: int) -> Cells:
    """Return a column without values."""
    return Cells("", "number", np.full(n_rows, np.nan))


def one_spelling(texts: Sequence[str | None]) -> dict[str, str]:
    """Return new texts for true and false, if a column has several spellings of one of them.

    Rows of several tables may be in one column: booleans of one, and words of another.
    """
    short = [text for text in texts if text is not None and len(text) <= LONGEST_TRUTH]
    truths = {text: word.title() for text in short if (word := text.strip().lower()) in BOOLEANS}
    return truths if len(truths) > len(set(truths.values())) else {}
