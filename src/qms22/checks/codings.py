"""Columns as codes: levels, values that recur, missing cells, parts of a range or of the day."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Shower, shown_cells
from qms22.tables.columns.cells import Cells, Columns, Levels
from qms22.tables.columns.date_parts import DAY
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.words import number_text

# A sign, and letters: KFZ of KFZ-405044, /products of /products/17.
_BEGIN = re.compile(r"\W?[^\W\d_]*")

# Parts of the range of a number with about equally many normal rows each.
_PARTS = 16
_HOUR = DAY / 24


def _begins(levels: Levels) -> list[str]:
    return [_BEGIN.match(text)[0] for text in levels]  # type: ignore[index]  # matches always


def _ends(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends of parts of a range with about equally many rows."""
    present = values[~np.isnan(values)]
    if not len(present):
        return np.empty(0)
    return np.unique(np.quantile(present, np.arange(1, _PARTS) / _PARTS, method="nearest"))


@dataclass(frozen=True, eq=False)
class Coding:
    """A column as codes from 0 on; -1 stands for what no normal row has.

    Parameters
    ----------
    name : str
        The column.
    how : {"level", "begin", "presence", "range", "hour", "interval"}
        By its levels or values, where 0 stands for missing cells; by the letters at the beginning
        of texts; by whether there is a value (0), nothing (1), a word (2) or the number 0 (3); by
        parts of its range; by the hour of a date; or by parts of the days from another date.
    levels : tuple of str
    values : ndarray
        Of numbers: those that normal rows have, or the ends of parts of their range; ascending.
    other : str
        The date from which days count.
    """

    name: str
    how: str
    levels: tuple[str, ...] = ()
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    other: str = ""

    @classmethod
    def of_levels(cls, cells: Cells) -> Coding:
        """Return the coding by the levels or values of known-normal rows."""
        if cells.is_text:
            return cls(cells.name, "level", tuple(cells.levels))
        present = cells.values[~np.isnan(cells.values)]
        return cls(cells.name, "level", (), np.unique(present))

    @classmethod
    def of_begins(cls, cells: Cells) -> Coding:
        """Return the coding by the letters at the beginning of texts of known-normal rows."""
        return cls(cells.name, "begin", tuple(sorted(set(_begins(Levels.of(cells.levels))))))

    @classmethod
    def of_range(cls, cells: Cells) -> Coding:
        """Return the coding by parts of the range of known-normal rows."""
        return cls(cells.name, "range", (), _ends(cells.values))

    @classmethod
    def of_interval(cls, earlier: Cells, later: Cells) -> Coding:
        """Return the coding by parts of the days between two dates of known-normal rows."""
        days = (later.values - earlier.values) / DAY
        return cls(later.name, "interval", (), _ends(days), earlier.name)

    def codes(self, rows: Columns) -> NDArray[np.intp]:
        """Return the code of each row."""
        cells = rows[self.name]
        if self.how == "presence":
            codes = (~cells.has_value).astype(np.intp)
            if cells.form == "number":
                codes[cells.values == 0] = 3
            return codes if cells.words is None else codes + (cells.words >= 0)
        if self.how == "interval":
            days = (cells.values - rows[self.other].values) / DAY
            places = np.searchsorted(self.values, days).astype(np.intp)
            return np.where(np.isnan(days), -1, places)
        if self.how == "hour":
            hours = np.nan_to_num(cells.values % DAY // _HOUR, nan=-1.0)
            return hours.astype(np.intp)
        if self.how == "range":
            places = np.searchsorted(self.values, cells.values).astype(np.intp)
            return np.where(np.isnan(cells.values), -1, places)
        if self.how == "begin":
            if not cells.is_text:
                return np.full(len(cells.values), -1)
            begins = Levels.of(cells.levels).computed(_begins, lambda each: Levels(_begins(each)))
            places = begins.places_in(self.levels)
            return np.append(np.where(places < 0, -1, places + 1), 0).take(cells.values)
        return self._level_codes(cells)

    def _level_codes(self, cells: Cells) -> NDArray[np.intp]:
        if self.levels and not cells.is_text:
            cells = to_levels(cells)
        if cells.is_text:
            levels = self.levels or tuple(number_text(value) for value in self.values.tolist())
            places = cells.level_places(levels)
            numbers = np.append(np.where(places < 0, -1, places + 1), 0)
            of_levels: NDArray[np.intp] = numbers[cells.values]
            return of_levels
        # One more value, which none is equal to: all cells of normal rows may be missing.
        values = np.append(self.values, np.nan)
        places = np.searchsorted(self.values, cells.values)
        codes = np.where(values[places] == cells.values, places + 1, -1)
        return np.where(np.isnan(cells.values), 0, codes)

    @property
    def n_codes(self) -> int:
        """How many codes there are."""
        of_values = len(self.levels) or len(self.values)
        return {"presence": 4, "hour": 24}.get(self.how, of_values + 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return (self.name, self.other) if self.other else (self.name,)

    def show(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Return cells with their column as text."""
        texts = shown_cells(rows[self.name], places, show)
        if not self.other:
            return texts
        others = shown_cells(rows[self.other], places, show)
        return [f"{one} and {other}" for one, other in zip(texts, others, strict=True)]

    def show_condition(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Return what all rows with the code of a row have: `country Austria`, `no city`."""
        texts = shown_cells(rows[self.name], places, show)
        codes = self.codes(rows)[places].tolist()
        return [self._condition(code, text, show) for code, text in zip(codes, texts, strict=True)]

    def _condition(self, code: int, text: str, show: Shower) -> str:
        name = self.name
        if code < 0 and self.how in ("range", "interval"):
            return f"no days from {self.other} to {name}" if self.other else f"no {name}"
        if self.how == "range":
            return f"{name} {self._part(code, lambda value: show(name, value))}"
        if self.how == "interval":
            return (
                f"{self._part(code, lambda days: f'{days:.3g}')} days from {self.other} to {name}"
            )
        if self.how == "presence":
            return (f"a value of {name}", f"no {name}", f"a word in {name}", f"{name} 0")[code]
        if code == 0 and self.how != "hour":
            return f"no {name}"
        if self.how == "begin" and code > 0:
            return f"{name} {self.levels[code - 1]}…"
        return f"{name} {code:02}:00 to {code:02}:59" if self.how == "hour" else text

    def _part(self, code: int, show_end: Callable[[float], str]) -> str:
        """Return a part of the range as text."""
        low, high = (
            show_end(float(self.values[at])) if 0 <= at < len(self.values) else ""
            for at in (code - 1, code)
        )
        if not low or not high:
            return f"above {low}" if low else f"up to {high}"
        return f"{low} to {high}"

    def show_code(self, code: int, show: Shower) -> str:
        """Return what a code stands for, as text."""
        if self.how == "presence":
            return ("a value", "no value", "a word", "0")[code]
        if code == 0:
            return "no value"
        return self.levels[code - 1] if self.levels else show(self.name, self.values[code - 1])
