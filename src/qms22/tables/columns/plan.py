"""How one column of a table becomes columns of the matrix."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, Levels, show_value
from qms22.tables.columns.date_parts import date_part, part_of
from qms22.tables.columns.typed import Reader, are_truths, read_booleans, to_levels, to_numbers
from qms22.tables.texts.date_format import DateFormat
from qms22.tables.texts.number_format import NumberFormat
from qms22.tables.texts.words import is_number_text, number_text

Kind = Literal["number", "boolean", "category", "date", "identifier", "text", "constant"]

OTHER, MISSING, UNSEEN = "(other)", "(missing)", "(unseen)"


@dataclass(frozen=True)
class ColumnInfo:
    """Description of a column.

    Parameters
    ----------
    name : str
    kind : str
        "number", "boolean", "category", "date", "identifier", "text" or "constant".
    note : str
        What the encoder does with it, if that is not obvious.
    outputs : tuple of int
        Its columns in the matrix; none if it is ignored.
    """

    name: str
    kind: str
    note: str
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ColumnPlan:
    """What the encoder has learned of a column; plain values only, so that it can be saved."""

    name: str
    kind: Kind  # a detector can use "number", "boolean", "category" and "date" columns
    # The reason for the kind, and what the encoder does with it, if that is not obvious.
    note: str = ""
    date_format: DateFormat | None = None  # how its dates are written, if that is known
    # Names of its columns in the matrix; none if it is ignored. Those of the value come first, then
    # those of missing cells and of words.
    outputs: tuple[str, ...] = ()
    # The typical value of the normal rows: the median, or the position of the most frequent level
    # in `outputs`. It replaces what has no value.
    typical: float = 0.0
    # Levels of a category with a column each; of other kinds, words with a column each. The only
    # level of a constant that is a text or a boolean.
    levels: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()  # rarer ones, which share a column
    first: float = 0.0  # the first date
    # What a missing cell is: the typical value, besides it a column of its own, or, for a category
    # without missing cells in the normal rows, an unseen level.
    gaps: Literal["typical", "own", "unseen"] = "typical"
    number_format: NumberFormat | None = None  # how its numbers are written, if that is known
    # Whether unseen levels of a category are usual; they are then among the pooled ones.
    is_open: bool = False
    # Levels of a category that say nothing: all of its columns are 0 for them.
    neutral: tuple[str, ...] = ()

    def show(self, value: float) -> str:
        """Return a value as the table writes it.

        The value is a number, 0 or 1, microseconds since 1970, or the position of a level among the
        outputs.
        """
        if self.kind == "category":
            return self.outputs[int(value)].removeprefix(f"{self.name}=")
        form = self.date_format if self.kind == "date" else self.number_format
        return show_value(self.kind, value) if form is None else form.show(value)

    def typed(self, cells: Cells) -> Cells:
        """Return a column converted to the kind of the plan; cells that do not fit become words.

        Categories become texts. A constant that is true or false is a boolean, also in a table that
        has to store it as text because of a missing cell or a word.
        """
        if self.kind in ("number", "boolean", "date"):
            return to_numbers(cells, self.kind, self._reader())
        if self.kind == "constant" and are_truths(self.levels):
            return to_numbers(cells, "boolean", read_booleans)
        is_asked = self.kind == "text" and cells.form == "number"
        if (self.kind != "category" or cells.is_text) and not is_asked:
            return cells
        texts = to_levels(cells)
        if cells.form != "boolean":
            return texts
        # A table writes True and another one TRUE.
        known = {level.strip().lower(): level for level in (*self.levels, *self.pooled)}
        return replace(texts, levels=tuple(known.get(text, text) for text in texts.levels))

    def encode(self, cells: Cells, out: NDArray[np.float64]) -> None:
        """Write the columns of the matrix from the result of `typed`."""
        n_values = 0
        if self.kind != "category":
            n_values = len(self.value_outputs)
            self._encode_values(np.where(cells.has_value, cells.values, self.typical), out)
        if n_values < len(self.outputs):
            places = self._places(cells)[:, np.newaxis]
            out[:, n_values:] = places == np.arange(len(self.outputs) - n_values)

    def encode_typical(self, out: NDArray[np.float64]) -> None:
        """Write the columns of the matrix of the typical value."""
        out[:] = 0.0
        if self.kind == "category":
            out[:, int(self.typical)] = 1.0
        else:
            self._encode_values(np.full(len(out), self.typical), out)

    @property
    def value_outputs(self) -> tuple[str, ...]:
        """The outputs without those of missing cells and of words."""
        if self.kind == "category":
            return self.outputs
        n_others = (self.gaps == "own") + len(self.levels) + bool(self.pooled)
        return self.outputs[: len(self.outputs) - n_others]

    @property
    def has_texts(self) -> bool:
        """Whether it is a category with a level that is no number as a table of numbers has it."""
        levels = (*self.levels, *self.pooled)
        return self.kind == "category" and any(
            not is_number_text(level) or number_text(float(level)) != level for level in levels
        )

    def without_parts(self, parts: Collection[str]) -> ColumnPlan:
        """Return a plan without some parts of a date, by `part_name`; ignored if none is left."""
        if self.kind != "date" or not any(part_of(output) in parts for output in self.outputs):
            return self
        if all(part_of(output) in parts for output in self.value_outputs):
            return replace(self, outputs=())
        rest = tuple(output for output in self.outputs if part_of(output) not in parts)
        return replace(self, outputs=rest)

    def pool_unseen(self) -> ColumnPlan:
        """Return a plan for which unseen levels are among the pooled ones, if there are such."""
        if not (self.kind == "category" and self.pooled and self.outputs) or self.is_open:
            return self
        return replace(self, outputs=self.outputs[:-1], is_open=True)

    def leave_out(self, notes: Mapping[str, str]) -> ColumnPlan:
        """Return a plan without the column or parts of a date, by name, with a note why."""
        rest = replace(self, outputs=()) if self.name in notes else self.without_parts(notes)
        names = (self.name, *map(part_of, self.outputs))
        note = next((notes[name] for name in names if name in notes), self.note)
        return replace(rest, note=note)

    def _reader(self) -> Reader:
        if self.kind == "boolean":
            return read_booleans
        if self.kind == "date":
            return (self.date_format or DateFormat()).read
        return (self.number_format or NumberFormat()).read

    def _encode_values(self, values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        if self.kind != "date":
            out[:, 0] = values
            return
        for at, output in enumerate(self.value_outputs):
            out[:, at] = date_part(output, values, self.first)

    def _places(self, cells: Cells) -> NDArray[np.float64]:
        """Return the position of each level, gap or word in `outputs`, after those of values."""
        if self.kind == "category":
            last = len(self.outputs) - 1
            unseen = len(self.levels) if self.is_open else last
            own = last if self.is_open else last - 1
            gap = {"typical": self.typical, "own": own, "unseen": unseen}[self.gaps]
            found: NDArray[np.float64] = self._level_places(cells.levels, unseen, gap)[cells.values]
            return found
        first = int(self.gaps == "own")
        places = np.where(cells.missing, first - 1.0, -1.0)
        if cells.words is not None:
            of_words = self._level_places(cells.levels, -1 - first, np.nan)[cells.words] + first
            places = np.where(cells.words >= 0, of_words, places)
        return places

    def _level_places(
        self, levels: tuple[str, ...], unseen: float, gap: float
    ) -> NDArray[np.float64]:
        """Return the positions of levels, and in the end that of a gap; -1 stands for none."""

        def find(levels: Levels) -> NDArray[np.float64]:
            places = {level: float(at) for at, level in enumerate(self.levels)}
            places |= dict.fromkeys(self.pooled, float(len(self.levels)))
            places |= dict.fromkeys(self.neutral, -1.0)
            return np.array([places.get(level, np.nan) for level in levels])

        found = Levels.of(levels).computed(self, find)
        return np.append(np.where(np.isnan(found), unseen, found), gap)
