"""Numbers that are computed from others of their row: sums, products and shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from qms22._runtime import exact
from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.check import LEAST_ROWS, MOST_RULES, RuleCheck, Said, Shower, Usual
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.texts.words import number_text

# Nearly all normal rows with all numbers of a rule have to keep it.
_MOST_BROKEN = 0.005
# If the numbers of different rows keep it so often, it says little: of products less, whose factor
# is fitted.
_MOST_BY_CHANCE = 0.3
_MOST_PRODUCTS_BY_CHANCE = 0.05
# A rule may be about some levels of a category only, which most rows have to have.
_MOST_LEVELS = 20
_LEAST_LIMITED = 0.5

# Rules are tried in so many rows with the number, those in which fewest others are 0 or missing.
# They have to hold in enough of these; some may be of a kind to which they do not apply.
_N_TRIED = 24
_LEAST_HELD = 8
_MOST_FAILED = 6
# Where more hold, numbers are so coarse that nearly all do, and each takes half a millisecond.
_MOST_GUESSES = 100

# All pairs of up to so many columns are tried, and three of up to the second number.
_MOST_OF_PAIRS = 60
_MOST_OF_THREE = 30
# What percentages and shares are of: a number may be multiplied by what is left of these, or by
# these and the share.
_WHOLES = (100.0, 1.0)
# Of more columns only those side by side are added up.
_LEAST_RANGE = 4

# Numbers with up to so many decimals are rounded to them. Floats are exact up to this share.
_MOST_DECIMALS = 9
_EXACT = 1e-9
# Factors have so few digits, such as a rate of tax, or else all that there are.
_FEW_DIGITS = 4
_MOST_DIGITS = 15

# What is tried, from what is simple to what takes long; and the most digits of factors.
_STEPS = (
    ("equal", 0),
    ("pair", _FEW_DIGITS),
    ("multiple", _FEW_DIGITS),
    ("share", _FEW_DIGITS),
    ("share", _MOST_DIGITS),
    ("range", 0),
    ("three", _FEW_DIGITS),
)


class _Guess(NamedTuple):
    """What may make a number: columns, their signs, and how they are put together."""

    places: tuple[int, ...]
    signs: tuple[int, ...]
    has_factor: bool = False
    wholes: tuple[float, ...] = ()  # what is added to the factors of a product; none of a sum


@dataclass(frozen=True)
class ArithmeticCheck(RuleCheck):
    """A number that is not what others of its row make, as it is in normal rows.

    Its columns are the number, and what it is computed from: a multiple of their sum or product.
    """

    signs: tuple[int, ...]  # 1 for what is added, -1 for what is subtracted
    factor: float  # what the sum or product is multiplied by
    wholes: tuple[float, ...]  # of a product, what each is added to, such as 100; none of a sum
    units: tuple[float, ...]  # by how much each number may be off by rounding
    # If the rule is about some rows only, what they have in the column that tells, `more`.
    levels: tuple[str, ...] = ()

    def computed(self, values: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Compute what the other numbers make, and how far rounding may put it off."""
        first, *others = self.units
        terms = np.array(self.signs)[:, np.newaxis] * np.array(values)
        if not self.wholes:
            size = abs(self.factor)
            off = 1.001 * (first + size * sum(others)) + _EXACT * size * np.abs(terms).max(axis=0)
            return self.factor * terms.sum(axis=0), off
        terms += np.array(self.wholes)[:, np.newaxis]
        found, off = self.factor * np.prod(terms, axis=0), np.full_like(terms[0], first)
        for term, unit in zip(terms, others, strict=True):
            if unit:
                off = off + np.abs(found) * unit / np.maximum(np.abs(term), unit)
        return found, 1.001 * off + _EXACT * np.abs(found)

    def is_kept(self, rows: Columns) -> Bools:
        """Return which rows keep the rule; of others nothing is known, or they break it."""
        return self._excess(rows) <= 1.0

    def _excess(self, rows: Columns) -> Floats:
        """Compute how far off rows are, as a multiple of what rounding explains."""
        target, *values = (rows[name].values for name in self.columns)
        with np.errstate(invalid="ignore", over="ignore"):
            found, off = self.computed(values)
            excess: Floats = np.abs(target - found) / np.maximum(off, 1e-300)
        for category in self.more:
            excess[~rows[category].is_among(self.levels)] = np.nan
        return excess

    def breaks(self, rows: Columns) -> Bools:
        """Return which rows break the rule."""
        return self._excess(rows) > 1.0

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd it is that a row breaks the rule; the further off, the odder."""
        excess = np.clip(np.nan_to_num(self._excess(rows)), 1.0, self.n)
        return super().surprise(rows, own=own) + exact.log(excess)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return what makes the number, the result, and how many normal rows have it."""
        found, _ = self.computed([rows[each].values for each in self.columns[1:]])
        kept = self.kept_in
        for category in self.more:
            others = "" if len(self.levels) == 1 else f" or {len(self.levels) - 1} others"
            kept += f" with {category} {self.levels[0]}{others}"
        cells = rows[self.columns[0]]
        for value in found.tolist():
            result = Usual.of_values("value", cells, (value,), show)
            text = f" where {self._rule} is {result.text}; they are equal in {kept}"
            yield Said(text, result)

    @property
    def _rule(self) -> str:
        others = self.columns[1:]
        if len(others) >= _LEAST_RANGE:
            return f"the sum of {others[0]} to {others[-1]}"
        factor = [] if self.factor == 1.0 else [number_text(self.factor)]
        signs = ["+" if sign > 0 else "−" for sign in self.signs]
        if self.wholes:
            terms = [
                f"({number_text(whole)} {sign} {each})" if whole else each
                for each, sign, whole in zip(others, signs, self.wholes, strict=True)
            ]
            return " × ".join([*factor, *terms])
        pairs = zip(signs, others, strict=True)
        total = " ".join(f"{sign} {each}" for sign, each in pairs).removeprefix("+ ")
        return f"{factor[0]} × ({total})" if factor else total


