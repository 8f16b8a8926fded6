"""Limits: many numbers of one entity just below a round one, products beyond that of a power.

Five bills of 990 to 999 of one approver are odd, and so is a load beyond all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import betainc

from qms22._runtime import exact
from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import Check, NumberCheck, Said, Shower, Usual, share_of_rows, shown_cells
from qms22.checks.codings import Coding
from qms22.checks.counting import find_places
from qms22.checks.sequences.in_order import Derived, Orders
from qms22.checks.surprise import NumberReference, TailReference
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.texts.words import number_text

# Limits are 1, 2 and 5 times a power of ten; so near below one, as a share of it, is just below.
_ROUND = np.array([1.0, 2.0, 5.0, 10.0])
_NEAR = 0.02
# They are compared with those at most so far from the limit, of which this share is just below.
_AROUND = 0.1
_SHARE = _NEAR / (2 * _AROUND)
# What hardly varies may be near a limit all along: 80 % of the numbers differ by so many times.
_LEAST_RATIO = 3.0
# As many numbers of an entity say how often it is near a limit as those of all others do.
_POOLED = 20.0
# Fewer different numbers are near a limit by chance.
_LEAST_COUNT = 4

# Columns whose pairs are looked at, of more values than a code has.
_MOST_COLUMNS = 60
_LEAST_VALUES = 50
# The part of the normal rows that is the end of their products, and how many rows that takes.
_END = 0.05
_LEAST_AT_END = 20
# So many rows beyond the last one would be expected if the end went on as the products of numbers
# of different rows do: by chance there is none of them in one of 20,000 ends.
_LEAST_MISSING = 10.0
# The largest of k excesses of an exponential tail is about log k + 0.58 times their mean, that of a
# normal one three quarters of it. At a limit it is less than this share.
_AT_LIMIT = 0.6
_EULER = 0.58
# Limits of a table: those that say most.
_MOST_LIMITS = 20


def limits_above(values: Floats) -> Floats:
    """Return the round limits that numbers are just below; NaN for others.

    >>> limits_above(np.array([995.0, 1000.0, 4910.0, 970.0])).tolist()
    [1000.0, nan, 5000.0, nan]
    """
    positive = np.where((values > 0) & (values < np.inf), values, np.nan)
    power = 10.0 ** np.floor(np.log10(positive))
    limits = power * _ROUND[np.searchsorted(_ROUND[:-1], positive / power, side="right") % 4]
    found: Floats = np.where(positive >= (1 - _NEAR) * limits, limits, np.nan)
    return found


def varies_widely(values: Floats, entities: Ints) -> bool:
    """Return whether numbers of the same entity differ by much, in most entities."""
    known = np.flatnonzero((values > 0) & (entities >= 0))
    ends = np.quantile(values[known], [0.1, 0.9]) if len(known) else np.ones(2)
    if ends[1] < _LEAST_RATIO * ends[0]:  # which is quick
        return False
    order = known[np.lexsort((values[known], entities[known]))]
    starts = np.flatnonzero(np.append(True, np.diff(entities[order]) > 0))
    n_rows = np.diff(np.append(starts, len(order)))
    low, high = (values[order][starts + n_rows * tenths // 10] for tenths in (1, 9))
    return float(np.median(high / low)) >= _LEAST_RATIO


@dataclass(frozen=True)
class NearLimits(Derived):
    """How many different numbers of the entity are just below the limit of each row's.

    And how many rows the entity has, and how many of these are around the limit.
    """

    kinds: ClassVar = ("near", "size", "around")

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Count the rows of each entity."""
        values, in_order = rows[self.name].values, orders(self.entity)
        entities = in_order.put(in_order.entities)
        limits = limits_above(values)
        near = np.flatnonzero(~np.isnan(limits) & rows[self.entity].has_value)
        different, numbers = np.unique(
            np.stack([entities[near], limits[near], values[near]]), axis=1, return_inverse=True
        )
        _, cases, counts = np.unique(different[:2], axis=1, return_inverse=True, return_counts=True)
        found = np.zeros((3, len(values)))
        found[0, near] = counts[cases.ravel()][numbers.ravel()]
        found[1] = np.bincount(entities, minlength=1)[entities]
        ascending, ranks = np.unique(values[~np.isnan(values)], return_inverse=True)
        n = len(ascending) + 1
        places = np.sort(entities[~np.isnan(values)] * n + ranks)
        first, last = (
            entities[near] * n + np.searchsorted(ascending, limits[near] * end)
            for end in (1 - _AROUND, 1 + _AROUND)
        )
        found[2, near] = np.searchsorted(places, last) - np.searchsorted(places, first)
        return found

    def learn(self, rows: Columns) -> LimitCheck:
        """Learn from known-normal rows, with their derived columns."""
        coding = Coding.of_levels(rows[self.entity])
        near, codes = limits_above(rows[self.name].values), coding.codes(rows)
        there = ~np.isnan(near)
        limits, places = np.unique(near[there], return_inverse=True)
        counts = np.zeros((coding.n_codes, len(limits)))
        counts[codes[there], places] = rows[self.keys[0]].values[there]
        sizes = np.bincount(codes, minlength=coding.n_codes).astype(np.float64)
        nothing = TailReference.learn(np.zeros(1))
        check = LimitCheck(self.columns, coding, limits, counts, sizes, nothing, more=self.keys)
        entities, of_limits = (places.ravel() for places in np.indices(counts.shape))
        own = check.evidence(entities, of_limits, counts.ravel(), sizes[entities], own=True)
        return replace(check, reference=TailReference.learn(np.append(own, 0.0)))


