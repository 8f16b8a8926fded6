"""Cells that do not go together: a city in another country, a total below a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from qms22._runtime import exact
from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.check import (
    LEAST_ROWS,
    MOST_RULES,
    Check,
    RuleCheck,
    Said,
    Shower,
    Usual,
    listed,
    share_of_rows,
    shown_cells,
)
from qms22.checks.codings import Coding
from qms22.checks.counting import LEAST_RECURRING, are_again, are_more, find_places, least_common
from qms22.checks.single import LEAST_ENTITIES
from qms22.checks.surprise import LevelReference, TailReference
from qms22.estimators.held_out import mix_bits
from qms22.tables.columns.cells import Columns, count_rows

# Rows that the shares of all rows count as, next to those with the same other level. The first is
# for levels that follow from the other column. Next to one from which they do not follow, a rare
# level may be missing by chance: one row more counts as expected, and as there.
_STRENGTHS = (1.0, 10.0, 100.0, 1e3, 1e4)
# The most careful of those is taken that is not worse by more than this: normal rows are at most 20
# times likelier with the best.
_ABOUT_AS_GOOD = 3.0
# Another column must make the levels so much likelier, in all normal rows together and on average.
_LEAST_GAIN = 20.0
_LEAST_MEAN_GAIN = 0.01
# Ranges and hours say something about few levels: a flag, a shift.
_MOST_LEVELS = 12
# Columns that are asked about one.
_MOST_SOURCES = 3
# A level is missing in a range by chance if fewer rows with it would be there.
_LEAST_EXPECTED = 5.0
# Parts of a range differ if chance would make them so different in fewer cases: a usual level.
_MOST_CHANCE = 0.05
# Less of a surprise than this is none: a level half as likely as usual.
_LEAST_LIFT = 0.7
# Cells that a sentence names.
_MOST_NAMED = 4
# A column is an attribute of an entity, as the ward of a patient, if hardly any entity changes it:
# at most so many values per entity.
_MOST_CHANGES = 1.2
# Nearly all normal rows have to keep a rule.
_MOST_BROKEN = 0.002
# Among numbers of different rows it has to be broken at least so often: else it says nothing.
_LEAST_BROKEN_BY_CHANCE = 0.05
# Columns of 0 and 1 of which one category may consist.
_MOST_TOGETHER = 50


@dataclass(frozen=True, eq=False)
class DependenceCheck(Check):
    """A level that is much rarer in rows with a level of another column than in all rows.

    Where nothing is known of the other level, or nothing follows from it, nothing is odd. Its
    columns are that of the level, and the other one.
    """

    coding: Coding
    other: Coding
    strength: float  # rows that the shares of all rows count as
    counts: Ints  # normal rows with each level
    other_counts: Ints
    keys: NDArray[np.int64]  # pairs of levels in normal rows
    key_counts: Ints  # how often they are there
    reference: TailReference  # how much rarer the levels of normal rows are
    # Pairs of levels that so many rows of the batch have that they are what the batch does.
    moved: NDArray[np.int64]
    # Whether the level is an attribute of the other column, which may change in the course of time:
    # normal rows of the time after a change are compared with those before.
    may_change: bool = False
    # Whether a number of the batch may belong to the next part of the range.
    may_shift: bool = False
    # The same two columns the other way round, where that tells better what is odd.
    told: DependenceCheck | None = None

    @classmethod
    def learn(
        cls, codings: tuple[Coding, Coding], codes: tuple[Ints, Ints], *, may_change: bool = False
    ) -> tuple[float, DependenceCheck] | None:
        """Learn from the codes of known-normal rows.

        Also return by how much the other level helps. None stands for columns that do not depend on
        each other.
        """
        coding, other = codings
        counts = np.bincount(codes[0] + 1, minlength=coding.n_codes + 1)
        other_counts = np.bincount(codes[1] + 1, minlength=other.n_codes + 1)
        keys, key_counts = np.unique(_pair_keys(coding, *codes), return_counts=True)
        nothing = TailReference(np.empty(0), 0), np.empty(0, dtype=np.int64)
        names = coding.name, *other.columns
        check = cls(names, coding, other, 0.0, counts, other_counts, keys, key_counts, *nothing)
        lifts = check._lifts(codes, _STRENGTHS, own=True)
        # A pair that should not be there must not hide the dependence.
        gains = [-float(np.minimum(each, _LEAST_GAIN / 2).sum()) for each in lifts]
        best = max(at for at, gain in enumerate(gains) if gain >= max(gains) - _ABOUT_AS_GOOD)
        if gains[best] < max(_LEAST_GAIN, _LEAST_MEAN_GAIN * len(codes[0])):
            return None
        check = replace(check, strength=_STRENGTHS[best], may_change=may_change)
        (lifts_over_time,) = check._lifts(codes, [check.strength], own=True)
        return gains[best], replace(check, reference=TailReference.learn(lifts_over_time))

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how much rarer levels are than they would be without the other column."""
        codes = self._codes(rows)
        (lifts,) = self._lifts(codes, [self.strength], own=own)
        if self.may_shift and not own:
            for others in (codes[1] - 1, codes[1] + 1):
                beside = np.where(codes[1] < 0, -1, np.clip(others, 0, self.other.n_codes - 1))
                (next_to,) = self._lifts((codes[0], beside), [self.strength], own=own)
                lifts = np.minimum(lifts, next_to)
        if len(self.moved) and not own:
            lifts[np.isin(_pair_keys(self.coding, *codes), self.moved)] = 0.0
        return np.where(lifts >= _LEAST_LIFT, self.reference.surprise(lifts, own=own), 0.0)

    def aligned(self, batch: Columns) -> DependenceCheck:
        """Return the check for a batch that may have moved as a whole.

        Pairs that normal rows have about as often are compared as among these. If other parts of a
        range have many rows, as after prices rose a little, a number may belong to the next part.
        """
        codes = self._codes(batch)
        pairs = _pair_keys(self.coding, *codes)
        keys, counts = np.unique(pairs, return_counts=True)
        least = least_common(len(pairs))
        # An entity that changes does so in several rows.
        if max(self.coding.n_codes, self.other.n_codes) > LEAST_ENTITIES:
            least = LEAST_RECURRING
        is_more = are_more(counts, len(pairs), self._count_keys(keys), int(self.counts.sum()))
        moved = keys[(counts >= least) & is_more]
        return replace(self, moved=moved, may_shift=self._ranges_differ(codes[1]))

    def repeats_moved(self, rows: Columns) -> Bools:
        """Return which rows of the batch have a pair that is what it does, and not first."""
        pairs = _pair_keys(self.coding, *self._codes(rows))
        return np.isin(pairs, self.moved) & are_again(pairs)

    def _ranges_differ(self, others: Ints) -> bool:
        """Return whether the batch has other parts of the range than normal rows have."""
        if self.other.how not in ("range", "limits"):
            return False
        counts = np.bincount(others + 1, minlength=len(self.other_counts))
        both = np.array([counts, self.other_counts])
        both = both[:, both.any(axis=0)]
        if both.shape[1] < 2:
            return False
        return bool(stats.chi2_contingency(both).pvalue < _MOST_CHANCE)

    def _codes(self, rows: Columns) -> tuple[Ints, Ints]:
        return self.coding.codes(rows), self.other.codes(rows)

    def _lifts(
        self, codes: tuple[Ints, Ints], strengths: Sequence[float], *, own: bool
    ) -> list[Floats]:
        """Return how much rarer levels are next to the others, for each strength.

        An own row is among those with the other level, too: next to rows of the batch, which all
        normal rows are compared with, it must not look less odd for being one of a few.
        """
        n = max(int(self.counts.sum()), 1)
        with_both, with_other = self._count(*codes)
        n_own = np.full(len(with_both), int(own))
        if own and self.may_change:
            n_own = np.where(2 * with_both < with_other, with_both, n_own)
        counts = self.counts[codes[0] + 1] - n_own
        both, shares = np.maximum(with_both - n_own, 0), np.maximum(counts, 0.5) / n
        # A level that no other row has is new, whatever it is with; in a range or an hour of the
        # other column, a level may be missing by chance.
        is_known = counts > 0
        if self.other.how not in ("level", "begin"):
            is_known = counts * with_other >= _LEAST_EXPECTED * n
        lifts = []
        for each in strengths:
            more = each * shares + (each > _STRENGTHS[0])
            lifts.append(-exact.log((both + more) / (with_other * shares + more)))
        return [np.where(is_known, lift, 0.0) for lift in lifts]

    def _count(self, codes: Ints, others: Ints) -> tuple[Ints, Ints]:
        """Return how many normal rows have both levels, and how many the other one."""
        keys = _pair_keys(self.coding, codes, others)
        return self._count_keys(keys), self.other_counts[others + 1]

    def _count_keys(self, keys: NDArray[np.int64]) -> Ints:
        """Return how many normal rows have each pair."""
        counts: Ints = np.append(self.key_counts, 0)[find_places(self.keys, keys)]
        return counts

    def describe(self, rows: Columns, show: Shower) -> list[Said]:
        """Return in words what is odd about rows."""
        return self.told.describe(rows, show) if self.told else super().describe(rows, show)

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return the cells to blame; of an interval, both dates."""
        return self.coding.show(rows, show)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return how often the level is there with the other one, and what is usual."""
        codes, others = self._codes(rows)
        found = np.array([*self._count(codes, others), others]).T.tolist()
        conditions = self.other.show_condition(rows, show)
        for (both, n, other), condition in zip(found, conditions, strict=True):
            often = f"{share_of_rows(both, n)} with {condition}"
            count, usual = self._usual(other, n, show)
            most = f"; {count:,} have {usual.text}" if usual else ""
            yield Said(f", as in {often}{most}", usual)

    def _usual(self, other: int, n: int, show: Shower) -> tuple[int, Usual | None]:
        """Return what most normal rows with the other level have, and how many of them."""
        width = self.coding.n_codes + 1
        first, last = np.searchsorted(self.keys, [(other + 1) * width, (other + 2) * width])
        if first == last:
            return 0, None
        most = first + int(np.argmax(self.key_counts[first:last]))
        code = int(self.keys[most] % width) - 1
        if code < 0 or 2 * self.key_counts[most] < n:
            return 0, None
        usual = self.coding.show_code(code, show)
        return int(self.key_counts[most]), Usual("levels", usual, (usual,))