def learn_arithmetic(
    rows: Columns, numbers: Sequence[str], categories: Sequence[str] = ()
) -> list[ArithmeticCheck]:
    """Learn which numbers of known-normal rows are sums, differences, products or shares of others.

    Numbers are in the order of the table: most often what is computed comes last. A rule may be
    about some levels of a category, if it has few.
    """
    names = list(numbers)[:_MOST_OF_PAIRS]
    if len(names) < 2 or len(rows[names[0]].values) < LEAST_ROWS:
        return []
    table = np.array([rows[name].values for name in names])
    units = np.array([half_unit(column) for column in table])
    terms = _Terms.among(table)
    texts = [rows[name] for name in categories if len(rows[name].levels) <= _MOST_LEVELS]
    # In an order that depends on values alone.
    order = np.lexsort(np.nan_to_num(table))
    order = order[np.argsort(-_is_telling(table[:, order]).sum(axis=0), kind="stable")]
    found: dict[frozenset[int], ArithmeticCheck] = {}
    # Numbers that are shares of each other.
    tied, of_products = list(range(len(names))), set[frozenset[int]]()
    for step, most_digits in _STEPS:
        for target in reversed(range(len(names))):
            telling = order[_is_telling(table[target, order])][:_N_TRIED]
            # Long sums are looked for where nothing simpler makes a number.
            is_made = any(check.columns[0] == names[target] for check in found.values())
            if len(telling) < _LEAST_HELD or (step in ("range", "three") and is_made):
                continue
            guesses = _Tried(table[:, telling], units, terms, target).guesses(step)
            for guess in islice(guesses, _MOST_GUESSES):
                places = (target, *guess.places)
                is_known = any(known <= {*places} for known in found)
                if step == "share":
                    is_known |= tied[places[0]] == tied[places[1]]
                    is_known |= any({*places} < each for each in of_products)
                if is_known or len(found) >= MOST_RULES:
                    continue
                columns = tuple(names[at] for at in places)
                some = table[list(places)], units[list(places)]
                check = _verified(*some, columns, guess, most_digits, texts)
                if check is not None:
                    found[frozenset(places)] = check
                    if guess.wholes:
                        of_products.add(frozenset(places))
                    if step == "share":
                        tied = [tied[target] if each == tied[places[1]] else each for each in tied]
    return list(found.values())


