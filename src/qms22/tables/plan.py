"""How one column of a table becomes columns of the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qms22.tables.cells import Cells, Form, show_value
from qms22.tables.kinds import (
    Kind,
    Verdict,
    convert_to_kind,
    first_unlike,
    infer_kind,
)
from qms22.tables.words import number_text

DAY = 86_400e6  # microseconds
USED: frozenset[Kind] = frozenset({"numeric", "boolean", "categorical", "date"})
OTHER, UNSEEN = "(other)", "(unseen)"


class ColumnValueError(ValueError):
    """A column holds a value that is not of the kind it has in the normal rows."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class ColumnInfo:
    """Description of a column.

    Parameters
    ----------
    name : str
    kind : str
        "numeric", "boolean", "categorical", "date", "identifier", "text" or "constant".
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
    """What the encoder has learned of a column; plain values only, so that it can be saved.

    Parameters
    ----------
    name, kind, note, date_format : str
        As in `Verdict`.
    outputs : tuple of str
        Names of its columns in the matrix; none if it is ignored.
    typical : float
        The typical value of the normal rows, which replaces missing ones: the median, or the
        position in `levels` of the most frequent one (the number of levels if it is pooled).
    levels : tuple of str
        Levels with a column each.
    pooled : tuple of str
        Rarer ones, which share a column.
    first : float
        The first date.
    """

    name: str
    kind: Kind
    note: str = ""
    date_format: str = ""
    outputs: tuple[str, ...] = ()
    typical: float = 0.0
    levels: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()
    first: float = 0.0

    def show_typical(self) -> str:
        """Return the typical value as text."""
        if not self.outputs:
            return ""
        if self.kind == "categorical":
            return (*self.levels, OTHER)[int(self.typical)]
        return show_value(self.kind, self.typical)

    def values(self, cells: Cells, *, is_part: bool = False) -> NDArray[np.float64]:
        """Return a column's values as numbers, with NaN for missing ones.

        The value of a category is the position of its column in `outputs`.

        Parameters
        ----------
        cells : Cells
        is_part : bool
            Whether these are only some rows, which may all have unknown levels.

        Raises
        ------
        ValueError
            If a value is not of the kind that the column has in the normal rows.
        """
        if cells.missing.all():
            return np.full(len(cells.values), np.nan)
        if self.kind == "categorical":
            return self._level_numbers(cells, is_part)
        converted = convert_to_kind(cells, self.kind, self.date_format)
        if converted is None:
            row = first_unlike(cells, self.kind, self.date_format)
            raise ColumnValueError(self.name, self._retyped(cells, row))
        infinite = np.flatnonzero(np.isinf(converted))
        if infinite.size:
            raise ColumnValueError(
                self.name,
                f"column {self.name!r} has {infinite.size} infinite (inf) values (first at row "
                f"{cells.number(infinite[0])}); correct or remove them",
            )
        return converted

    def typed(self, cells: Cells) -> Cells:
        """Return a column with its values converted to the kind of the plan, if all of them fit."""
        if self.kind not in _FORMS:
            return cells
        converted = convert_to_kind(cells, self.kind, self.date_format)
        return (
            cells
            if converted is None
            else replace(cells, form=_FORMS[self.kind], values=converted, levels=())
        )

    def encode(self, values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the columns of the matrix from the result of `values` without missing ones."""
        if self.kind == "categorical":
            out[:] = values[:, np.newaxis] == np.arange(len(self.outputs))
        elif self.kind == "date":
            for at, name in enumerate(self.outputs):
                part = next(part for part in _DATE_PARTS if name.endswith(f" ({part})"))
                out[:, at] = _DATE_PARTS[part](values, self.first)
        else:
            out[:, 0] = values

    def _level_numbers(self, cells: Cells, is_part: bool) -> NDArray[np.float64]:
        numbers = {level: at for at, level in enumerate(self.levels)}
        numbers.update(dict.fromkeys(self.pooled, len(self.levels)))
        unseen = len(self.outputs) - 1
        if cells.is_text:
            found = [float(numbers.get(level, unseen)) for level in cells.levels]
            taken: NDArray[np.float64] = np.array([*found, np.nan])[cells.values]
            return taken
        present = ~cells.missing
        different = np.unique(cells.values[present])
        texts = [self._text(value, cells.form) for value in different]
        are_levels = is_part or bool(numbers.keys() & set(texts))
        if present.any() and (cells.form in ("date", "other") or not are_levels):
            raise ColumnValueError(self.name, self._retyped(cells, int(np.argmax(present))))
        found = [float(numbers.get(text, unseen)) for text in texts]
        result = np.full(len(cells.values), np.nan)
        result[present] = np.array(found)[np.searchsorted(different, cells.values[present])]
        return result

    def _text(self, value: float, form: str) -> str:
        """Return a number or a boolean as the level of a text column."""
        if form != "boolean":
            return number_text(float(value))
        words = (show_value(form, value), show_value(form, value).title())
        return next((word for word in words if word in self.levels + self.pooled), words[0])

    def _retyped(self, cells: Cells, row: int) -> str:
        found = cells.show(row) if cells.form != "other" else "something else"
        hint = f" (dates are written {self.date_format} first there)" if self.date_format else ""
        return (
            f"column {self.name!r} is {self.kind} among the normal rows{hint} but holds {found} "
            f"here (row {cells.number(row)}); correct the values or ignore the column"
        )