def _pair_keys(coding: Coding, codes: Ints, others: Ints) -> NDArray[np.int64]:
    return (others.astype(np.int64) + 1) * (coding.n_codes + 1) + codes + 1


def learn_dependences(
    rows: Columns,
    targets: Sequence[Coding],
    sources: Sequence[Coding],
    entities: Sequence[str],
    *,
    is_later: bool,
) -> list[Check]:
    """Learn for each of the targets which sources say most about it, from known-normal rows.

    Of an attribute of `entities` sentences say that it is theirs. If the batch is of another time,
    it may have changed.
    """
    flags = [each.name for each in targets if each.values.tolist() == [0.0, 1.0]]
    categories = _learn_categories(rows, flags)
    codes = {coding: coding.codes(rows) for coding in (*targets, *sources)}
    # What is alike in all rows, such as the presence of a full column, says nothing.
    varies = {coding for coding, found in codes.items() if (found != found[0]).any()}

    def learn(target: Coding, source: Coding) -> tuple[float, DependenceCheck] | None:
        pair = codes[target], codes[source]
        may_change = is_later and _is_attribute(target, source, pair)
        return DependenceCheck.learn((target, source), pair, may_change=may_change)

    found: list[Check] = [*categories]
    for target in filter(varies.__contains__, targets):
        ranges = [
            each for each in sources if each.how == "range" and target.n_codes <= _MOST_LEVELS
        ]
        limits = [*filter(None, (each.with_limits(rows, codes[target]) for each in ranges))]
        codes |= {coding: coding.codes(rows) for coding in limits}
        learned = [
            learn(target, source)
            for source in (*(each for each in sources if each in varies), *limits)
            if target.name not in source.columns
            and (source.how == "level" or target.n_codes <= _MOST_LEVELS)
            and not any({target.name, source.name} <= {*each.columns} for each in categories)
        ]
        known = [each for each in learned if each is not None]
        known.sort(key=lambda each: -each[0])
        for _, check in known[:_MOST_SOURCES]:
            # What is odd is the country of a sender, and not the sender.
            is_owner = target.name in entities and check.other.name not in entities
            told = learn(check.other, target) if is_owner and check.other.how == "level" else None
            found.append(replace(check, columns=told[1].columns, told=told[1]) if told else check)
    return found


