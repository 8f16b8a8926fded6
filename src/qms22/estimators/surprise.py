"""How surprising single values are, next to those of reference rows.

A surprise is about −log p, with p the share of reference rows that are at least as odd. Beyond all
of them it goes on rising, so that an absurd value counts for more than one just beyond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Sorted values that are kept; of more, quantiles are.
_MOST_KEPT = 4096

# Excess beyond all reference values, in units of their tail, counts up to here as it is, and from
# here on by its logarithm: a heavy tail has excesses of many units, too.
_LINEAR = 5.0

# Units are not smaller than this share of the spread: the tail of rounded values may have no width.
_LEAST_UNIT = 0.01

# A level counts as rare up to this share of the rows. It is the more surprising, the more frequent
# the next rarest level is.
_RARE = 0.002


@dataclass(frozen=True)
class NumberReference:
    """Reference values of a column of numbers.

    Parameters
    ----------
    ascending : ndarray
        The values, or quantiles of many.
    n : int
        How many values there were.
    low_unit, high_unit : float
        The scale of both tails: of an exponential tail, the mean excess.
    n_trimmed : int
        So many values at each end are not taken for the end of the values: a few reference rows
        may be wrong.
    """

    ascending: NDArray[np.float64]
    n: int
    low_unit: float
    high_unit: float
    n_trimmed: int = 0

    @classmethod
    def learn(cls, values: NDArray[np.float64], n_trimmed: int = 0) -> NumberReference | None:
        """Learn from values; NaN stands for none. Return None if there are too few."""
        present = np.sort(values[np.isfinite(values)])
        n = len(present)
        if n < 2 * n_trimmed + 3:
            return None
        low, low_tenth, high_tenth, high = np.quantile(present, [0.01, 0.1, 0.9, 0.99])
        least = _LEAST_UNIT * float(high_tenth - low_tenth) or float(present.std()) or 1.0
        units = [
            max(float(tail) / math.log(10.0), least)
            for tail in (low_tenth - low, high - high_tenth)
        ]
        if n > _MOST_KEPT:
            # The ends are kept as they are.
            ends = n_trimmed + 2
            inner = np.linspace(ends, n - 1 - ends, _MOST_KEPT - 2 * ends).round().astype(np.intp)
            places = np.concatenate([np.arange(ends), inner, np.arange(n - ends, n)])
            present = present[places]
        return cls(present, n, units[0], units[1], n_trimmed)

    def surprise(self, values: NDArray[np.float64], *, own: bool = False) -> NDArray[np.float64]:
        """Compute how surprising values are; 0 for NaN.

        Parameters
        ----------
        values : ndarray
        own : bool
            Whether the values are reference values, each of which is compared with the others.
        """
        high = self._one_side(values, self.ascending, self.high_unit, own)
        low = self._one_side(-values, -self.ascending[::-1], self.low_unit, own)
        return np.where(np.isnan(values), 0.0, np.maximum(high, low))

    def _one_side(
        self, values: NDArray[np.float64], ascending: NDArray[np.float64], unit: float, own: bool
    ) -> NDArray[np.float64]:
        n_kept = len(ascending)
        n_as_high = n_kept - np.searchsorted(ascending, values, side="left")
        # The values at the ends stand for themselves, those between them for several.
        n_as_high = np.where(
            n_as_high > self.n_trimmed + 2, n_as_high * (self.n / n_kept), n_as_high
        )
        n_others = self.n - own
        shares = np.maximum(1.0 + n_as_high - own, 1.0) / (n_others + 1.0)
        end = ascending[-1 - self.n_trimmed]
        # For one of the last values the end is that of the others.
        is_beyond_own = own & (values >= end)
        end = np.where(is_beyond_own, ascending[-2 - self.n_trimmed], end)
        surprise: NDArray[np.float64] = -np.log(np.minimum(1.0, 2.0 * shares))
        return surprise + _bounded((values - end) / unit)


@dataclass(frozen=True)
class LevelReference:
    """How many reference rows have each level of a column.

    Parameters
    ----------
    counts : ndarray of int
        By the number of the level.
    """

    counts: NDArray[np.intp]

    @property
    def n(self) -> int:
        """How many reference rows there were."""
        return int(self.counts.sum())

    def surprise(self, codes: NDArray[np.intp], *, own: bool = False) -> NDArray[np.float64]:
        """Compute how surprising levels are.

        Parameters
        ----------
        codes : ndarray of int
            Numbers of levels; negative ones, and those above all that were counted, are levels
            that no reference row has.
        own : bool
            Whether these are reference rows, each of which is compared with the others.
        """
        counts = np.append(self.counts, 0)
        numbers = np.where((codes < 0) | (codes >= len(self.counts)), len(self.counts), codes)
        own_by_level = np.full(len(counts), int(own))
        found = self._by_level(counts, own_by_level)
        return found[numbers]

    def _by_level(self, counts: NDArray[np.intp], own: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the surprise of each level."""
        n = max(self.n, 1)
        ascending = np.sort(counts[counts > 0])
        cumulated = np.concatenate([[0], np.cumsum(ascending)])
        n_not_more = np.searchsorted(ascending, counts, side="right")
        # Of an unseen level nobody knows how rare it is; about as many rows as have a level of
        # their own have one that was not seen before (Good and Turing).
        n_single = np.count_nonzero(counts == 1)
        n_as_rare = np.where(counts > 0, cumulated[n_not_more] - own, n_single)
        surprise = -np.log((1.0 + n_as_rare) / (n + 1.0 - own))
        n_next = np.append(ascending, n)[n_not_more]
        is_rare = counts <= _RARE * n
        bonus = np.log(np.maximum(n_next / np.maximum(counts, 1), 1.0))
        result: NDArray[np.float64] = np.maximum(surprise + np.where(is_rare, bonus, 0.0), 0.0)
        return result


def gaps_on_circle(
    values: NDArray[np.float64], reference: NDArray[np.float64], period: float, *, own: bool = False
) -> NDArray[np.float64]:
    """Compute how far values are from the third nearest reference value on a circle.

    Parameters
    ----------
    values, reference : ndarray
        Places on the circle, from 0 to `period`; reference values ascend. NaN stays NaN.
    period : float
    own : bool
        Whether the values are among the reference values.
    """
    n_near = min(3, len(reference) - own)
    if n_near < 1:
        return np.zeros(len(values))
    around = np.concatenate([reference - period, reference, reference + period])
    places = np.searchsorted(around, np.nan_to_num(values))
    near = places[:, None] + np.arange(-n_near - 1, n_near + 1)
    gaps = np.sort(np.abs(around[np.clip(near, 0, len(around) - 1)] - values[:, None]), axis=1)
    nearest: NDArray[np.float64] = gaps[:, n_near - 1 + own]
    return nearest


def _bounded(excess: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an excess of 0 or more that grows slowly once it is large."""
    positive = np.maximum(excess, 0.0)
    return np.minimum(positive, _LINEAR) + _LINEAR * np.log(np.maximum(positive / _LINEAR, 1.0))