def plan_column(cells: Cells, min_frequency: float, *, ignored: bool = False) -> ColumnPlan:
    """Decide from the normal rows how to encode a column.

    Parameters
    ----------
    cells : Cells
    min_frequency : float
        Levels in fewer rows than this are pooled.
    ignored : bool
        Whether the user has asked to leave the column out.
    """
    verdict = infer_kind(cells)
    if ignored or verdict.kind not in USED:
        reasons = ["ignored, as asked"] if ignored else [verdict.note, "ignored"]
        note = "; ".join(filter(None, reasons))
        return ColumnPlan(cells.name, verdict.kind, note, verdict.date_format)
    if verdict.kind == "categorical":
        return _plan_levels(cells, verdict, min_frequency)
    bare = ColumnPlan(cells.name, verdict.kind, verdict.note, verdict.date_format)
    values = bare.values(cells)
    present = values[~np.isnan(values)]
    if verdict.kind == "date":
        return _plan_dates(bare, present)
    typical = float(np.median(present))
    if verdict.kind == "boolean":
        typical = float(present.mean() > 0.5)
    return replace(bare, outputs=(cells.name,), typical=typical)


def _plan_levels(cells: Cells, verdict: Verdict, min_frequency: float) -> ColumnPlan:
    counts = np.bincount(cells.values[cells.values >= 0], minlength=len(cells.levels)).tolist()
    count_of = dict(sorted(zip(cells.levels, counts, strict=True)))
    kept = tuple(level for level, count in count_of.items() if count >= min_frequency)
    pooled = tuple(level for level, count in count_of.items() if count < min_frequency)
    columns = [*kept, OTHER, UNSEEN] if pooled else [*kept, UNSEEN]
    # max returns the first of equally frequent levels.
    most = max(count_of, key=lambda level: count_of[level])
    note = f"{len(count_of)} levels" + (f", of which {len(pooled)} are pooled" if pooled else "")
    return ColumnPlan(
        cells.name,
        verdict.kind,
        note,
        outputs=tuple(f"{cells.name}={column}" for column in columns),
        typical=float(kept.index(most) if most in kept else len(kept)),
        levels=kept,
        pooled=pooled,
    )


def _plan_dates(bare: ColumnPlan, present: NDArray[np.float64]) -> ColumnPlan:
    first = float(present.min())
    parts = ["days"]
    if len(np.unique(present % DAY)) > 1:
        parts += ["hour sine", "hour cosine"]
    if len(np.unique(present // DAY % 7)) > 1:
        parts += ["weekday sine", "weekday cosine"]
    since = f"days since {show_value('date', first - first % DAY)}"
    cycles = [what for what in ("hour", "weekday") if f"{what} sine" in parts]
    note = since + (f", {' and '.join(cycles)} as sine and cosine" if cycles else "")
    return replace(
        bare,
        note="; ".join(filter(None, [note, bare.note])),
        outputs=tuple(f"{bare.name} ({part})" for part in parts),
        # A date that occurs, not one between two of them.
        typical=float(np.sort(present)[(len(present) - 1) // 2]),
        first=first - first % DAY,
    )


def _angle(values: NDArray[np.float64], period: str) -> NDArray[np.float64]:
    """Return the time of day or the weekday as an angle; midnight and Monday are 0."""
    # 1970 began on a Thursday.
    turns = values % DAY / DAY if period == "hour" else (values // DAY + 3) % 7 / 7
    return 2 * np.pi * turns


_FORMS: dict[Kind, Form] = {"numeric": "number", "boolean": "boolean", "date": "date"}
_DATE_PARTS: dict[str, Callable[[NDArray[np.float64], float], NDArray[np.float64]]] = {
    "days": lambda values, first: (values - first) / DAY,
    "hour sine": lambda values, _: np.sin(_angle(values, "hour")),
    "hour cosine": lambda values, _: np.cos(_angle(values, "hour")),
    "weekday sine": lambda values, _: np.sin(_angle(values, "weekday")),
    "weekday cosine": lambda values, _: np.cos(_angle(values, "weekday")),
}
