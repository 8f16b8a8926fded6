"""A product of two numbers that has a limit: a power, a load, an area."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import NumberCheck, Said, Shower, Usual, shown_cells
from qms22.checks.surprise import NumberReference
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.texts.words import number_text

# Columns whose pairs are looked at, of more values than a code has.
_MOST_COLUMNS = 60
_LEAST_VALUES = 50
# The part of the normal rows that is the end of their products, and how many rows that takes.
_END = 0.05
_LEAST_ROWS = 20
# So many rows beyond the last one would be expected if the end went on as the products of numbers
# of different rows do: by chance there is none of them in one of 20,000 ends.
_LEAST_MISSING = 10.0
# The largest of k excesses of an exponential tail is about log k + 0.58 times their mean, that of a
# normal one three quarters of it. At a limit it is less than this share.
_AT_LIMIT = 0.6
_EULER = 0.58
# Limits of a table: those that say most.
_MOST_LIMITS = 20


@dataclass(frozen=True, eq=False)
class ProductLimitCheck(NumberCheck):
    """A product of two numbers beyond a limit that normal rows come close to."""

    has_low: bool
    has_high: bool

    def numbers(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Return the products."""
        one, other = (rows[name].values for name in self.columns)
        with np.errstate(over="ignore"):
            products: NDArray[np.float64] = one * other
        return products

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd products are, at the ends that are limits."""
        middle = self.reference.ascending[len(self.reference.ascending) // 2]
        is_high = self.numbers(rows, own=own) > middle
        is_looked_at = np.where(is_high, self.has_high, self.has_low)
        return np.where(is_looked_at, super().surprise(rows, own=own), 0.0)

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return both numbers."""
        for cells in zip(*(shown_cells(rows[name], show) for name in self.columns), strict=True):
            yield " × ".join(cells)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return the product, and the ends of those of normal rows."""
        n, ends = self.reference.n, self.reference.ascending[[0, -1]].tolist()
        low_to_high = " to ".join(map(_short, ends))
        usual = Usual("rule", f"{' × '.join(self.columns)} is {low_to_high}")
        for product in self.numbers(rows).tolist():
            said = f" is {_short(product)}; in {n:,} normal rows it is {low_to_high}"
            yield Said(said, usual)


def learn_product_limits(
    rows: Columns, numbers: Sequence[str], seed: int
) -> list[ProductLimitCheck]:
    """Learn which products of two numbers of known-normal rows have limits.

    They are compared with products of numbers of different rows, drawn by the seed.
    """
    names = [name for name in numbers if _has_many_values(rows[name].values)][:_MOST_COLUMNS]
    if len(names) < 2 or _END * count_rows(rows) < _LEAST_ROWS:
        return []
    order = np.random.RandomState(seed).permutation(count_rows(rows))
    found: list[tuple[float, ProductLimitCheck]] = []
    for at, name in enumerate(names[1:], start=1):
        values = rows[name].values
        for other in names[:at]:
            with np.errstate(over="ignore"):
                products = rows[other].values * values
                by_chance = rows[other].values * values[order]
            missing = [_missing_beyond(sign * products, sign * by_chance) for sign in (-1, 1)]
            reference = NumberReference.learn(products) if any(missing) else None
            if reference is not None:
                check = ProductLimitCheck((name, other), reference, *(each > 0 for each in missing))
                found.append((max(missing), check))
    found.sort(key=lambda each: -each[0])
    return [check for _, check in found[:_MOST_LIMITS]]


def _has_many_values(values: NDArray[np.float64]) -> bool:
    """Whether numbers are measured, and none is negative."""
    return not (values < 0).any() and len(np.unique(values[~np.isnan(values)])) > _LEAST_VALUES


def _missing_beyond(products: NDArray[np.float64], by_chance: NDArray[np.float64]) -> float:
    """Return how many rows seem to be missing beyond a limit; 0 if there is none."""
    last = np.fmax.reduce(products)
    n_beyond = int(np.count_nonzero(by_chance > last))
    if n_beyond < _LEAST_MISSING:
        return 0.0
    present = products[~np.isnan(products)]
    n_end = int(_END * len(present))
    if n_end < _LEAST_ROWS:
        return 0.0
    end = np.partition(present, len(present) - n_end - 1)[-n_end - 1 :]
    excesses = end[1:] - end[0]
    if last - end[0] > _AT_LIMIT * (math.log(n_end) + _EULER) * excesses.mean():
        return 0.0
    # In the last half before the limit.
    middle = (end[0] + last) / 2
    n_there = int(np.count_nonzero(end > middle)) - 1
    n_by_chance = int(np.count_nonzero((by_chance > middle) & (by_chance <= last)))
    missing = n_there * n_beyond / max(n_by_chance, 1)
    return missing if missing >= _LEAST_MISSING else 0.0


def _short(number: float) -> str:
    """Return a product with the digits that matter."""
    return number_text(float(f"{number:.5g}"))
