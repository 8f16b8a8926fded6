"""Columns of numbers and dates, written as another table writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np

from qms22.tables.columns.cells import Cells, Form, from_codes, show_value
from qms22.tables.columns.kinds import level_counts, some_levels
from qms22.tables.columns.plan import ColumnPlan
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.date_format import DateFormat, find_date_format
from qms22.tables.texts.number_format import NumberFormat, find_number_format
from qms22.tables.texts.text_columns import LEAST_SHARE
from qms22.tables.texts.words import BOOLEANS

Format: TypeAlias = NumberFormat | DateFormat


@dataclass(frozen=True)
class Writing:
    """How a table writes the numbers or dates of a column."""

    form: Form  # how the table stores them
    format: Format  # how they are written as texts

    def fits(self, cells: Cells) -> bool:
        """Return whether nearly all cells of a column can be read so."""
        if not cells.is_text and (cells.form == self.form or cells.form == "date"):
            return cells.form == self.form or isinstance(self.format, DateFormat)
        texts, counts = some_levels(to_levels(cells))
        reads = ~np.isnan(self.format.read(texts))
        return not counts.sum() or bool(np.average(reads, weights=counts) >= LEAST_SHARE)

    def is_of(self, form: Form) -> bool:
        """Return whether values have a form: "number" or "date"."""
        return form == ("date" if isinstance(self.format, DateFormat) else "number")

    def has_unit_of(self, other: Writing) -> bool:
        """Return whether values have the same meaning, where one of the two has no unit."""
        if isinstance(self.format, DateFormat) or isinstance(other.format, DateFormat):
            return type(self.format) is type(other.format)
        units = {self.format.unit, other.format.unit}
        return len(units) == 1 or ("" in units and "%" not in units)

    def show(self, value: float) -> str:
        """Return a value as text, with all of its digits."""
        if self.form == "date":
            return show_value("date", value)
        if isinstance(self.format, DateFormat):
            return self.format.show(value)
        return self.format.write_exactly(value)


class Rewriting(NamedTuple):
    """How a column is written, and how it is to be written."""

    old: Writing
    new: Writing

    def apply(self, cells: Cells) -> Cells:
        """Return a column in the new writing; cells that are no numbers or dates do not change."""
        if cells.is_text:
            levels, codes = cells.levels, cells.values
            values = self.old.format.read(levels)
        else:
            values, codes = np.unique(cells.values, return_inverse=True)
            levels = ("",) * len(values)  # of missing cells
        if self.new.form != "text" and not any(compress(levels, np.isnan(values))):
            return Cells(cells.name, self.new.form, np.append(values, np.nan)[codes])
        texts = [
            self.new.show(value) if value == value else level or None
            for value, level in zip(values.tolist(), levels, strict=True)
        ]
        return from_codes(cells.name, "text", codes, texts)

    def count(self, cells: Cells) -> int:
        """Return how many cells of a column can be read in the new writing, and not in the old."""
        texts = to_levels(cells)
        old, new = (writing.format.read(texts.levels) for writing in self)
        is_new = np.isnan(old) & ~np.isnan(new)
        return int(level_counts(texts)[is_new].sum())


def find_writing(cells: Cells) -> Writing | None:
    """Return how a table writes a column of numbers or dates; None if it has other values."""
    if cells.form == "number":
        return Writing("number", NumberFormat())
    if cells.form == "date":
        return Writing("date", DateFormat())
    if cells.form != "text" or not (cells.values >= 0).any():
        return None
    texts, counts = some_levels(cells)
    dates = find_date_format(texts, counts)
    if dates is not None:
        return Writing("text", dates) if dates.family == "date" else None
    numbers = find_number_format(texts, counts)
    return None if numbers is None else Writing("text", numbers)


def writing_of(plan: ColumnPlan) -> Writing | None:
    """Return how the table that an encoder has learned writes a column; None for other kinds."""
    if plan.kind == "date":
        dates = plan.date_format or DateFormat()
        return Writing("date", dates) if dates.family == "date" else None
    if plan.kind != "number":
        return None
    numbers = plan.number_format or NumberFormat()
    is_plain = numbers.decimal == "." and not numbers.unit
    return Writing("number" if is_plain else "text", numbers)


def write_truths(cells: Cells, words: Mapping[float, str]) -> Cells:
    """Return a column with true and false in other words."""
    texts = to_levels(cells)
    truths = [BOOLEANS.get(level.strip().lower()) for level in texts.levels]
    levels = [
        level if truth is None else words.get(truth, level)
        for truth, level in zip(truths, texts.levels, strict=True)
    ]
    return from_codes(cells.name, "text", texts.values, levels)