def _is_attribute(target: Coding, source: Coding, codes: tuple[Ints, Ints]) -> bool:
    """Return whether the one is an attribute of the other, an entity, such as of a patient."""
    n_entities = len(np.unique(codes[1]))
    are_entities = source.how == "level" and n_entities >= LEAST_ENTITIES
    n_pairs = len(np.unique(_pair_keys(target, *codes)))
    return are_entities and n_pairs <= _MOST_CHANGES * n_entities < len(codes[1])


@dataclass(frozen=True, eq=False)
class MissingTogetherCheck(Check):
    """Cells that are missing together, where normal rows lack only some of them."""

    patterns: NDArray[np.uint64]  # numbers of the combinations that normal rows have, ascending
    reference: LevelReference  # how often they are there

    @classmethod
    def learn(cls, rows: Columns, columns: Sequence[str]) -> MissingTogetherCheck:
        """Learn from the known-normal rows."""
        patterns, counts = np.unique(_patterns(_gaps(rows, columns)), return_counts=True)
        return cls(tuple(columns), patterns, LevelReference(counts))

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how odd it is that so many cells are missing, where there are several."""
        gaps = _gaps(rows, self.columns)
        codes = find_places(self.patterns, _patterns(gaps))
        found = self.reference.surprise(codes, own=own)
        return np.where(gaps.sum(axis=1) > 1, found, 0.0)

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return the names of the cells."""
        for gaps in _gaps(rows, self.columns):
            yield listed([self.columns[at] for at in np.flatnonzero(gaps)], _MOST_NAMED)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows lack the same."""
        counts, n = np.append(self.reference.counts, 0), self.reference.n
        for code in find_places(self.patterns, _patterns(_gaps(rows, self.columns))).tolist():
            often = share_of_rows(int(counts[code]), n)
            yield Said(f" are missing together, as in {often}")


def _gaps(rows: Columns, names: Sequence[str]) -> Bools:
    return np.array([rows[name].missing for name in names]).T


def _patterns(gaps: Bools) -> NDArray[np.uint64]:
    """Return a number for each row; rows with the same gaps have the same."""
    of_columns = mix_bits(np.arange(1, gaps.shape[1] + 1, dtype=np.uint64))
    patterns: NDArray[np.uint64] = np.where(gaps, of_columns, np.uint64(0)).sum(axis=1)
    return patterns


@dataclass(frozen=True)
class OrderCheck(RuleCheck):
    """A number above another one of its row, where normal rows have it at or below.

    Its columns are the lower number and the higher one.
    """

    def breaks(self, rows: Columns) -> Bools:
        """Return which rows have the lower number above the higher one."""
        low, high = (rows[name].values for name in self.columns)
        is_above: Bools = low > high
        return is_above

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows break the rule."""
        how_many = share_of_rows(self.n_broken, self.n)
        cells = rows[self.columns[1]]
        for other, most in zip(shown_cells(cells, show), cells.values.tolist(), strict=True):
            usual = Usual("range", f"at most {other}", (None, most))
            yield Said(f" is above {other}, as in {how_many}", usual)


