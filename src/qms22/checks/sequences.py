"""Rows after each other: values that are stuck, many rows of one entity at once, counters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.checks.check import Check, NumberCheck, Said, Shower, Usual, shown_cells
from qms22.checks.codings import Coding
from qms22.checks.copies import COPIES, cell_hashes, derived_name
from qms22.checks.dates import unit_of_days
from qms22.checks.limits import LimitCheck, count_near, varies_widely
from qms22.checks.single import LEAST_ENTITIES
from qms22.checks.surprise import NumberReference, TailReference, surprise_of_few
from qms22.tables.columns.cells import Cells, Columns, count_rows
from qms22.tables.columns.date_parts import DAY, has_days

_HOUR = DAY / 24
# Hours within which rows of an entity are counted.
_WINDOWS = (1, 24)
# Columns by which rows may belong together: those with the most levels, and those with the fewest.
_MOST_ENTITIES = 5
_LEAST_ROWS = 3.0
# Rows at once are counted of entities; where nearly all rows have their own, there is nothing to
# count.
_MOST_CROWDS = 0.9
# Of longer tables it takes long to look at rows after each other.
MOST_ROWS = 200_000
# Numbers with fewer values are equal in rows after each other by chance; and where so many normal
# rows after each other are equal, a value that stays is nothing odd.
_LEAST_VALUES = 20
_LONGEST_RUN = 5
# The most that one more equal value counts for, in units of −log p.
_MOST_A_STEP = 5.0
# As many rows of an entity say how often its values repeat as all others together do.
_POOLED = 10.0
# Values in a larger share of the normal rows are common.
_COMMON = 0.01
_BURST = 2
_DEVIATIONS = 2.0
_LEAST_BURST = 4
# Two rows may agree by chance.
_LEAST_COUNT = 3
# A number that never falls within nearly all entities, and mostly rises, is a counter.
_COUNTER = 0.98
# Parts of a row add up to whole ones but for rounding.
_DECIMALS = 6
_RISING = 0.5


def time_column(rows: Columns) -> str:
    """Return the date by which rows are in order: no time of day, and rising where one does."""
    found = [("", (0.0, 0))]
    for name, cells in rows.items():
        values = cells.values[cells.has_value] if cells.form == "date" else np.empty(0)
        if len(values) > 1 and has_days(cells):
            rising = round(float(np.mean(np.diff(values) >= 0)), 1)
            found.append((name, (rising, len(np.unique(values)))))
    return max(found, key=lambda each: each[1])[0]


def time_order(rows: Columns) -> NDArray[np.intp]:
    """Return rows by their date; as they are if there is none."""
    name = time_column(rows)
    return np.argsort(rows[name].values, kind="stable") if name else np.arange(count_rows(rows))


def time_distance(normal: Columns, batch: Columns) -> float:
    """Return how far a batch is from normal rows in time, in units of half of their time."""
    name = time_column(normal)
    if not name or name not in batch or batch[name].form != "date":
        return 0.0
    times, later = (table[name].values[table[name].has_value] for table in (normal, batch))
    if not len(times) or not len(later):
        return 0.0
    first, middle, last = np.quantile(times, [0.01, 0.5, 0.99])
    return float(abs(np.median(later) - middle) / max((last - first) / 2, 1.0))


def is_of_another_time(normal: Columns, batch: Columns) -> bool:
    """Return whether the middle of a batch is outside the time of the normal rows."""
    return time_distance(normal, batch) > 1.0


@dataclass(frozen=True)
class Sequences:
    """Which rows belong together, and in what order."""

    # Columns whose levels recur: a meter, a customer. "" stands for the whole table.
    entities: tuple[str, ...]
    numbers: tuple[str, ...]  # columns of numbers with many values
    date: str  # that by which rows of an entity are in order; "" for the order of the table
    counters: tuple[tuple[str, str], ...]  # entities, and numbers that rise from row to row of each
    crowds: tuple[str, ...]  # entities whose rows at once are counted
    limits: tuple[tuple[str, str], ...] = ()  # entities, and numbers that vary widely in each
    # Entities that have a row at nearly every time at which others have one, and the usual step.
    regular: tuple[tuple[str, float], ...] = ()

    @classmethod
    def learn(cls, rows: Columns, by: str | None = None, time: str | None = None) -> Sequences:
        """Learn from known-normal rows; `by` and `time` are what the user says of them."""
        n_rows = count_rows(rows)
        n_levels = {name: len(cells.levels) for name, cells in rows.items() if cells.is_text}
        levels = {name: n for name, n in n_levels.items() if 1 < n <= n_rows / _LEAST_ROWS}
        by_size = sorted(levels, key=levels.__getitem__)
        entities = list(dict.fromkeys(by_size[:_MOST_ENTITIES] + by_size[-_MOST_ENTITIES:]))
        entities = entities if by is None else [by]
        numbers = tuple(
            name
            for name, cells in rows.items()
            if cells.form == "number"
            and len(np.unique(cells.values[~np.isnan(cells.values)])) >= _LEAST_VALUES
        )
        many = (n for n, k in n_levels.items() if LEAST_ENTITIES <= k <= _MOST_CROWDS * n_rows)
        crowds = tuple(dict.fromkeys([*many, *([] if by is None else [by])]))
        bare = cls(("", *entities), numbers, time or time_column(rows), (), crowds)
        rising: dict[str, tuple[float, str]] = {}
        for entity in entities:
            order, is_first = bare.order(rows, entity)
            for name in numbers:
                steps = np.diff(rows[name].values[order])[~is_first[1:]]
                steps = steps[~np.isnan(steps)]
                if len(steps) >= _LEAST_VALUES and np.mean(steps > 0) >= _RISING:
                    share = float(np.mean(steps >= 0))
                    rising[name] = max(rising.get(name, (_COUNTER, "")), (share, entity))
        counters = tuple((entity, name) for name, (_, entity) in rising.items() if entity)
        others = [name for name in numbers if not rising.get(name, ("", ""))[1]]
        wide = tuple(
            (entity, name)
            for name in others
            for entity in entities
            if varies_widely(rows[name].values, rows[entity].values)
        )
        regular = tuple(
            (entity, step) for entity in entities if (step := bare.regular_step(rows, entity)) > 0
        )
        return replace(bare, counters=counters, limits=wide, regular=regular)

    def columns(self, rows: Columns, *, are_normal: bool = False) -> dict[str, Cells]:
        """Return run lengths, rows per hour and steps of counters as columns."""
        found: dict[str, NDArray[np.float64]] = {}
        # A row that is there again, also with its date, is no new value.
        copies = rows[COPIES].values
        weights = 1.0 / copies if self.date in rows else np.ones(len(copies))
        for entity in self.entities:
            if not entity or entity in rows:
                order, is_first = self.order(rows, entity)
                for name in (name for name in self.numbers if name in rows):
                    runs = _runs(rows[name].values, order, is_first, weights)
                    found[derived_name("run", entity, name)] = runs
        for entity in self.crowds:
            if entity in rows and self.date in rows:
                for hours in _WINDOWS:
                    counts, usual = _count_within(rows, entity, self.date, hours)
                    if not are_normal:
                        counts[counts <= _BURST * usual] = 1.0
                    found[derived_name("count", entity, self.date, hours)] = counts
        for entity, name in self.counters:
            if entity in rows and name in rows:
                found |= zip(_step_keys(entity, name), self._steps(rows, entity, name), strict=True)
        for entity, step in self.regular:
            if entity in rows and self.date in rows:
                found[derived_name("gap", entity, self.date)] = self._gaps(rows, entity, step)
        derived = {name: Cells(name, "number", values) for name, values in found.items()}
        for entity, name in self.limits:
            if entity in rows and name in rows and rows[entity].is_text:
                derived |= count_near(rows, entity, name)
        return derived

    def regular_step(self, rows: Columns, entity: str) -> float:
        """Return the usual time from row to row of an entity; 0 if it lacks more than a few."""
        if self.date not in rows:
            return 0.0
        order, is_first = self.order(rows, entity)
        steps = np.diff(rows[self.date].values[order])[~is_first[1:]]
        steps = steps[~np.isnan(steps)]
        step = float(np.median(steps)) if len(steps) >= _LEAST_VALUES else 0.0
        is_regular = step > 0 and np.mean(self._gaps(rows, entity, step)) <= 1 - _COUNTER
        return step if is_regular else 0.0

    def _gaps(self, rows: Columns, entity: str, step: float) -> NDArray[np.float64]:
        """Return at how many times before each row others have rows, and the entity has none.

        A single one may be a row that is late.
        """
        order, is_first = self.order(rows, entity)
        times = np.unique(rows[self.date].values[order] // step, return_inverse=True)[1].ravel()
        gaps = np.where(is_first[1:], 0, np.diff(times) - 1)
        found = np.zeros(len(order))
        found[order[1:]] = np.where(gaps > 1, gaps, 0)
        found[np.isnan(rows[self.date].values)] = 0
        return found

    def order(self, rows: Columns, entity: str) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the rows in order, those of an entity together, and which are the first of one."""
        n_rows = count_rows(rows)
        keys = cell_hashes(rows[entity]) if entity else np.zeros(n_rows, dtype=np.uint64)
        if self.date in rows:
            order = np.lexsort((np.arange(n_rows), rows[self.date].values, keys))
        else:
            order = np.argsort(keys, kind="stable")
        is_first = np.ones(n_rows, dtype=bool)
        is_first[1:] = keys[order][1:] != keys[order][:-1]
        return order, is_first

    def _steps(self, rows: Columns, entity: str, name: str) -> NDArray[np.float64]:
        """Return what a counter was before, and how many days ago, or rows without dates."""
        order, is_first = self.order(rows, entity)
        values = rows[name].values[order]
        days = rows[self.date].values[order] / DAY if self.date in rows else np.arange(len(order))
        there = np.isfinite(values + days)
        order, values, days = order[there], values[there], days[there]
        entities, line = np.cumsum(is_first)[there], np.arange(len(order))

        def since(places: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            is_before = (entities == entities[places]) & (days > days[places])
            return values - values[places], np.where(is_before, days - days[places], np.nan)

        one, two = np.maximum(line - 1, 0), np.maximum(line - 2, 0)
        (rise, passed), (rise_of_two, passed_of_two) = since(one), since(two)
        with np.errstate(over="ignore", invalid="ignore"):
            rates = (rise / passed)[~np.isnan(passed)]
            middle = np.median(rates) if len(rates) else 0.0
            excess, excess_of_two = rise - middle * passed, rise_of_two - middle * passed_of_two
        # A row after a wrong one follows from that before it; after a step for good none does.
        is_after_wrong = np.abs(excess_of_two) < np.abs(excess) / 2
        found = np.full((2, count_rows(rows)), np.nan)
        found[0, order] = values[np.where(is_after_wrong, two, one)]
        found[1, order] = np.where(is_after_wrong, passed_of_two, passed)
        return found


def _runs(
    values: NDArray[np.float64],
    order: NDArray[np.intp],
    is_first: NDArray[np.bool_],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how many rows after each other have the value of each row."""
    ordered = values[order]
    starts = is_first.copy()
    starts[1:] |= ordered[1:] != ordered[:-1]  # NaN equals nothing
    numbers = np.cumsum(starts) - 1
    result = np.empty(len(values))
    counts = np.bincount(numbers, weights[order]).round(_DECIMALS)
    result[order] = counts[numbers]
    return result


def _count_within(
    rows: Columns, entity: str, date: str, hours: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many rows there are of the entity of each row, at most half of that away.

    And how many its other rows let expect at any time: more than twice as many are a burst.
    """
    times = rows[date].values
    present = np.flatnonzero(~np.isnan(times) & rows[entity].has_value)
    counts, usual = np.ones(len(times)), np.zeros(len(times))
    if len(present):
        numbers = np.unique(cell_hashes(rows[entity]), return_inverse=True)[1].ravel()[present]
        # Entities one after the other, with a gap between them.
        since = times[present] - times[present].min()
        moments = numbers * (since.max() + 2 * hours * _HOUR) + since
        ascending = np.sort(moments)
        reach = hours * _HOUR / 2
        last = np.searchsorted(ascending, moments + reach, side="right")
        counts[present] = last - np.searchsorted(ascending, moments - reach, side="left")
        share = min(1.0, hours * _HOUR / max(since.max(), 1.0))
        expected = share * (np.bincount(numbers)[numbers] - counts[present])
        usual[present] = expected + _DEVIATIONS * np.sqrt(expected)
    return counts, usual


def _step_keys(entity: str, name: str) -> tuple[str, str]:
    return derived_name("before", entity, name), derived_name("passed", entity, name)


@dataclass(frozen=True)
class RepetitionCheck(Check):
    """More equal values after each other, or more rows of one entity in an hour, than usual.

    Its columns are the one to blame, and those that say which rows belong together.
    """

    key: str  # the column of counts
    reference: TailReference  # the evidence of normal rows, each case once
    most: int  # the largest count of normal rows
    # How much one more row says at most: −log of the share of normal rows that are not the first.
    rate: float
    # How much it says at most by codes of a column; of those that no normal row has, the last.
    rates: tuple[tuple[Coding, NDArray[np.float64]], ...] = ()
    # The two largest counts of entities that are as frequent or less, by codes of entities.
    limits: NDArray[np.intp] = field(default_factory=lambda: np.ones((2, 1), dtype=np.intp))

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return (*self.columns, self.key)

    @classmethod
    def of_runs(cls, rows: Columns, columns: tuple[str, ...], key: str) -> RepetitionCheck:
        """Learn from known-normal rows how many of them after each other are equal."""
        cells, of_rows = rows[columns[0]], rows[key].values
        # Rows that are counted together are one case, and leave together.
        counts, n_rows = np.unique(of_rows, return_counts=True)
        cases = np.repeat(counts, np.ceil(n_rows / np.maximum(counts, 1)).astype(np.intp))
        share = 1.0 - len(cases) / max(int(n_rows.sum()), 1)
        rate = float(_rate_of(np.array(share)))
        reference = TailReference.learn(rate * (cases - 1.0))
        check = cls(columns, key, reference, int(cases.max(initial=1)), rate)
        # A value that is common anyway is soon there again.
        values, n_rows = np.unique(cells.values[cells.has_value], return_counts=True)
        shares = n_rows / max(len(cells.values), 1)
        usual = Coding(columns[0], "level", (), values[shares >= _COMMON])
        limits = -exact.log(shares[shares >= _COMMON])
        of_values = usual, np.concatenate([[np.inf], limits, [np.inf]])
        if len(columns) == 1:
            return replace(check, rates=(of_values,))
        # And a room of the two that are dear.
        of_entities = _rates_of(rows, columns[1], of_rows, share)
        return replace(check, rate=math.inf, rates=(of_entities, of_values))

    @classmethod
    def of_bursts(cls, rows: Columns, columns: tuple[str, ...], key: str) -> RepetitionCheck:
        """Learn from known-normal rows how many of an entity are there at once."""
        of_rows = rows[key].values.astype(np.intp)
        coding, rates = _rates_of(rows, columns[0], of_rows)
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
        return cls(columns, key, reference, base - 1, math.inf, ((coding, rates),), limits)

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd counts are, at most as odd as chance makes so many."""
        counts = rows[self.key].values
        rates = np.full(len(counts), self.rate)
        for coding, of_codes in self.rates:
            rates = np.minimum(rates, of_codes[coding.codes(rows)])
        evidence = rates * (counts - 1.0)
        surprise = np.minimum(self.reference.surprise(evidence, own=own), evidence)
        is_odd = counts >= _LEAST_COUNT
        if not self._is_run:
            # Business grows: only a multiple of what there was at most is a burst.
            most, second = self._limits(rows)
            others = np.where(own & (counts == most), second, most)
            is_odd &= counts > np.maximum(_BURST * others, _LEAST_BURST)
        return np.where(is_odd, surprise, 0.0)

    @property
    def _is_run(self) -> bool:
        return self.key.startswith("\0run")

    def _limits(self, rows: Columns) -> NDArray[np.intp]:
        limits: NDArray[np.intp] = self.limits[:, self.rates[0][0].codes(rows)]
        return limits

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how many rows there are, and how many at most among normal ones."""
        counts = rows[self.key].values.tolist()
        of, most = [""] * len(counts), [self.most] * len(counts)
        how = "within a day" if self.key.endswith(f"\0{_WINDOWS[-1]}") else "within an hour"
        if self._is_run:
            how = "after each other"
            for name in self.columns[1:]:
                of = [f" of {entity}" for entity in shown_cells(rows[name], show)]
        else:
            most = self._limits(rows)[0].tolist()
        for count, entity, limit in zip(counts, of, most, strict=True):
            found = f"{int(count):,} rows{entity} {how}"
            such = "" if limit == self.most else f" of a {self.columns[0]} as frequent"
            if count > limit:
                usual = Usual("rule", f"at most {int(limit):,} rows {how}")
                yield Said(f" in {found}; at most {int(limit):,} in normal rows{such}", usual)
            else:  # Longer runs of normal rows are of values that are common.
                yield Said(f" in {found}, as in hardly any normal rows")


@dataclass(frozen=True, eq=False)
class StepCheck(NumberCheck):
    """A counter that runs back, or rises more or less than usual.

    It blames the counter, and the column that says which rows belong together.
    """

    n_back: int  # normal rows with less than the row before
    date: str  # by which rows are in order; "" for the order of the table

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return (*self.columns, *_step_keys(*reversed(self.columns)), *filter(None, [self.date]))

    @classmethod
    def learn(cls, rows: Columns, columns: tuple[str, str], date: str) -> StepCheck | None:
        """Learn from known-normal rows; None if there are too few steps."""
        steps = _steps_of(rows, columns)
        reference, n_back = NumberReference.learn(steps), int(np.count_nonzero(steps < 0))
        return None if reference is None else cls(columns, reference, n_back, date)

    def numbers(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Return how much the counter rose, per day where there are dates."""
        return _steps_of(rows, self.columns)

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd the steps are; where none goes back, a small one back is as well."""
        back = surprise_of_few(max(self.n_back - own, 0), self.reference.n)
        is_back = self.numbers(rows) < 0
        return np.maximum(super().surprise(rows, own=own), np.where(is_back, back, 0.0))

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how fast the counter has changed, and how fast it usually does."""
        name, entity = self.columns
        low, high = (show(name, float(self.reference.ascending[at])) for at in (0, -1))
        keys = (rows[key].values.tolist() for key in _step_keys(entity, name))
        lists = shown_cells(rows[entity], show), self.numbers(rows).tolist(), *keys
        for of, step, before, days in zip(*lists, strict=True):
            if math.isnan(step):
                yield Said("")
                continue
            unit, factor = unit_of_days(days)
            when = "the day" if days == 1 else f"{factor * days:,.0f} {unit}"
            since = f"from {show(name, before)} ({of}, {when if self.date else 'the row'} before)"
            pace = " a day" if self.date else ""
            usual = Usual("rule", f"rises by {low} to {high}{pace}")
            rises = f" rises by {show(name, step)}{pace} {since}; {low} to {high} in normal rows"
            yield Said(f" runs back {since}" if step < 0 else rises, usual)


def _steps_of(rows: Columns, columns: Sequence[str]) -> NDArray[np.float64]:
    before, passed = (rows[key].values for key in _step_keys(*reversed(columns)))
    with np.errstate(over="ignore"):
        steps: NDArray[np.float64] = (rows[columns[0]].values - before) / passed
    return steps


def _rates_of(
    rows: Columns, entity: str, counts: NDArray[Any], share: float | None = None
) -> tuple[Coding, NDArray[np.float64]]:
    """Return how much one more row of each entity says; a share is that of all other entities."""
    coding = Coding.of_levels(rows[entity])
    codes, again = coding.codes(rows), 1.0 - 1.0 / counts
    sums, n_own = (np.bincount(codes, each, coding.n_codes) for each in (again, None))
    if share is None:
        share = float(np.mean(sums[n_own > 0] / n_own[n_own > 0]))
    pooled = (sums + _POOLED * share) / (n_own + _POOLED)
    return coding, _rate_of(np.append(pooled, share))


def _rate_of(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    rates: NDArray[np.float64] = np.minimum(-exact.log(shares), _MOST_A_STEP)
    return rates


@dataclass(frozen=True, eq=False)
class GapCheck(Check):
    """A row of an entity after times at which others have rows, and it has none: a silent meter.

    It blames the date, and the column of the entity.
    """

    reference: TailReference  # the gaps of normal rows

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return (*self.columns, derived_name("gap", *reversed(self.columns)))

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd the gaps are."""
        gaps = rows[self.needs[-1]].values
        return np.where(gaps > 0, self.reference.surprise(gaps, own=own), 0.0)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how many times others have rows before, and the longest gap of normal rows."""
        most = f"{self.reference.ascending[-1]:,.0f}"
        entities = shown_cells(rows[self.columns[1]], show)
        for gap, of in zip(rows[self.needs[-1]].values.tolist(), entities, strict=True):
            text = f"; before it {of} lacks {gap:,.0f} rows that others have"
            yield Said(f"{text}, at most {most} in normal rows", Usual("value", most, (0.0,)))


def learn_sequences(rows: Columns, sequences: Sequences) -> list[Check]:
    """Learn what is usual for known-normal rows after each other, with their derived columns."""
    found: list[Check] = [LimitCheck.learn(rows, entity, name) for entity, name in sequences.limits]
    for entity, _ in sequences.regular:
        gaps = rows[derived_name("gap", entity, sequences.date)].values
        found.append(GapCheck((sequences.date, entity), TailReference.learn(gaps)))
    counters = {name for _, name in sequences.counters}
    # Without dates nobody knows what comes after what.
    for entity in sequences.entities if sequences.date else ():
        by = (entity,) if entity else ()
        for name in sequences.numbers:
            if name in counters:
                continue
            key = derived_name("run", entity, name)
            if rows[key].values.max(initial=0) <= _LONGEST_RUN:
                found.append(RepetitionCheck.of_runs(rows, (name, *by), key))
    for entity in sequences.crowds if sequences.date else ():
        for key in (derived_name("count", entity, sequences.date, hours) for hours in _WINDOWS):
            found.append(RepetitionCheck.of_bursts(rows, (entity, sequences.date), key))
    for entity, name in sequences.counters:
        step = StepCheck.learn(rows, (name, entity), sequences.date)
        found += [] if step is None else [step]
    return found
