"""What all checks share, and words of their reasons."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.surprise import NumberReference, surprise_of_few
from qms22.tables.columns.cells import Cells, Columns

# Levels that normal rows have, in words.
MOST_LISTED = 6
# A rule needs so many normal rows that it is about; and a table has so many, those that say most.
LEAST_ROWS = 30
MOST_RULES = 20
# Numbers with more digits are those of a computer, and shown rounded.
_LONG = re.compile(r"[-+.\deE]{13,}")

# Write a number of a column as its table does.
Shower: TypeAlias = Callable[[str, float], str]


class Usual(NamedTuple):
    """What normal rows have where a row is odd.

    Parameters
    ----------
    kind : {"range", "levels", "value", "form", "rule"}
        What the values are: the ends of a range, the most frequent levels, a predicted value, or a
        text of the usual form. A rule, about more than the cell, is told by its text alone.
    text : str
        As the table writes it: "10 to 24.50".
    values : tuple of float, str or None
        Numbers; or else levels, dates and texts as the table writes them. None for an open end.
    """

    kind: str
    text: str
    values: tuple[float | str | None, ...] = ()

    @classmethod
    def of_values(cls, kind: str, cells: Cells, values: Sequence[float], show: Shower) -> Usual:
        """Return numbers or dates of a column; those of a range once if they are written alike."""
        shown = [show(cells.name, value) for value in values]
        data = values if cells.form == "number" else shown
        return cls(kind, " to ".join(dict.fromkeys(shown)), tuple(data))

    @classmethod
    def of_levels(cls, counts: Ints, count: int, show: Callable[[int], str]) -> Usual | None:
        """Return the levels that most rows have, if they are in more than the odd one is."""
        order = np.argsort(-counts, kind="stable")
        more = order[counts[order] > count]
        shown = [show(code) for code in more[:MOST_LISTED].tolist()]
        text = ", ".join(shown)
        if n_more := len(more) - len(shown):
            text += f" and {n_more:,} more"
        return cls("levels", text, tuple(shown)) if shown else None


class Said(NamedTuple):
    """What a check says of a row: a sentence or the end of one, and what is usual instead."""

    text: str
    usual: Usual | None = None


@dataclass(frozen=True, eq=False)
class Check(ABC):
    """One way in which a cell or a row can be odd.

    A check learns from known-normal rows and keeps what it needs to judge others.
    """

    columns: tuple[str, ...]  # those it blames, the first one most; none if it blames the whole row
    more: tuple[str, ...] = field(default=(), kw_only=True)  # others it looks at, such as derived

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return self.columns + self.more

    @abstractmethod
    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd rows are, about −log p; 0 is not odd at all.

        With `own` these are the rows it has learned from: each is compared with the others.
        """

    def aligned(self, batch: Columns) -> Check:
        """Return the check for a batch, compared without what all of its rows have done."""
        return self

    def describe(self, rows: Columns, show: Shower) -> list[Said]:
        """Return in words what is odd about rows: a sentence on each."""
        pairs = zip(self.subjects(rows, show), self.clauses(rows, show), strict=True)
        return [said._replace(text=subject + said.text) for subject, said in pairs]

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return what the sentences are about: the cells to blame."""
        return shown_cells(rows[self.columns[0]], show)

    @abstractmethod
    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return what the sentences say about these."""


@dataclass(frozen=True, eq=False)
class NumberCheck(Check):
    """A check of a number of each row, of which too high and too low ones are odd."""

    reference: NumberReference

    def numbers(self, rows: Columns, *, own: bool = False) -> Floats:
        """Return the number of each row; NaN stands for none."""
        return rows[self.columns[0]].values

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd the numbers are."""
        return self.reference.surprise(self.numbers(rows, own=own), own=own)

    def aligned(self, batch: Columns) -> Self:
        """Return the check for a batch that may have moved as a whole."""
        return replace(self, reference=self.reference.aligned(self.numbers(batch)))


@dataclass(frozen=True, eq=False)
class RuleCheck(Check):
    """A check of a rule that hardly any normal row breaks."""

    n_broken: int  # normal rows that break it
    n: int  # normal rows that it is about
    at_once: ClassVar[int] = 1  # rows that break it together: none does alone

    @abstractmethod
    def breaks(self, rows: Columns) -> Bools:
        """Return which rows break the rule."""

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd it is that a row breaks the rule."""
        surprise = surprise_of_few(self.n_broken - self.at_once * own, self.n)
        return np.where(self.breaks(rows), surprise, 0.0)

    @property
    def kept_in(self) -> str:
        """How many normal rows keep the rule, in words."""
        kept = f"{self.n - self.n_broken:,} of" if self.n_broken else "all"
        return f"{kept} {self.n:,} normal rows"


def shown_cells(cells: Cells, show: Shower) -> list[str]:
    """Return cells with their column as text, as the table writes them."""
    name, texts, written = cells.name, cells.to_array().tolist(), cells.written
    if not cells.is_text:
        texts = [None if np.isnan(each) else show(name, each) for each in texts]
    if not cells.is_text and written is not None:
        pairs = list(zip(written.to_array().tolist(), texts, strict=True))
        if written.name == name:
            texts = [
                whole if whole and not _LONG.fullmatch(whole) else text for whole, text in pairs
            ]
        else:
            part, name = name.removeprefix(f"{written.name} (").removesuffix(")"), written.name
            texts = [text and f"{whole} ({part} {text})" for whole, text in pairs]
    if cells.words is not None:
        words = zip(cells.words.tolist(), texts, strict=True)
        texts = [f"“{cells.levels[word]}”" if word >= 0 else text for word, text in words]
    return [f"{name} is missing" if text is None else f"{name} {text}" for text in texts]


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return some names as text: a, b and 2 more."""
    shown = list(names[:most])
    if n_more := len(names) - len(shown):
        shown.append(f"{n_more} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def never_seen(n_rows: int, levels: Sequence[str]) -> str:
    """Return in words that no normal row has a level, and which they have if there are few."""
    which = f" ({', '.join(levels)})" if len(levels) <= MOST_LISTED else ""
    return f"never seen in {n_rows:,} normal rows{which}"


def share_of_rows(count: int, n_rows: int) -> str:
    """Return in words how many normal rows there are: a number if few, else a share."""
    if count == 0:
        return f"none of {n_rows:,} normal rows"
    if count < 10 or count < 0.001 * n_rows:
        return f"{count:,} of {n_rows:,} normal rows"
    return f"{percent(count / n_rows)} of normal rows"


def percent(share: float) -> str:
    """Return a share in percent, with two digits that matter."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