@dataclass(frozen=True)
class OneOfCheck(RuleCheck):
    """None or several 1 in columns of 0 and 1 that are one category: always one of them is 1."""

    def _n_ones(self, rows: Columns) -> Floats:
        return sum((rows[name].values for name in self.columns), np.zeros(1))

    def breaks(self, rows: Columns) -> Bools:
        """Return which rows have none or several 1; none where a cell is missing."""
        return np.abs(self._n_ones(rows) - 1) > 0

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return how many of the columns are 1, and which columns these are."""
        one = show(self.columns[0], 1.0)
        for n_ones in np.nan_to_num(self._n_ones(rows)).tolist():
            yield f"{n_ones:.0f} of {self.columns[0]} … {self.columns[-1]} are {one}"

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return in words how many normal rows keep the rule."""
        said = Said(f"; exactly one is in {self.kept_in}", Usual("rule", "exactly one"))
        return [said] * count_rows(rows)


def _learn_categories(rows: Columns, flags: Sequence[str]) -> list[OneOfCheck]:
    """Learn which columns side by side, of 0 and 1, are one category in known-normal rows."""
    n, found = count_rows(rows), []
    # Two columns of which always one is 1 depend on each other, and that is said.
    while len(flags) > 2:
        ones = np.cumsum([rows[name].values for name in flags[:_MOST_TOGETHER]], axis=0)
        n_broken = np.count_nonzero(ones != 1, axis=1)
        size = 3 + int(np.argmin(n_broken[2:]))
        if is_one := n_broken[size - 1] <= _MOST_BROKEN * n:
            found.append(OneOfCheck(tuple(flags[:size]), int(n_broken[size - 1]), n))
        flags = flags[size if is_one else 1 :]
    return found


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
        if (n := len(one)) < LEAST_ROWS:
            continue
        n_broken = int(np.count_nonzero(one > other))
        if n_broken > _MOST_BROKEN * n:
            continue
        by_chance = float(np.mean(one > other[rng.permutation(n)]))
        if by_chance >= _LEAST_BROKEN_BY_CHANCE:
            found.append((by_chance, OrderCheck((low, high), n_broken, n)))
    found.sort(key=lambda each: -each[0])
    return [check for _, check in found[:MOST_RULES]]
