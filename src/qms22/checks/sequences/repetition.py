"""Rows that repeat: values that are stuck, and many rows of one entity at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import Check, Said, Shower, Usual, listed, shown_cells
from qms22.checks.codings import Coding
from qms22.checks.copies import COPIES, derived_name
from qms22.checks.sequences.in_order import Derived, Orders
from qms22.checks.surprise import TailReference
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.columns.date_parts import DAY

# Where so many normal rows after each other are equal, a value that stays is nothing odd.
_LONGEST_RUN = 5
# The most that one more equal value counts for, in units of −log p.
_MOST_A_STEP = 5.0
# As many rows of an entity say how often its values repeat as all others together do.
_POOLED = 10.0
# Values in a larger share of the normal rows are common.
_COMMON = 0.01
# A burst has so many times the rows that are usual, within this many deviations of chance.
_BURST = 2
_DEVIATIONS = 2.0
_LEAST_BURST = 4
# Two rows may agree by chance.
_LEAST_COUNT = 3
# Parts of a row add up to whole ones but for rounding.
_DECIMALS = 6


@dataclass(frozen=True)
class Runs(Derived):
    """How many rows after each other have the number of each row."""

    kinds: ClassVar = ("run",)

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Count rows; one that is there again, also with its date, is no new value."""
        in_order, copies = orders(self.entity), rows[COPIES].values
        values = rows[self.name].values[in_order.rows]
        weights = 1.0 / copies if self.date in rows else np.ones(len(copies))
        goes_on = (values[1:] == values[:-1]) & (np.diff(in_order.entities) == 0)
        places = np.cumsum(np.append(0, ~goes_on)[: len(values)])
        return in_order.put(np.bincount(places, weights[in_order.rows]).round(_DECIMALS)[places])

    def learn(self, rows: Columns) -> RepetitionCheck | None:
        """Learn how many known-normal rows after each other are equal; None if many are."""
        cells, of_rows = rows[self.name], rows[self.keys[0]].values
        # Rows that are counted together are one case, and leave together.
        counts, n_rows = np.unique(of_rows, return_counts=True)
        if counts.max(initial=0) > _LONGEST_RUN:
            return None
        cases = np.repeat(counts, np.ceil(n_rows / np.maximum(counts, 1)).astype(np.intp))
        share = 1.0 - len(cases) / max(int(n_rows.sum()), 1)
        rate = _rates(np.array(share))
        reference = TailReference.learn(rate * (cases - 1.0))
        # A value that is common anyway is soon there again.
        values, n_rows = np.unique(cells.values[cells.has_value], return_counts=True)
        shares = n_rows / max(len(cells.values), 1)
        usual = Coding(self.name, "level", (), values[shares >= _COMMON])
        of_values = np.concatenate([[np.inf], -exact.log(shares[shares >= _COMMON]), [np.inf]])
        rates = [(usual, of_values if self.entity else np.minimum(of_values, rate))]
        if self.entity:  # And a room of the two that are dear.
            rates.insert(0, _rates_of(rows, self.entity, of_rows, share))
        most = int(cases.max(initial=1))
        return RepetitionCheck(self.columns, reference, self, most, tuple(rates), more=self.keys)


