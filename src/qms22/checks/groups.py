"""A number that is usual in the table, and odd for the group that its row belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from qms22._runtime import exact
from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import NumberCheck, Said, Shower, Usual, listed, shown_cells
from qms22.checks.codings import Coding
from qms22.checks.counting import LEAST_RECURRING, find_places
from qms22.checks.relations import LARGEST, LARGEST_NUMBER
from qms22.checks.surprise import NumberReference
from qms22.tables.columns.cells import Cells, Columns, count_rows

# Rows of normal ones that the usual spread counts as at most, next to those of a group.
_OF_ALL = 5.0
# And at least.
_LEAST_OF_ALL = 1.0
# A group helps if it makes a number more predictable by so much on average, in units of −log p.
_LEAST_GAIN = 0.1
# Columns by whose pairs numbers are grouped: those that say most about each number.
_MOST_IN_PAIRS = 5
# Groupings need so many rows in each group on average.
_LEAST_ROWS = 3.0
_LEAST_IN_PAIR = 8.0
# Smaller errors, in standard deviations, are not odd.
_LEAST_ERROR = 2.0
# Rows of a group without which nothing is said about it.
_LEAST_KNOWN = 2
# A group has moved as a whole if half of so many rows of the batch are off by this much.
_LEAST_MOVED = 10
_LEAST_MOVE = 1.5
# The least deviation of a group, as a share of its mean: prices rise by some percent.
_LEAST_RATIO = 0.03
# The least variance, as a share of that of all rows: a group may be exact by chance.
_LEAST_VARIANCE = 1e-6
# Logarithms are tried if hardly any number is 0, and none is negative; zeros are not compared then.
_MOST_ZEROS = 0.05


Scale: TypeAlias = Literal["plain", "log", "log above 0"]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows grouped by one column or by two; ascending keys of the groups of normal rows."""

    codings: tuple[Coding, ...]
    keys: NDArray[np.int64]

    @classmethod
    def learn(cls, codings: tuple[Coding, ...], rows: Columns) -> Grouping:
        """Learn which groups there are."""
        grouping = cls(codings, np.empty(0, dtype=np.int64))
        keys = grouping._keys(rows)
        return replace(grouping, keys=np.unique(keys[keys >= 0]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns by which rows are grouped."""
        return tuple(coding.name for coding in self.codings)

    def numbers(self, rows: Columns) -> Ints:
        """Return the number of the group of each row; the last one stands for all others."""
        return find_places(self.keys, self._keys(rows))

    def _keys(self, rows: Columns) -> NDArray[np.int64]:
        keys = np.zeros(count_rows(rows), dtype=np.int64)
        for coding in self.codings:
            codes = coding.codes(rows)
            keys = np.where((keys < 0) | (codes < 0), -1, keys * coding.n_codes + codes)
        return keys


@dataclass(frozen=True, eq=False)
class GroupStatistics:
    """The mean and the spread of a number in each group.

    A group of few rows borrows both from all others.
    """

    # Mean and deviation of all rows, by which numbers are standardised.
    center: float
    scale: float
    # Whether numbers are logarithms; and whether 0, which has none, is not compared.
    number_scale: Scale
    variance: float  # the usual one within groups
    strength: float  # rows that it counts as: the fewer, the more groups differ in theirs
    # Rows that the mean of all groups counts as: the ratio of the variances within and between.
    shrinkage: float
    # Of each group; the last one stands for rows of no group.
    counts: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def learn(
        cls, values: Floats, groups: Ints, n_groups: int, number_scale: Scale
    ) -> GroupStatistics | None:
        """Learn from rows; None if they tell nothing about groups."""
        center, scale = float(values.mean()), float(values.std())
        if not 0 < scale < math.inf:
            return None
        standard = (values - center) / scale
        counts = np.bincount(groups, minlength=n_groups).astype(np.float64)
        sums, squares = (
            np.bincount(groups, weights, n_groups).astype(np.float64)
            for weights in (standard, standard**2)
        )
        around = squares - sums**2 / np.maximum(counts, 1)
        n_free = len(values) - np.count_nonzero(counts)
        if n_free < 1:
            return None
        within = min(max(float(around.sum()) / n_free, _LEAST_VARIANCE), 1.0)
        # All variance is 1: what is not within groups is between them.
        shrinkage = within / max(1.0 - within, _LEAST_VARIANCE)
        # Sodium varies by some percent of what glucose does: logarithms of variances are compared.
        # A row more in each, with the variance of all: a group may be exact by chance.
        half = counts[counts > 1] / 2
        logs = exact.log((around[counts > 1] + within) / 2) - digamma(half)
        usual = float(np.average(logs, weights=half))
        differences = np.average((logs - usual) ** 2 - polygamma(1, half), weights=half)
        # The logarithm of the variance of so many rows varies by two divided by them.
        strength = min(max(2.0 / max(float(differences), 1e-9), _LEAST_OF_ALL), _OF_ALL)
        of_all = min(float(exact.exp(usual)), within), strength, shrinkage
        return cls(center, scale, number_scale, *of_all, counts, sums, squares)

    def errors(self, values: Floats, groups: Ints, *, own: bool) -> tuple[Floats, Floats]:
        """Return how far numbers are off in units of the deviation of their group, and that."""
        standard = np.clip((values - self.center) / self.scale, -LARGEST, LARGEST)
        n = self.counts[groups] - own
        sums = self.sums[groups] - own * standard
        squares = self.squares[groups] - own * standard**2
        means = sums / (n + self.shrinkage)
        around = np.maximum(squares - sums**2 / np.maximum(n, 1), 0.0)
        variances = around + self.strength * self.variance
        variances /= np.maximum(n - 1, 0) + self.strength
        variances *= 1 + 1 / (n + self.shrinkage)
        is_plain = self.number_scale == "plain"
        typical = np.abs(means * self.scale + self.center) if is_plain else 1.0
        least = np.maximum(_LEAST_RATIO * typical / self.scale, math.sqrt(_LEAST_VARIANCE))
        deviations = np.maximum(np.sqrt(variances), least)
        return (standard - means) / deviations, deviations


@dataclass(frozen=True, eq=False)
class GroupCheck(NumberCheck):
    """A number that is odd for its group: the level of this meter, the price of this article.

    Its columns are the number and those of the group; its reference has the errors of normal rows.
    """

    grouping: Grouping
    statistics: GroupStatistics
    # The ends of the numbers of each group, and of rows of no group.
    lows: Floats
    highs: Floats
    shifts: Floats  # how far each group of the batch is off as a whole

    @classmethod
    def learn(
        cls, cells: Cells, grouping: Grouping, rows: Columns
    ) -> tuple[float, GroupCheck] | None:
        """Learn from known-normal rows; also return by how much the group helps to predict."""
        n_groups = len(grouping.keys) + 1
        groups = grouping.numbers(rows)
        there = ~np.isnan(cells.values)
        values, groups = cells.values[there], groups[there]
        if not len(values):
            return None
        zeros = float(np.mean(values == 0))
        scales: list[Scale] = ["plain"]
        if values.min() >= 0 and zeros <= _MOST_ZEROS:
            scales.append("log above 0" if zeros else "log")
        found = []
        for scale in scales:
            scaled = _scaled(values, scale)
            some = ~np.isnan(scaled)
            statistics = GroupStatistics.learn(scaled[some], groups[some], n_groups, scale)
            if statistics is None:
                continue
            errors, deviations = statistics.errors(scaled[some], groups[some], own=True)
            alone = (scaled[some] - statistics.center) / statistics.scale
            gain = _unlikeliness(alone, 1.0) - _unlikeliness(errors, deviations)
            found.append((_skew(errors), gain, statistics, errors))
        if not found:
            return None
        _, gain, statistics, errors = min(found, key=lambda each: each[0])
        reference = NumberReference.learn(errors, least_unit=1.0)
        if reference is None:
            return None
        lows, highs = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        np.minimum.at(lows, groups, values)
        np.maximum.at(highs, groups, values)
        columns = (cells.name, *grouping.columns)
        return gain, cls(columns, reference, grouping, statistics, lows, highs, np.zeros(n_groups))

    def numbers(self, rows: Columns, *, own: bool = False) -> Floats:
        """Return how far numbers are off for their groups; NaN where too little is known."""
        values = _scaled(rows[self.columns[0]].values, self.statistics.number_scale)
        groups = self.grouping.numbers(rows)
        errors, _ = self.statistics.errors(values, groups, own=own)
        errors = errors if own else errors - self.shifts[groups]
        return np.where(self.statistics.counts[groups] - own >= _LEAST_KNOWN, errors, np.nan)

    def aligned(self, batch: Columns) -> Self:
        """Return the check for a batch in which groups, or all rows, may have moved."""
        errors, groups = self.numbers(batch), self.grouping.numbers(batch)
        there = ~np.isnan(errors)
        errors, groups = errors[there], groups[there]
        order = np.argsort(groups, kind="stable")
        shifts = np.zeros(len(self.shifts))
        for part in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            if len(part) < LEAST_RECURRING:
                continue
            middle = float(np.quantile(errors[part], 0.5, method="lower"))
            # A new price, or another card of a customer, is in several rows.
            is_new = np.count_nonzero(errors[part] == middle) >= LEAST_RECURRING
            if abs(middle) >= _LEAST_MOVE and (is_new or len(part) >= _LEAST_MOVED):
                shifts[groups[part[0]]] = middle
        # Fields are replaced one after the other: the rest is aligned without these shifts.
        moved = replace(self, shifts=shifts)
        return super(GroupCheck, moved).aligned(batch)

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd numbers are for their groups."""
        errors = self.numbers(rows, own=own)
        shift = 0.0 if own else self.reference.shift
        is_odd = np.abs(errors - shift) >= _LEAST_ERROR
        return np.where(is_odd, self.reference.surprise(errors, own=own), 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words what is usual for the groups."""
        name, *by = self.columns
        of_groups = zip(*(shown_cells(rows[each], show) for each in by), strict=True)
        for group, cells in zip(self.grouping.numbers(rows).tolist(), of_groups, strict=True):
            if not (n := int(self.statistics.counts[group])):
                yield Said("")
                continue
            ends = float(self.lows[group]), float(self.highs[group])
            usual = Usual.of_values("range", rows[name], ends, show)
            yield Said(f"; {n:,} normal rows with {listed(list(cells))} have {usual.text}", usual)


def _scaled(values: Floats, scale: Scale) -> Floats:
    """Return numbers or their logarithms; a number that has none is far below all others."""
    if scale == "plain":
        return np.clip(values, -LARGEST_NUMBER, LARGEST_NUMBER)
    values = np.where((values == 0) & (scale == "log above 0"), np.nan, values)
    return exact.log(np.clip(values, 1 / LARGEST_NUMBER, LARGEST_NUMBER))


def _skew(errors: Floats) -> float:
    """Return how much further errors go to one side, from 0 to 1."""
    low, middle, high = np.quantile(errors, [0.01, 0.5, 0.99])
    return float(abs(low + high - 2 * middle) / max(high - low, 1e-9))


def _unlikeliness(errors: Floats, deviations: Floats | float) -> float:
    """Return the mean −log density; errors beyond three count as three: outliers do not decide."""
    return float(np.mean(exact.log(deviations) + np.minimum(errors**2, 9.0) / 2))


def learn_groups(
    rows: Columns, numbers: Sequence[str], codings: Sequence[Coding], asked: str | None = None
) -> list[GroupCheck]:
    """Learn for each number of known-normal rows the groups that say most about it.

    Numbers are also compared with those of the same group of the column that the user has `asked`
    for, whether that seems to help or not.
    """
    n_rows = count_rows(rows)
    singles = [Grouping.learn((coding,), rows) for coding in codings]
    singles = [
        each
        for each in singles
        if 1 < len(each.keys) <= n_rows / _LEAST_ROWS or each.columns == (asked,)
    ]

    @cache
    def pair(one: Grouping, other: Grouping) -> Grouping:
        return Grouping.learn((*one.codings, *other.codings), rows)

    found = []
    for name in numbers:
        tried = _ranked(rows[name], singles, rows)
        kept = [each for each in tried[:1] if each[0] >= _LEAST_GAIN]
        kept += [each for each in tried if each[1].columns[1:] == (asked,) and each not in kept]
        telling = [check.grouping for _, check in tried[:_MOST_IN_PAIRS]]
        pairs = (pair(*two) for two in combinations([x for x in singles if x in telling], 2))
        large = [each for each in pairs if len(each.keys) * _LEAST_IN_PAIR <= n_rows]
        least = (tried[0][0] if tried else 0.0) + _LEAST_GAIN
        kept += [each for each in _ranked(rows[name], large, rows)[:1] if each[0] >= least]
        found += [check for _, check in kept]
    return found


def _ranked(
    cells: Cells, groupings: Iterable[Grouping], rows: Columns
) -> list[tuple[float, GroupCheck]]:
    """Return the checks of a number by groupings, with their gains, the largest first."""
    learned = (
        GroupCheck.learn(cells, each, rows) for each in groupings if cells.name not in each.columns
    )
    return sorted(filter(None, learned), key=lambda each: -each[0])
