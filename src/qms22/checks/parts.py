"""Numbers in texts that are all written alike: 128/79, (42.5, -77.8), 12 x 30 cm."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, Levels
from qms22.tables.columns.kinds import level_counts

# A sign belongs to a number if nothing stands before it.
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?!\.?\d)")
# Signs of codes, whose numbers are not measured: AB12-34, 10.0.0.1, 2024_0017.
_CODE = re.compile(r"[^\W\d_]#|[-._:#]#|#[-._:]\S|#[^\W\d_]\S*#")
_LEADING_ZERO = re.compile(r"(?<![\d.])0\d")
# So many texts with so few numbers, nearly all of them written in one way, have parts.
_LEAST_TEXTS = 20
_MOST_NUMBERS = 4
_NEARLY_ALL = 0.95
_ORDINALS = ("1st", "2nd", "3rd", "4th")


@dataclass(frozen=True)
class TextParts:
    """The numbers in the texts of a column."""

    column: str
    shape: str  # how texts are written, with # for each number

    @classmethod
    def learn(cls, cells: Cells) -> TextParts | None:
        """Learn from known-normal rows; None if texts are not written alike, or are codes."""
        texts = list(compress(cells.levels, level_counts(cells)))
        shapes = Counter(_shape(text) for text in texts[:_LEAST_TEXTS])
        shape, _ = shapes.most_common(1)[0] if shapes else ("", 0)
        if not 1 < shape.count("#") <= _MOST_NUMBERS or _CODE.search(shape):
            return None
        alike = [text for text in texts if _shape(text) == shape]
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
            name: Cells(name, "number", numbers[cells.values])
            for name, numbers in zip(self.names, of_levels, strict=True)
        }

    def _numbers(self, levels: Levels) -> NDArray[np.float64]:
        gaps = ["nan"] * len(self.names)
        found = [_NUMBER.findall(text) if _shape(text) == self.shape else gaps for text in levels]
        return np.array([*found, gaps], dtype=np.float64).T


def _shape(text: str) -> str:
    return _NUMBER.sub("#", text)