@dataclass(frozen=True, eq=False)
class Standstill(Derived):
    """How unlikely it is that numbers of each row are those of the row before.

    An instrument that sends its last measurements once more repeats many of them at once.
    """

    # The numbers, with the values that many normal rows have, and how much each of these says.
    usual: tuple[tuple[str, Floats, Floats], ...]
    kinds: ClassVar = ("same",)

    @classmethod
    def find(cls, rows: Columns, names: Sequence[str], entity: str, date: str) -> Standstill | None:
        """Return it for columns of numbers; None if these are too few."""
        usual = []
        for name in names:
            values = rows[name].values
            different, counts = np.unique(values[rows[name].has_value], return_counts=True)
            is_common = counts >= _COMMON * len(values)
            usual.append((name, different[is_common], _rates(counts[is_common] / len(values))))
        return cls(date, entity, date, tuple(usual)) if len(usual) >= _LEAST_COUNT else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers, and the entity."""
        return (*(name for name, *_ in self.usual), *filter(None, [self.entity]))

    @property
    def needs(self) -> tuple[str, ...]:
        """The date as well."""
        return (*self.columns, self.date)

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Add up what equal numbers say, if there are some; copies of a row are no new one."""
        in_order = orders(self.entity)
        order, times = in_order.rows, rows[self.date].values
        is_next = (np.diff(in_order.entities) == 0) & (np.diff(times[order]) > 0)
        found, n_equal = np.zeros(len(order)), np.zeros(len(order))
        for name, values, rates in self.usual:
            numbers = rows[name].values[order]
            is_equal = np.append(False, is_next & (numbers[1:] == numbers[:-1]))[: len(order)]
            places = np.minimum(np.searchsorted(values, numbers), max(len(values) - 1, 0))
            rate = np.full(len(order), _MOST_A_STEP)
            if len(values):
                rate = np.where(values[places] == numbers, rates[places], rate)
            found += np.where(is_equal, rate, 0.0)
            n_equal += is_equal
        says: Floats = in_order.put(np.where(n_equal >= _LEAST_COUNT, found, 0.0))
        return says

    def learn(self, rows: Columns) -> StandstillCheck:
        """Learn how much known-normal rows repeat."""
        reference = TailReference.learn(rows[self.keys[0]].values)
        return StandstillCheck(self.columns, reference, self, more=(*self.keys, self.date))


