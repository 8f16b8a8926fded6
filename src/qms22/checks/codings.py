"""Columns as codes (levels, missing cells, parts of a range or of the day), texts as numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise

import numpy as np

from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import Shower, shown_cells
from qms22.checks.counting import find_places
from qms22.checks.dates import unit_of_days
from qms22.tables.columns.cells import Cells, Columns, Levels
from qms22.tables.columns.date_parts import DAY, days_between
from qms22.tables.columns.kinds import level_counts
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.words import number_text

# A sign, and letters: KFZ of KFZ-405044, /products of /products/17.
_BEGIN = re.compile(r"\W?[^\W\d_]*")

# Parts of the range of a number with about equally many normal rows each.
_PARTS = 16
_HOUR = DAY / 24
# A sign belongs to a number if nothing stands before it.
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?!\.?\d)")
# Signs of codes, whose numbers are not measured: AB12-34, 10.0.0.1, 2024_0017.
_CODE = re.compile(r"[^\W\d_]#|[-._:#]#|#[-._:]\S|#[^\W\d_]\S*#")
# Addresses of computers, whose numbers are: subnets, and ranges in them.
_ADDRESS = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})")
_OF_ADDRESS = "#.#.#.#"
_LEADING_ZERO = re.compile(r"(?<![\d.])0\d")
# So many texts with so few numbers, nearly all of them written in one way, have parts.
_LEAST_TEXTS = 20
_MOST_NUMBERS = 4
_NEARLY_ALL = 0.95
_ORDINALS = ("1st", "2nd", "3rd", "4th")


def _begins(levels: Levels) -> Levels:
    return Levels(_BEGIN.match(text)[0] for text in levels)  # type: ignore[index]  # matches always


def _ends(values: Floats) -> Floats:
    """Return the ends of parts of a range with about equally many rows."""
    present = values[~np.isnan(values)]
    if not len(present):
        return np.empty(0)
    return np.unique(np.quantile(present, np.arange(1, _PARTS) / _PARTS, method="nearest"))


@dataclass(frozen=True, eq=False)
class Coding:
    """A column as codes from 0 on; -1 stands for what no normal row has.

    A column is coded by its levels or values, where 0 stands for missing cells ("level"); by the
    letters at the beginning of texts ("begin"); by whether there is a value (0), nothing (1), a
    word (2) or the number 0 (3) ("presence"); by parts of its "range", or by "limits" in it; by
    the hour of a date ("hour"); or by parts of the days from another date ("interval").
    """

    name: str
    how: str
    levels: tuple[str, ...] = ()
    # Of numbers: those that normal rows have, or the ends of parts of their range; ascending.
    values: Floats = field(default_factory=lambda: np.empty(0))
    other: str = ""  # the date from which days count

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
        return cls(later.name, "interval", (), _ends(days_between(earlier, later)), earlier.name)

    def with_limits(self, rows: Columns, codes: Ints) -> Coding | None:
        """Return the coding by limits between codes of known-normal rows; None without any."""
        values = rows[self.name].values
        values, codes = values[~np.isnan(values)], codes[~np.isnan(values)]
        parts = sorted((values[codes == code] for code in np.unique(codes)), key=np.min)
        ends: list[float] = []
        for last, first in ((float(low.max()), high.min()) for low, high in pairwise(parts)):
            rounded = (np.ceil(last * 10.0**places) / 10.0**places for places in range(-9, 10))
            # Of what is between the two nobody knows on which side it is: a part of its own.
            ends += [last, next((float(each) for each in rounded if last <= each < first), last)]
            if last >= first:
                return None
        return replace(self, how="limits", values=np.unique(ends)) if ends else None

    def codes(self, rows: Columns) -> Ints:
        """Return the code of each row."""
        cells = rows[self.name]
        if self.how == "presence":
            codes = (~cells.has_value).astype(np.intp)
            if cells.form == "number":
                codes[cells.values == 0] = 3
            return codes if cells.words is None else codes + (cells.words >= 0)
        if self.how == "hour":
            return np.nan_to_num(cells.values % DAY // _HOUR, nan=-1.0).astype(np.intp)
        if self.how in ("range", "limits", "interval"):
            values = days_between(rows[self.other], cells) if self.other else cells.values
            return np.where(np.isnan(values), -1, np.searchsorted(self.values, values))
        if self.how == "begin" and not cells.is_text:
            return np.full(len(cells.values), -1)
        if self.levels and not cells.is_text:
            cells = to_levels(cells)
        if cells.is_text:
            texts = Levels.of(cells.levels)
            begins = texts.computed(_begins, _begins) if self.how == "begin" else texts
            known = self.levels or tuple(number_text(value) for value in self.values.tolist())
            places = begins.places_in(known)
            of_levels = np.append(np.where(places < 0, -1, places + 1), 0)
            of_cells: Ints = of_levels[cells.values]
            return of_cells
        places = find_places(self.values, cells.values)
        codes = np.where(places < len(self.values), places + 1, -1)
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

    def show(self, rows: Columns, show: Shower) -> list[str]:
        """Return cells with their column as text."""
        shown = (shown_cells(rows[name], show) for name in self.columns)
        return [" and ".join(texts) for texts in zip(*shown, strict=True)]

    def show_condition(self, rows: Columns, show: Shower) -> list[str]:
        """Return what all rows with the code of a row have: `country Austria`, `no city`."""
        texts = shown_cells(rows[self.name], show)
        codes = self.codes(rows).tolist()
        return [self._condition(code, text, show) for code, text in zip(codes, texts, strict=True)]

    def _condition(self, code: int, text: str, show: Shower) -> str:
        name = self.name
        if self.how == "presence":
            return (f"a value of {name}", f"no {name}", f"a word in {name}", f"{name} 0")[code]
        if self.how == "hour":
            return f"{name} {code:02}:00 to {code:02}:59"
        if self.how in ("range", "limits", "interval"):
            unit, factor = unit_of_days(float(np.abs(self.values).max(initial=0.0)))
            what = f"{unit} from {self.other} to {name}" if self.other else name
            if code < 0:
                return f"no {what}"
            if not self.other:
                return f"{what} {self._part(code, show)}"
            return f"{self._part(code, lambda _, days: f'{factor * days:.3g}')} {what}"
        if code == 0:
            return f"no {name}"
        return f"{name} {self.levels[code - 1]}…" if self.how == "begin" and code > 0 else text

    def _part(self, code: int, show: Shower) -> str:
        """Return a part of the range as text."""
        ends = self.values[max(code - 1, 0) : code + 1].tolist()
        texts = [show(self.name, end) for end in ends]
        if 0 < code < len(self.values):
            return " to ".join(texts)
        return f"above {texts[0]}" if code else f"up to {''.join(texts)}"

    def show_code(self, code: int, show: Shower) -> str:
        """Return what a code stands for, as text."""
        if self.how == "presence":
            return ("a value", "no value", "a word", "0")[code]
        if code == 0:
            return "no value"
        if self.levels:
            return self.levels[code - 1]
        return show(self.name, float(self.values[code - 1]))


@dataclass(frozen=True)
class TextParts:
    """The numbers in the texts of a column."""

    column: str
    shape: str  # how texts are written, with # for each number

    @classmethod
    def learn(cls, cells: Cells) -> TextParts | None:
        """Learn from known-normal rows; None if texts are not written alike, or are codes."""
        texts = list(compress(cells.levels, level_counts(cells)))
        shapes = Counter(_split(text)[0] for text in texts[:_LEAST_TEXTS])
        shape, _ = shapes.most_common(1)[0] if shapes else ("", 0)
        is_code = shape != _OF_ADDRESS and _CODE.search(shape)
        if not 1 < shape.count("#") <= _MOST_NUMBERS or is_code:
            return None
        alike = [text for text in texts if _split(text)[0] == shape]
        if len(alike) < max(_LEAST_TEXTS, _NEARLY_ALL * len(texts)):
            return None
        return None if any(map(_LEADING_ZERO.search, alike)) else cls(cells.name, shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        ordinals = _ORDINALS[: self.shape.count("#")]
        return tuple(f"{self.column} ({ordinal} number)" for ordinal in ordinals)

    def columns(self, cells: Cells) -> dict[str, Cells]:
        """Return the numbers as columns; NaN where a text is written in another way."""
        if not cells.is_text:
            return {}
        of_levels = Levels.of(cells.levels).computed(self, self._numbers)
        return {
            name: Cells(name, "number", numbers[cells.values], written=cells)
            for name, numbers in zip(self.names, of_levels, strict=True)
        }

    def _numbers(self, levels: Levels) -> Floats:
        gaps = ["nan"] * len(self.names)
        pairs = map(_split, levels)
        found = [numbers if shape == self.shape else gaps for shape, numbers in pairs]
        return np.array([*found, gaps], dtype=np.float64).T


def _split(text: str) -> tuple[str, Sequence[str]]:
    """Return how a text is written, with # for each number, and these."""
    if address := _ADDRESS.fullmatch(text):
        return _OF_ADDRESS, address.groups()
    return _NUMBER.sub("#", text), _NUMBER.findall(text)
