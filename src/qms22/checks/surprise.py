"""How surprising single values are, next to those of reference rows.

A surprise is about −log p, with p the share of reference rows that are at least as odd. Beyond all
of them it goes on rising, so that an absurd value counts for more than one just beyond. That no
reference row is as odd counts as half a row: what was never seen is odder than what was seen once.
With `own`, values are reference values themselves: each is compared with the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from qms22._runtime import exact
from qms22.checks.arrays import Floats, Ints

# Of more values than this, only some are kept.
_MOST_KEPT = 4096
# Excesses beyond this are not told apart: larger ones would overflow.
_LARGEST = 1e300
# Excess beyond all reference values, in units of their tail, counts up to here as it is, and from
# here on by its logarithm: a heavy tail has excesses of many units, too.
_LINEAR = 5.0
# A batch has moved if its median is off by at least this share of the reference values, and by so
# many standard deviations; of fewer rows nobody can say.
_LEAST_OFF = 0.1
_CERTAIN = 4.0
_LEAST_ALIGNED = 30
# A batch is not wider than so many times what its narrower half says.
_MOST_UNEVEN = 2.0
# The share of normal rows that is the tail of their oddness.
_TAIL = 0.05
# Units are not smaller than this share of the spread: the tail of rounded values may have no width.
_LEAST_UNIT = 0.01


@dataclass(frozen=True)
class NumberReference:
    """Reference values of a column of numbers."""

    ascending: Floats  # the values, or some of many: those at `kept_places`
    n: int  # how many values there were
    # The scale of both tails: of an exponential tail, the mean excess.
    low_unit: float
    high_unit: float
    # How far a batch lies from the reference values as a whole, and how many times wider it is. Its
    # values are compared without that.
    shift: float = 0.0
    stretch: float = 1.0

    @classmethod
    def learn(cls, values: Floats, *, least_unit: float = 0.0) -> NumberReference | None:
        """Learn from values, with units of at least `least_unit`; None if there are too few."""
        present = np.sort(values[np.isfinite(values)])
        n = len(present)
        if n < 3:
            return None
        # Half of the values, so that no difference overflows.
        half = present / 2
        low, low_tenth, high_tenth, high = np.quantile(half, [0.01, 0.1, 0.9, 0.99])
        largest = float(np.abs(half).max()) or 1.0
        deviation = float((half / largest).std()) * largest
        least = _LEAST_UNIT * float(high_tenth - low_tenth) or deviation or 0.5
        low_unit, high_unit = (
            min(max(2.0 * float(tail) / float(exact.log(10.0)), 2.0 * least, least_unit), _LARGEST)
            for tail in (low_tenth - low, high - high_tenth)
        )
        return cls(present[kept_places(n)], n, low_unit, high_unit)

    def surprise(self, values: Floats, *, own: bool = False) -> Floats:
        """Compute how surprising values are; 0 for NaN."""
        found = self._both_sides(values, own)
        slope, offset = self.move
        if not own and (slope, offset) != (1.0, 0.0):
            # What is usual for normal rows is not odd because the batch has moved.
            found = np.minimum(found, self._both_sides(slope * values + offset, own))
        return found

    def _both_sides(self, values: Floats, own: bool) -> Floats:
        ascending, n = self.ascending, self.n
        high = _beyond(values, ascending, n, own, sides=2.0, unit=self.high_unit)
        low = _beyond(-values, -ascending[::-1], n, own, sides=2.0, unit=self.low_unit)
        return np.where(np.isnan(values), 0.0, np.maximum(high, low))

    @property
    def move(self) -> tuple[float, float]:
        """The slope and the offset by which values of the batch are compared without their move."""
        middle = float(self.ascending[len(self.ascending) // 2])
        slope = 1.0 / self.stretch
        return slope, middle * (1.0 - slope) - slope * self.shift

    def aligned(self, values: Floats) -> NumberReference:
        """Return a reference for the values of a batch, which may have moved as a whole.

        It has if its median is where few reference values are in the middle, which single rows
        cannot bring about.
        """
        values = values[np.isfinite(values)]
        if len(values) < _LEAST_ALIGNED or self.n < _LEAST_ALIGNED:
            return self
        places = np.append(kept_places(self.n), self.n)
        middle = float(np.median(values))
        below, not_above = (
            float(places[np.searchsorted(self.ascending, middle, side=side)] / self.n)
            for side in ("left", "right")
        )
        # By how much more than half of the reference values are on one side of the batch's median.
        off = max(below - 0.5, 0.5 - not_above)
        deviation = 0.5 * math.sqrt(1 / len(values) + 1 / self.n)
        if off < max(_LEAST_OFF, _CERTAIN * deviation):
            return self
        quarters = self.ascending[
            np.searchsorted(places, [self.n // 4, self.n // 2, 3 * self.n // 4])
        ]
        own_spreads, spreads = np.diff(quarters), np.diff(np.quantile(values, [0.25, 0.5, 0.75]))
        ratios = spreads[own_spreads > 0] / own_spreads[own_spreads > 0]
        whole = float(spreads.sum() / own_spreads.sum()) if len(ratios) else 1.0
        # Anomalies, if they are many, widen one side of the batch.
        stretch = max(1.0, min(whole, _MOST_UNEVEN * float(ratios.min(initial=np.inf))))
        return replace(self, shift=middle - float(quarters[1]), stretch=stretch)


def _beyond(
    values: Floats, ascending: Floats, n: int, own: bool, *, sides: float = 1.0, unit: float = 1.0
) -> Floats:
    """Compute how surprising high values are, of which `kept_places` are given."""
    # Kept places are the same from both ends.
    places = np.append(kept_places(n), n)
    n_as_high = n - places[np.searchsorted(ascending, values, side="left")] - own
    shares = np.where(n_as_high <= 0, 0.5, 1.0 + n_as_high) / (n + 1.0 - own)
    last = ascending[-1] if len(ascending) else 0.0
    # For one of the last values the end is that of the others.
    ends = np.where(own & (values >= last), ascending[-2:][:1], last)
    surprise: Floats = -exact.log(np.minimum(1.0, sides * shares))
    with np.errstate(over="ignore"):
        return surprise + _bounded((values - ends) / unit)


def surprise_of_rare(n_as_rare: Ints, n: int, rarest: Ints | int) -> Floats:
    """Compute how surprising is what so few of n reference rows do.

    What none does is the more surprising, the more of them do what is rarest.
    """
    surprise = -exact.log((1.0 + n_as_rare) / (n + 1.0))
    return surprise + np.where(n_as_rare == 0, exact.log(rarest), 0.0)


def surprise_of_few(n_others: int, n: int) -> float:
    """Compute how surprising is what so few of n reference rows do; of none, as a new level."""
    return float(surprise_of_rare(np.array(max(n_others, 0)), n, n))


@lru_cache
def kept_places(n: int) -> Ints:
    """Return the places of the sorted values that are kept.

    All of few values are; of many, the closer to an end, the more: counts from there are right up
    to about one percent. The places are the same from both ends.
    """
    if n <= _MOST_KEPT:
        return np.arange(n)
    inner = np.geomspace(2, n // 2, _MOST_KEPT // 2 - 2).round().astype(np.intp)
    lower = np.unique(np.concatenate([np.arange(2), inner]))
    return np.unique(np.concatenate([lower, n - 1 - lower]))


@dataclass(frozen=True)
class LevelReference:
    """How many reference rows have each level of a column."""

    counts: Ints  # by the number of the level
    n_new: int = 0  # how many reference rows would have a level that is new at their time

    @property
    def n(self) -> int:
        """How many reference rows there were."""
        return int(self.counts.sum())

    def surprise(self, codes: Ints, *, own: bool = False) -> Floats:
        """Compute how surprising levels are, by number; of negative and larger ones as new."""
        numbers = np.where((codes < 0) | (codes >= len(self.counts)), len(self.counts), codes)
        return self._by_level(np.append(self.counts, 0), own)[numbers]

    def _by_level(self, counts: Ints, own: bool) -> Floats:
        """Compute the surprise of a row of each level; an own row does not count itself."""
        n = max(self.n - own, 1)
        left = np.maximum(counts - own, 0)
        ascending = np.sort(counts[counts > 0])
        n_not_more = np.searchsorted(ascending, left, side="right")
        cumulated = np.concatenate([[0], np.cumsum(ascending)])[n_not_more]
        # Of an unseen level nobody knows how rare it is; about as many rows as have a level of
        # their own have one that was not seen before (Good and Turing).
        n_single = np.count_nonzero(counts == 1) - (own & (counts == 1))
        # New customers come in the course of time, which rows in random order do not show.
        n_single = np.maximum(n_single, self.n_new)
        n_as_rare = np.where(left > 0, cumulated + (left if own else 0), n_single)
        rarest = np.append(ascending, [n, n])[[int(own)]]
        return np.maximum(surprise_of_rare(n_as_rare, n, rarest), 0.0)


@dataclass(frozen=True)
class TailReference:
    """Reference values, as in `NumberReference`, of which only high ones are odd, as surprises."""

    ascending: Floats
    n: int

    @classmethod
    def learn(cls, values: Floats) -> TailReference:
        """Learn from values, each computed as if its row were not among the normal ones."""
        return cls(np.sort(values)[kept_places(len(values))], len(values))

    def surprise(self, values: Floats, *, own: bool = False) -> Floats:
        """Compute how surprising values are; beyond all others the more, the further they are."""
        return _beyond(values, self.ascending, self.n, own)


@dataclass(frozen=True)
class OddnessScale:
    """The common scale of all checks: −log of the share of normal rows that are as odd.

    In the tail, where there are few normal rows, the share falls exponentially, as that of normal
    rows does: a strong reason counts for more than one just beyond the usual.
    """

    ascending: Floats  # how odd normal rows are, each compared with the others
    unit: float  # the mean excess in the tail

    @classmethod
    def of(cls, oddness: Floats) -> OddnessScale:
        """Learn from normal rows."""
        ascending = np.sort(oddness)
        tail = ascending[len(ascending) - max(1, round(_TAIL * len(ascending))) :]
        return cls(ascending, max(1.0, float(np.mean(tail - tail[0]))))

    def scores(self, oddness: Floats) -> Floats:
        """Compute −log of the share of normal rows that are as odd."""
        n = len(self.ascending)
        start = float(self.ascending[n - max(1, round(_TAIL * n))])
        inside = np.minimum(oddness, start)
        n_lower = np.searchsorted(self.ascending, inside, side="left")
        n_not_higher = np.searchsorted(self.ascending, inside, side="right")
        shares = (1 + 2 * n - n_lower - n_not_higher) / (2 * n + 2)
        scores: Floats = -exact.log(shares)
        return scores + np.maximum(oddness - start, 0.0) / self.unit


@dataclass(frozen=True)
class RarityReference:
    """How many reference rows share with each reference row what it shares with the fewest."""

    # The different numbers of other rows that have the rarest sign, word or form of a row,
    # ascending; and how many reference rows have such a number or a smaller one.
    shared: Ints
    ends: Ints

    @classmethod
    def of(cls, shared: Ints, n_rows: Ints) -> RarityReference:
        """Learn from numbers of other rows, each of which so many rows have."""
        different, places = np.unique(shared[n_rows > 0], return_inverse=True)
        sizes = np.bincount(places, n_rows[n_rows > 0], len(different))
        return cls(different, np.cumsum(sizes).astype(np.intp))

    def surprise(self, counts: Ints, *, own: bool = False) -> Floats:
        """Compute how surprising it is that so few other reference rows have something."""
        n = int(self.ends[-1])
        n_not_more = np.append(0, self.ends)[np.searchsorted(self.shared, counts, side="right")]
        first = np.searchsorted(self.ends, int(own), side="right")
        rarest = np.maximum(np.append(self.shared, n)[[first]], 1)
        return surprise_of_rare(n_not_more - own, n - own, rarest)


def gaps_on_clock(minutes: Floats, reference: Floats, *, own: bool = False) -> Floats:
    """Compute how far minutes of the day are from the third nearest of ascending ones."""
    n_near = min(3, len(reference) - own)
    if n_near < 1:
        return np.zeros(len(minutes))
    around = np.concatenate([reference - 1440.0, reference, reference + 1440.0])
    places = np.searchsorted(around, np.nan_to_num(minutes))
    near = places[:, None] + np.arange(-n_near - 1, n_near + 1)
    gaps = np.sort(np.abs(around[np.clip(near, 0, len(around) - 1)] - minutes[:, None]), axis=1)
    nearest: Floats = gaps[:, n_near - 1 + own]
    return nearest


def _bounded(excess: Floats) -> Floats:
    """Return an excess of 0 or more that grows slowly once it is large."""
    positive = np.clip(excess, 0.0, _LARGEST)
    return np.minimum(positive, _LINEAR) + _LINEAR * exact.log(np.maximum(positive / _LINEAR, 1.0))