@dataclass(frozen=True, eq=False)
class StandstillCheck(Check):
    """A row with the numbers of the row before, more of them or rarer ones than usual."""

    reference: TailReference  # how much normal rows repeat
    counted: Standstill

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd it is, at most as odd as chance makes it."""
        says = rows[self.more[0]].values
        surprise: Floats = np.minimum(self.reference.surprise(says, own=own), says)
        return surprise

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return the names of the numbers: which of them are equal is not kept."""
        return [listed([name for name, *_ in self.counted.usual])] * count_rows(rows)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return whose row before it repeats."""
        entity, usual = self.counted.entity, Usual("rule", "other numbers than in the row before")
        of = [f" of {each}" for each in shown_cells(rows[entity], show)] if entity else None
        for each in of or [""] * count_rows(rows):
            repeats = f" repeat much of the row before{each}"
            yield Said(f"{repeats}, as hardly any normal rows do", usual)


@dataclass(frozen=True)
class Bursts(Derived):
    """How many rows there are of the entity of each row, at most half of some hours away."""

    hours: int
    kinds: ClassVar = ("count",)

    @property
    def keys(self) -> tuple[str, ...]:
        """The name of the derived column."""
        return (derived_name("count", self.entity, self.date, self.hours),)

    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Count rows; others than normal ones only if they are more than its other ones make."""
        in_order, times = orders(self.entity), rows[self.date].values
        present = np.flatnonzero(~np.isnan(times) & rows[self.entity].has_value)
        counts = np.ones(len(times))
        if not len(present):
            return counts
        numbers, window = in_order.put(in_order.entities)[present], self.hours * DAY / 24
        # Entities one after the other, with a gap between them.
        since = times[present] - times[present].min()
        moments = numbers * (since.max() + 2 * window) + since
        ascending = np.sort(moments)
        last = np.searchsorted(ascending, moments + window / 2, side="right")
        n_near = last - np.searchsorted(ascending, moments - window / 2, side="left")
        share = min(1.0, window / max(since.max(), 1.0))
        expected = share * (np.bincount(numbers)[numbers] - n_near)
        usual = _BURST * (expected + _DEVIATIONS * np.sqrt(expected))
        counts[present] = n_near if are_normal else np.where(n_near <= usual, 1.0, n_near)
        return counts

    def learn(self, rows: Columns) -> RepetitionCheck:
        """Learn how many known-normal rows of an entity are there at once."""
        of_rows = rows[self.keys[0]].values.astype(np.intp)
        coding, rates = _rates_of(rows, self.entity, of_rows)
        codes, base = coding.codes(rows), int(of_rows.max(initial=1)) + 1
        cases, n_rows = np.unique(codes * base + of_rows, return_counts=True)
        cases = np.repeat(cases, np.ceil(n_rows / (cases % base)).astype(np.intp))
        # Who is there often may be there often at once: the rarest entities come first.
        sizes = np.bincount(codes, minlength=coding.n_codes)
        cases = cases[np.argsort(sizes[cases // base], kind="stable")]
        entities, counts = cases // base, cases % base
        most = np.maximum.accumulate(counts)
        second = np.maximum.accumulate(np.minimum(counts, np.append(1, most[:-1])))
        reach = np.append(sizes, len(codes))
        last = np.searchsorted(sizes[entities], reach, side="right") - 1
        reference = TailReference.learn(rates[entities] * (counts - 1.0))
        limits = np.stack([most, second])[:, last]
        of_all = reference, self, base - 1, ((coding, rates),), limits
        return RepetitionCheck((self.entity, self.date), *of_all, more=self.keys)


@dataclass(frozen=True, eq=False)
class RepetitionCheck(Check):
    """More equal values after each other, or more rows of one entity in an hour, than usual.

    Its columns are the one to blame, and those that say which rows belong together.
    """

    reference: TailReference  # the evidence of normal rows, each case once
    counted: Runs | Bursts
    most: int  # the largest count of normal rows
    # How much one more row says at most: −log of the share of normal rows that are not the first,
    # by codes of columns; of those that no normal row has, the last.
    rates: tuple[tuple[Coding, Floats], ...]
    # Of bursts, the two largest counts of entities that are as frequent or less, by codes of these.
    limits: Ints | None = None

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd counts are, at most as odd as chance makes so many."""
        counts = rows[self.more[0]].values
        rates = [of_codes[coding.codes(rows)] for coding, of_codes in self.rates]
        evidence = np.min(rates, axis=0) * (counts - 1.0)
        surprise = np.minimum(self.reference.surprise(evidence, own=own), evidence)
        is_odd = counts >= _LEAST_COUNT
        if self.limits is not None:
            # Business grows: only a multiple of what there was at most is a burst.
            most, second = self.limits[:, self.rates[0][0].codes(rows)]
            others = np.where(own & (counts == most), second, most)
            is_odd &= counts > np.maximum(_BURST * others, _LEAST_BURST)
        return np.where(is_odd, surprise, 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how many rows there are, and how many at most among normal ones."""
        counts = rows[self.more[0]].values.tolist()
        of, most, how = [""] * len(counts), [self.most] * len(counts), "after each other"
        if isinstance(self.counted, Bursts):
            how = "within an hour" if self.counted.hours == 1 else "within a day"
        elif self.counted.entity:
            of = [f" of {entity}" for entity in shown_cells(rows[self.counted.entity], show)]
        if self.limits is not None:
            most = self.limits[0, self.rates[0][0].codes(rows)].tolist()
        for count, entity, limit in zip(counts, of, most, strict=True):
            found = f"{int(count):,} rows{entity} {how}"
            such = "" if limit == self.most else f" of a {self.columns[0]} as frequent"
            if count > limit:
                usual = Usual("rule", f"at most {int(limit):,} rows {how}")
                yield Said(f" in {found}; at most {int(limit):,} in normal rows{such}", usual)
            else:  # Longer runs of normal rows are of values that are common.
                yield Said(f" in {found}, as in hardly any normal rows")


def _rates_of(
    rows: Columns, entity: str, counts: NDArray[np.float64 | np.intp], share: float | None = None
) -> tuple[Coding, Floats]:
    """Return how much one more row of each entity says; a share is that of all other entities."""
    coding = Coding.of_levels(rows[entity])
    codes, again = coding.codes(rows), 1.0 - 1.0 / counts
    sums, n_own = (np.bincount(codes, each, coding.n_codes) for each in (again, None))
    if share is None:
        share = float(np.mean(sums[n_own > 0] / n_own[n_own > 0]))
    pooled = (sums + _POOLED * share) / (n_own + _POOLED)
    return coding, _rates(np.append(pooled, share))


def _rates(shares: Floats) -> Floats:
    return np.minimum(-exact.log(shares), _MOST_A_STEP)