@dataclass(frozen=True, eq=False)
class LimitCheck(Check):
    """More numbers of an entity just below a round limit than usual.

    Its columns are the number and the entity.
    """

    coding: Coding  # the entities of normal rows
    limits: Floats  # ascending
    counts: Floats  # different numbers of each entity just below each limit
    sizes: Floats  # rows of each entity
    reference: TailReference  # how odd the counts of normal entities are, each once

    def evidence(
        self, codes: Ints, places: Ints, counts: Floats, sizes: Floats, *, own: bool = False
    ) -> Floats:
        """Compute −log of how likely so many of the rows of an entity are just below a limit."""
        # One more limit and entity, of which normal rows have none.
        known = np.pad(self.counts, ((0, 1), (0, 1)))
        of_entity, n_own = known[codes, places], np.append(self.sizes, 0)[codes]
        others = known.sum(axis=0)[places] - of_entity + 0.5
        shares = others / (self.sizes.sum() - n_own + 1.0)
        if not own:
            shares = (of_entity + _POOLED * shares) / (n_own + _POOLED)
        return _unlikely(counts, sizes, shares)

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd it is that so many numbers of the entity are just below a limit."""
        counts, sizes, around = (rows[key].values for key in self.more)
        places = find_places(self.limits, limits_above(rows[self.columns[0]].values))
        evidence = self.evidence(self.coding.codes(rows), places, counts, sizes, own=own)
        surprise = np.minimum(self.reference.surprise(evidence, own=own), evidence)
        # Where the whole batch is elsewhere than normal rows, there are as many above the limit.
        surprise = np.minimum(surprise, _unlikely(counts, around, _SHARE))
        return np.where(counts >= _LEAST_COUNT, surprise, 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how many numbers of the entity are near the limit, and what is usual."""
        name, entity = self.columns
        counts, sizes, _ = (rows[key].values.tolist() for key in self.more)
        limits, n = limits_above(rows[name].values).tolist(), int(self.sizes.sum())
        usual = dict(zip(self.limits.tolist(), self.counts.sum(axis=0).tolist(), strict=True))
        lists = shown_cells(rows[entity], show), counts, sizes, limits
        for of, count, size, limit in zip(*lists, strict=True):
            if np.isnan(limit):
                yield Said("")
                continue
            found = f"one of {count:.0f} just below {limit:,.15g} in {size:,.0f} rows of {of}"
            yield Said(f", {found}; {share_of_rows(int(usual.get(limit, 0)), n)} are there")


def _unlikely(counts: Floats, sizes: Floats, shares: Floats | float) -> Floats:
    """Compute −log of how likely at least so many are, if each is with a probability."""
    likely = betainc(np.maximum(counts, 1), np.maximum(sizes - counts, 0) + 1, shares)
    return np.where(counts > 0, -exact.log(np.maximum(likely, 1e-300)), 0.0)


@dataclass(frozen=True, eq=False)
class ProductLimitCheck(NumberCheck):
    """A product of two numbers beyond a limit that normal rows come close to."""

    has_low: bool
    has_high: bool

    def numbers(self, rows: Columns, *, own: bool = False) -> Floats:
        """Return the products."""
        one, other = (rows[name].values for name in self.columns)
        with np.errstate(over="ignore"):
            products: Floats = one * other
        return products

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
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
    if len(names) < 2 or _END * count_rows(rows) < _LEAST_AT_END:
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


def _has_many_values(values: Floats) -> bool:
    """Whether numbers are measured, and none is negative."""
    return not (values < 0).any() and len(np.unique(values[~np.isnan(values)])) > _LEAST_VALUES


def _missing_beyond(products: Floats, by_chance: Floats) -> float:
    """Return how many rows seem to be missing beyond a limit; 0 if there is none."""
    last = np.fmax.reduce(products)
    n_beyond = int(np.count_nonzero(by_chance > last))
    if n_beyond < _LEAST_MISSING:
        return 0.0
    present = products[~np.isnan(products)]
    n_end = int(_END * len(present))
    if n_end < _LEAST_AT_END:
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
    return number_text(float(f"{number:.5g}"))
