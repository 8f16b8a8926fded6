"""Numbers that are never above another one of their row: net and gross, part and whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Check, Shower, share_of_rows, shown_cells
from qms22.checks.surprise import surprise_of_few
from qms22.tables.columns.cells import Columns

# A rule needs so many normal rows with both numbers, and nearly all of them have to keep it.
_LEAST_ROWS = 30
_MOST_BROKEN = 0.002
# Among numbers of different rows it has to be broken at least so often: else it says nothing.
_LEAST_BROKEN_BY_CHANCE = 0.05
# Rules of a table: those that say most.
_MOST_RULES = 20


@dataclass(frozen=True)
class OrderCheck(Check):
    """A number above another one of its row, where normal rows have it at or below.

    Its columns are the lower number and the higher one.
    """

    n_broken: int  # normal rows that break the rule
    n: int  # normal rows with both numbers

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd it is that a row breaks the rule."""
        low, high = (rows[name].values for name in self.columns)
        surprise = surprise_of_few(max(self.n_broken - own, 0), self.n)
        with np.errstate(invalid="ignore"):
            return np.where(low > high, surprise, 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return in words how many normal rows break the rule."""
        how_many = share_of_rows(self.n_broken, self.n)
        for other in shown_cells(rows[self.columns[1]], show):
            yield f" is above {other}, as in {how_many}"


def learn_orders(rows: Columns, numbers: Sequence[str], seed: int) -> list[OrderCheck]:
    """Learn which numbers of known-normal rows are never above others.

    To see whether a rule says anything, rows drawn by the seed are compared.
    """
    rng = np.random.RandomState(seed)
    found: list[tuple[float, OrderCheck]] = []
    for low, high in permutations(numbers, 2):
        one, other = rows[low].values, rows[high].values
        both = ~np.isnan(one) & ~np.isnan(other)
        one, other = one[both], other[both]
        if (n := len(one)) < _LEAST_ROWS:
            continue
        n_broken = int(np.count_nonzero(one > other))
        if n_broken > _MOST_BROKEN * n:
            continue
        by_chance = float(np.mean(one > other[rng.permutation(n)]))
        if by_chance >= _LEAST_BROKEN_BY_CHANCE:
            found.append((by_chance, OrderCheck((low, high), n_broken, n)))
    found.sort(key=lambda each: -each[0])
    return [check for _, check in found[:_MOST_RULES]]