class _Terms(NamedTuple):
    """What a product may be made of: numbers, and what they take off a whole or put on it."""

    places: Ints  # of the numbers
    signs: Ints
    wholes: Floats  # 0 for the number itself

    @classmethod
    def among(cls, table: Floats) -> _Terms:
        """Find the terms: columns, and what is left of percentages and shares, or put on."""
        places = np.arange(len(table))
        least, most = np.fmin.reduce(table, axis=1), np.fmax.reduce(table, axis=1)
        found = [cls(places, np.ones_like(places), np.zeros(len(places)))]
        for whole in _WHOLES:
            parts = np.flatnonzero((least >= 0) & (most <= whole) & (most > whole / 100))
            parts = parts[(least < most)[parts]]
            for sign in (-1, 1):
                signs, wholes = np.full_like(parts, sign), np.full(len(parts), whole)
                found.append(cls(parts, signs, wholes))
        return cls(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def of(self, numbers: Floats) -> Floats:
        """Compute the terms of some rows."""
        signed: Floats = self.signs[:, np.newaxis] * numbers[self.places]
        return self.wholes[:, np.newaxis] + signed


class _Tried(NamedTuple):
    """Rows in which rules are tried: all numbers, half units of their rounding, and the target."""

    numbers: Floats
    units: Floats
    terms: _Terms
    target: int

    def guesses(self, step: str) -> Iterator[_Guess]:
        """Find what may make the number."""
        n = len(self.numbers)
        if step == "equal":
            yield from self._sums(self._sets(1))
        elif step == "share":
            yield from self._products(1)
        elif step == "pair":
            yield from self._sums(self._sets(2))
            yield from self._products(2)
        elif step == "multiple":
            yield from self._multiples()
        elif step == "range":
            for first, last in combinations(range(n + 1), 2):
                if last - first >= _LEAST_RANGE and not first <= self.target < last:
                    yield from self._sums(np.arange(first, last)[np.newaxis])
        elif n <= _MOST_OF_THREE:
            pairs = self._sets(2)
            for sign in (1, -1):
                for third in set(range(n)) - {self.target}:
                    rest = (pairs != third).all(axis=1) if sign < 0 else pairs[:, 1] < third
                    thirds = np.full((np.count_nonzero(rest), 1), third)
                    yield from self._sums(np.hstack([pairs[rest], thirds]), sign)
            yield from self._products(3)

    def _sets(self, size: int) -> Ints:
        """Return all sets of so many other columns, one in each line."""
        others = [at for at in range(len(self.numbers)) if at != self.target]
        return np.array(list(combinations(others, size)), dtype=np.intp).reshape(-1, size)

    def _sums(self, sets: Ints, sign_of_last: int = 1) -> Iterator[_Guess]:
        """Find the sets of columns whose sum is the number, the last one perhaps subtracted."""
        signs = (*[1] * (sets.shape[1] - 1), sign_of_last)
        terms = self.numbers[sets]
        signed = np.array(signs)[:, np.newaxis] * terms
        differences = self.numbers[self.target] - signed.sum(axis=1)
        units = self.units[sets].sum(axis=1) + self.units[self.target]
        limits = units[:, np.newaxis] + _EXACT * np.abs(terms).max(axis=1)
        for places in sets[_holds(differences, limits)].tolist():
            yield _Guess(tuple(places), signs)

    def _products(self, size: int) -> Iterator[_Guess]:
        """Find the sets of terms whose product, times a factor, is the number."""
        terms = self.terms
        those = np.flatnonzero((terms.places != self.target) & ((terms.wholes == 0) | (size > 1)))
        sets = np.array(list(combinations(those, size)), dtype=np.intp).reshape(-1, size)
        # No column with itself, such as what is left of a percentage.
        sets = sets[(np.diff(np.sort(terms.places[sets], axis=1), axis=1) > 0).all(axis=1)]
        units = self.units[terms.places]
        logs, shares = _logs(terms.of(self.numbers), units[:, np.newaxis])
        for at in sets[self._is_multiple(logs[sets].sum(axis=1), shares[sets].sum(axis=1))]:
            places, signs, wholes = (tuple(each[at].tolist()) for each in terms)
            yield _Guess(places, signs, has_factor=True, wholes=wholes)

    def _multiples(self) -> Iterator[_Guess]:
        """Find the pairs of columns whose sum, times a factor, is the number."""
        sets = self._sets(2)
        units = self.units[sets].sum(axis=1)[:, np.newaxis]
        found = self._is_multiple(*_logs(self.numbers[sets].sum(axis=1), units))
        for places in sets[found].tolist():
            yield _Guess(tuple(places), (1, 1), has_factor=True)

    def _is_multiple(self, logs: Floats, shares: Floats) -> Bools:
        """Return of which lines, by their logarithms, the number is a multiple in all rows.

        The shares say how far rounding may put each off.
        """
        own, share = _logs(self.numbers[self.target], self.units[self.target])
        left = own - logs
        n_present = np.count_nonzero(~np.isnan(left), axis=1)
        middle = np.sort(left, axis=1)[np.arange(len(left)), np.maximum(n_present - 1, 0) // 2]
        return _holds(left - middle[:, np.newaxis], 2 * (share + shares) + _EXACT)


def _logs(values: Floats, units: Floats) -> tuple[Floats, Floats]:
    """Return logarithms of the sizes of values, and how far their units may put these off.

    Of nothing, neither is known.
    """
    sizes = np.where(_is_telling(values), np.abs(values), np.nan)
    return exact.log(sizes), units / sizes


def _holds(differences: Floats, limits: Floats | float) -> Bools:
    """Return which lines of differences are 0 but for rounding; missing ones say nothing."""
    limits = 1.001 * np.asarray(limits) + 1e-12
    n_held = np.count_nonzero(np.abs(differences) <= limits, axis=1)
    n_failed = np.count_nonzero(np.abs(differences) > limits, axis=1)
    held: Bools = (n_held >= _LEAST_HELD) & (n_failed <= _MOST_FAILED)
    return held


def _verified(
    table: Floats,
    units: Floats,
    columns: tuple[str, ...],
    guess: _Guess,
    most_digits: int,
    categories: Sequence[Cells],
) -> ArithmeticCheck | None:
    """Return the check for a guess if nearly all normal rows keep it, and not by chance."""
    present = ~np.isnan(table).any(axis=0)
    target, *values = table[:, present]
    n = len(target)
    if n < LEAST_ROWS:
        return None
    factors = [1.0]
    if guess.has_factor:
        exact_ones = (0.0,) * len(columns)
        plain = ArithmeticCheck(columns, 0, n, guess.signs, 1.0, guess.wholes, exact_ones)
        factors = _factors(target, plain.computed(values)[0], most_digits)
        if any(np.ptp(value) == 0.0 for value in values):
            # Next to a number that does not change, another factor says nothing.
            factors = [1.0] if 1.0 in factors and len(values) > 1 else []
    # What it is computed from may be exact, or rounded.
    for of_others in (np.zeros(len(values)), units[1:]):
        limits = (float(units[0]), *of_others.tolist())
        tried = []
        for factor in factors:
            check = ArithmeticCheck(columns, 0, n, guess.signs, factor, guess.wholes, limits)
            found, off = check.computed(values)
            is_broken = np.abs(target - found) > off
            tried.append((int(np.count_nonzero(is_broken)), check, is_broken))
        if not tried:
            return None
        n_broken, check, is_broken = min(tried, key=lambda each: each[0])
        if n_broken <= _MOST_BROKEN * n:
            return None if _is_chance(check, target, values) else replace(check, n_broken=n_broken)
        for cells in categories:
            some = cells.take(np.flatnonzero(present))
            if (limited := _limited(check, is_broken, some)) is not None:
                of_levels = some.is_among(limited.levels)
                own = [value[of_levels] for value in values]
                if not _is_chance(limited, target[of_levels], own):
                    return limited
    return None


def _is_chance(check: ArithmeticCheck, target: Floats, values: Sequence[Floats]) -> bool:
    """Whether the numbers of different rows keep a rule nearly as well."""
    # That nothing times something is nothing is no news.
    some = _is_telling(target)
    found, off = (each[some] for each in check.computed(values))
    ascending = np.sort(target[some])
    last = np.searchsorted(ascending, found + off, side="right")
    first = np.searchsorted(ascending, found - off, side="left")
    is_sum = not check.wholes and check.factor == 1.0
    most = _MOST_BY_CHANCE if is_sum else _MOST_PRODUCTS_BY_CHANCE
    return not some.any() or bool((last - first).mean() > most * len(ascending))


def _limited(check: ArithmeticCheck, is_broken: Bools, cells: Cells) -> ArithmeticCheck | None:
    """Return the check for the levels of a category whose rows keep the rule, if most rows do."""
    size = len(cells.levels) + 1
    counts = np.bincount(cells.values + 1, minlength=size)[1:]
    broken = np.bincount(cells.values + 1, is_broken, minlength=size)[1:]
    kept = np.flatnonzero((counts >= LEAST_ROWS) & (broken <= _MOST_BROKEN * counts))
    n, n_broken = int(counts[kept].sum()), int(broken[kept].sum())
    if n < _LEAST_LIMITED * len(is_broken):
        return None
    # The most frequent first, as they are named.
    kept = kept[np.argsort(-counts[kept], kind="stable")]
    levels = tuple(cells.levels[at] for at in kept.tolist())
    return replace(check, n_broken=n_broken, n=n, levels=levels, more=(cells.name,))


def _factors(target: Floats, base: Floats, most_digits: int) -> list[float]:
    """Return what a sum or product may be multiplied by: with few digits first."""
    some = np.flatnonzero((base != 0) & (target != 0))
    # The largest numbers are rounded least.
    some = some[np.argsort(-np.abs(target[some]), kind="stable")][: max(len(some) // 4, 1)]
    if not len(some):
        return []
    factor = float(np.median(target[some] / base[some]))
    rounded = (float(f"{factor:.{digits}g}") for digits in range(1, most_digits + 1))
    return list(dict.fromkeys(rounded))


def _is_telling(values: Floats) -> Bools:
    telling: Bools = ~np.isnan(values) & (values != 0)
    return telling


def half_unit(values: Floats, most_decimals: int = _MOST_DECIMALS) -> float:
    """Return half of the last decimal that numbers are rounded to; 0 if there is none."""
    present = values[~np.isnan(values)]
    for decimals in range(most_decimals + 1):
        scaled = present * 10.0**decimals
        if np.allclose(scaled, np.rint(scaled), rtol=1e-14, atol=1e-5):
            return 0.5 * 10.0**-decimals
    return 0.0
