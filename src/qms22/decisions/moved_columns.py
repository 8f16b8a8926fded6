"""Compare the columns of a batch with those of known-normal rows: what moved, and what is missing.

Two questions are asked of every column. Did it move: are the values of the batch distributed unlike
the normal ones? And are normal rows missing: does some range or level hold clearly fewer rows than
it would if all but a fifth of the batch were drawn as the normal rows were? A batch with anomalies
still has its normal rows, so that the second question distinguishes drift from anomalies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, expit, kolmogorov, log_expit

from qms22._runtime import exact
from qms22.decisions.beta_binomial import beta_binomial_cdf
from qms22.decisions.change_text import change_of_numbers, change_of_share

# A batch of which less than this share is like the normal rows has drifted.
LEAST_NORMAL = 0.8

# More rows than this of each table need not be compared.
MOST_COMPARED = 20_000

# Moves smaller than these are not worth naming, however certain they are: the largest difference
# between two distribution functions, or the share of rows that changed their level; and the
# difference between two shares of missing cells.
LEAST_MOVE = 0.1
LEAST_MISSING_MOVE = 0.05

# Ranges of numbers are unions of bins that hold the same number of normal rows.
_N_BINS = 20

# Levels that are compared one by one; the others are taken together. Only levels that this share
# of the normal rows has can be lost, which are hardly ever more than `_MOST_TESTED`.
_MOST_LEVELS = 40
_LEAST_SHARE = 0.05
_MOST_TESTED = 40

# Where a beta distribution is integrated, in standard deviations. The lower tail is the longer one.
_DEVIATIONS = np.linspace(-16.0, 8.0, 385)

# A batch may move by so many times what the normal rows do from one quarter of them to another. If
# it is of another time than all of them, it may move by the second number in any case, or, where
# columns have levels or few different values, by the third, as these change with the season; and
# each value may by a share of the width of the middle half. Quarters differ if chance hardly
# explains it.
_ORDINARY = 2.0
_LATER_MOVE, _LATER_SHARE = 0.25, 0.5
_SMALL_MOVE = 0.1
# The values of a price list, those of a column with few different ones, may rise by some percent.
_FEW_VALUES = 0.05
_SMALL_RISE = 0.1
_N_PARTS = 4
_BY_CHANCE = 0.01

# A column looks like a period or a counter if this share of the batch is where no normal row is.
_OUTSIDE = 0.9


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """One column of the known-normal rows and of the batch.

    Cells are numbers, with NaN for missing ones, or positions among levels, with -1.
    """

    name: str
    normal: NDArray[Any]
    batch: NDArray[Any]
    levels: tuple[str, ...] = ()  # of a category, in both tables; empty for numbers
    gap: str = "missing"  # what cells without a value are

    def present(self) -> list[NDArray[Any]]:
        """Return the cells of both tables that are not missing."""
        cells = (self.normal, self.batch)
        return [each[each >= 0 if self.levels else ~np.isnan(each)] for each in cells]


@dataclass(frozen=True)
class MovedColumn:
    """How the values of a column, or its share of missing cells, differ between two tables.

    Parameters
    ----------
    name : str
    change : str
        What changed, in the units of the column: "median 12.3 → 15.1", "share of 'US' 40 % → 55 %",
        "missing 1 % → 8 %".
    effect : float
        In [0, 1]: the largest difference between the two distribution functions of numbers, half of
        the sum of the differences between the shares of levels, both times the share of rows with a
        value, or the difference between the shares of missing cells.
    p_value : float
        Of the hypothesis that the batch is like the normal rows in all columns, adjusted for the
        number of comparisons by Holm's method.
    p_lost : float
        Of the hypothesis that at least four fifths of the batch are like the normal rows, adjusted
        for the number of comparisons by Bonferroni's.
    is_period : bool
        Whether it looks like a period or a counter: nearly all values of the batch are whole
        numbers outside the range of the normal ones, or levels that no normal row has.
    is_missing : bool
        Whether missing cells were compared, and not values.
    """

    name: str
    change: str
    effect: float
    p_value: float
    p_lost: float
    is_period: bool = False
    is_missing: bool = False

    @property
    def is_large(self) -> bool:
        """Whether the move is worth naming, if it is certain."""
        return self.effect >= (LEAST_MISSING_MOVE if self.is_missing else LEAST_MOVE)

    def is_certain(self, level: float) -> bool:
        """Return whether normal rows are missing, or a large move cannot be chance."""
        return self.p_lost <= level or (self.is_large and self.p_value <= level)


def _ranges() -> NDArray[np.int64]:
    """Return which bins are in each range: tails, centers, what is outside them, and pairs."""
    bins = np.arange(_N_BINS)
    lower = [bins < n for n in (1, 2, 4, 6, 8, 10)]
    centers = [(bins >= n) & (bins < _N_BINS - n) for n in (4, 6, 8)]
    pairs = [bins // 2 == n for n in range(1, _N_BINS // 2 - 1)]
    sets = [*lower, *(tail[::-1] for tail in lower), *centers, *(~c for c in centers), *pairs]
    return np.array(sets).astype(np.int64)


_RANGES = _ranges()


def compare_columns(columns: Sequence[ColumnPair]) -> tuple[MovedColumn, ...]:
    """Compare columns of a batch with those of known-normal rows.

    If the batch is drawn as the normal rows were, the lowest `p_value` of all columns is at most u
    with probability at most u, and so is the lowest `p_lost`.

    The tables have at most `MOST_COMPARED` rows each; draw rows of larger ones at random. All
    columns are returned, whether they moved or not, strongest effect first. A column with missing
    cells has two entries, one of its values and one of its missing cells.
    """
    found = [aspect for pair in columns for aspect in _compare(pair)]
    adjusted = _holm([aspect.p_value for aspect in found])
    moved = [
        replace(aspect, p_value=p_value, p_lost=min(1.0, aspect.p_lost * len(found)))
        for aspect, p_value in zip(found, adjusted, strict=True)
    ]
    return tuple(sorted(moved, key=lambda column: -column.effect))


def compare_over_time(
    columns: Sequence[ColumnPair], order: NDArray[np.intp], distance: float, level: float
) -> list[MovedColumn]:
    """Compare columns, and leave out those that always move so much in the course of time.

    `order` has the normal rows in the order of time. `distance` is that from their middle to the
    middle of the batch in time, in units of half of their time: from one quarter of them to the
    others it is about 1. Columns that have not moved with certainty `level` are not looked at.
    """
    pairs = {pair.name: pair for pair in columns}
    parts, is_later = np.array_split(order, _N_PARTS), distance > 1.0
    kept = []
    for column in compare_columns(columns):
        if column.is_certain(level):
            pair, effects = pairs[column.name], [0.0]
            for part in parts:
                rest = np.delete(pair.normal, part)
                effects += [
                    aspect.effect
                    for aspect in _compare(replace(pair, normal=rest, batch=pair.normal[part]))
                    if aspect.is_missing == column.is_missing and aspect.p_value <= _BY_CHANCE
                ]
            if is_later and not column.is_missing:
                column = replace(column, effect=min(column.effect, _effect_beyond(pair)))
            ordinary = _ORDINARY * max(1.0, distance) * max(effects)
            later = _LATER_MOVE if column.is_missing or not _has_levels(pair) else _LATER_SHARE
            if column.effect < max(ordinary, later * is_later):
                continue
        kept.append(column)
    return kept


def _has_levels(pair: ColumnPair) -> bool:
    """Return whether a column has levels, or few different values, as a price list has."""
    normal = pair.present()[0]
    return bool(pair.levels) or len(np.unique(normal)) <= max(1, _FEW_VALUES * len(normal))


def _effect_beyond(pair: ColumnPair) -> float:
    """Return the effect of a move but for what is small next to the spread: new prices."""
    normal, batch = map(np.sort, pair.present())
    if pair.levels or not min(len(normal), len(batch)):
        return 1.0
    width = float(np.subtract(*np.quantile(normal, [0.75, 0.25])))
    small = np.full(len(normal), _SMALL_MOVE * width)
    if _has_levels(pair):
        small = np.maximum(small, _SMALL_RISE * np.abs(normal))
    up, down = normal + small, normal - small
    shares = [
        [np.searchsorted(batch, values, side=side) / len(batch) for values in (up, down)]
        for side in ("left", "right")
    ]
    places = np.arange(len(normal) + 1) / len(normal)
    # The batch has fewer rows below a little more, or more rows below a little less.
    fewer = places[1:] - shares[1][0]
    more = shares[0][1] - places[:-1]
    return float(max(fewer.max(), more.max(), 0.0))


def _compare(pair: ColumnPair) -> Iterator[MovedColumn]:
    """Compare the values of a column, and its missing cells if there are any; not adjusted."""
    sizes = _Sizes(len(pair.normal), len(pair.batch))
    normal, batch = pair.present()
    n_present = _Sizes(len(normal), len(batch))
    if n_present != sizes:
        yield _compare_missing(pair, sizes, n_present)
    if not min(n_present):
        return
    if pair.levels:
        yield _compare_levels(pair, normal, batch, sizes)
    else:
        yield _compare_numbers(pair, sizes, n_present)


class _Sizes(NamedTuple):
    """Numbers of known-normal rows and of rows of the batch."""

    normal: int
    batch: int


def _compare_missing(pair: ColumnPair, sizes: _Sizes, n_present: _Sizes) -> MovedColumn:
    there = np.array(n_present)
    missing = np.array(sizes) - there
    shares = missing / sizes
    lost = _chance_of_lost(np.column_stack([missing, there]), sizes)
    return MovedColumn(
        pair.name,
        change_of_share(pair.gap, *shares),
        float(abs(shares[1] - shares[0])),
        _chance_of_shares(missing[:, np.newaxis], sizes),
        min(1.0, 2 * float(lost.min())),
        is_missing=True,
    )


def _compare_levels(
    pair: ColumnPair, normal: NDArray[Any], batch: NDArray[Any], sizes: _Sizes
) -> MovedColumn:
    """Compare the levels of a category where it is not missing."""
    counts = np.array([np.bincount(v, minlength=len(pair.levels)) for v in (normal, batch)])
    is_new = (counts[0] == 0)[batch]
    # By name where counts are equal: which table has a level must not decide what is rare.
    totals = counts.sum(axis=0).tolist()
    order = np.array(
        sorted(range(len(totals)), key=lambda code: (-totals[code], pair.levels[code]))
    )
    common, rare = counts[:, order[:_MOST_LEVELS]], counts[:, order[_MOST_LEVELS:]]
    grouped = np.column_stack([common, rare.sum(axis=1)]) if rare.size else common
    n_present = _Sizes(len(normal), len(batch))
    change = grouped[1] / n_present.batch - grouped[0] / n_present.normal
    most = int(np.argmax(np.abs(change[: common.shape[1]])))
    shares = common[:, most] / n_present
    # Rare levels come and go without a drift of the whole.
    is_tested = counts[0] >= _LEAST_SHARE * sizes.normal
    lost = _chance_of_lost(counts[:, is_tested], sizes)
    return MovedColumn(
        pair.name,
        change_of_share(f"share of {pair.levels[order[most]]!r}", *shares),
        float(np.abs(change).sum() / 2) * _share_present(sizes, n_present),
        _chance_of_shares(grouped, n_present),
        min(1.0, _MOST_TESTED * float(lost.min(initial=1.0))),
        bool(is_new.mean() > _OUTSIDE),
    )


def _compare_numbers(pair: ColumnPair, sizes: _Sizes, n_present: _Sizes) -> MovedColumn:
    """Compare numbers where they are not missing."""
    values = np.concatenate([pair.normal, pair.batch])
    # A stable sort of a random order breaks ties at random; missing values come last.
    order = np.random.RandomState(0).permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    is_normal = order < sizes.normal
    values, is_known = values[order[: sum(n_present)]], is_normal[: sum(n_present)]
    normal, batch = values[is_known], values[~is_known]

    n_lower = np.cumsum(is_known)
    shares = n_lower / n_present.normal, (np.arange(1, len(values) + 1) - n_lower) / n_present.batch
    is_last = np.append(values[1:] > values[:-1], True)  # of those that are equal
    effect = float(np.abs(shares[0] - shares[1])[is_last].max())
    size = n_present.normal * n_present.batch / len(values)
    lost = _chance_of_lost(_counts_in_ranges(is_normal, sizes), sizes)
    is_outside = (batch < normal[0]) | (batch > normal[-1])
    is_whole = bool((values == np.rint(values)).all())
    return MovedColumn(
        pair.name,
        change_of_numbers(normal, batch),
        effect * _share_present(sizes, n_present),
        # The limit distribution: higher than the exact values that tests/test_promises.py has.
        float(kolmogorov(math.sqrt(size) * effect)),
        min(1.0, len(_RANGES) * float(lost.min())),
        is_whole and bool(is_outside.mean() > _OUTSIDE),
    )


def _share_present(sizes: _Sizes, n_present: _Sizes) -> float:
    """Return the share of rows with a value, in the table that has more."""
    return max(n_present.normal / sizes.normal, n_present.batch / sizes.batch)


def _counts_in_ranges(is_normal: NDArray[np.bool_], sizes: _Sizes) -> NDArray[np.int64]:
    """Count the rows of both tables in each of the `_RANGES`, in an array of shape (2, n_ranges).

    The edges are normal rows of fixed ranks. Rows are in ascending order of their values. As equal
    ones are in random order, the counts have the same distribution as those of different values.
    """
    n_lower = np.cumsum(is_normal)[~is_normal]
    edges = np.rint(np.arange(1, _N_BINS) * sizes.normal / _N_BINS)
    n_normal = np.diff([0, *edges, sizes.normal]).astype(np.int64)
    n_batch = np.bincount(np.searchsorted(edges, n_lower, side="right"), minlength=_N_BINS)
    counts: NDArray[np.int64] = np.array([n_normal, n_batch]) @ _RANGES.T
    return counts


def _chance_of_lost(counts: NDArray[np.int64], sizes: _Sizes) -> NDArray[np.float64]:
    """Compute how probable so few rows of the batch are in each of some sets, or fewer.

    Under the hypothesis that a share `LEAST_NORMAL` of the batch is drawn as the normal rows were,
    and that the others are elsewhere. A set with x of n normal rows has a probability that follows
    a Beta(x, n - x + 1) distribution if its edges are normal rows of fixed ranks, and the count of
    the batch is binomial given that probability. For fixed sets, such as levels, a share of 1
    gives Fisher's exact test, so that lower shares are on the safe side of it.

    `counts` has the normal rows and the rows of the batch in each set, `sizes` all rows.
    """
    n_normal, n_batch = counts
    chances = np.ones(len(n_normal))
    is_few = n_batch * sizes.normal < LEAST_NORMAL * n_normal * sizes.batch
    if not is_few.any():
        return chances
    a = n_normal[is_few, np.newaxis].astype(np.float64)
    b = sizes.normal + 1 - a
    count = n_batch[is_few, np.newaxis]
    # The trapezoidal rule on the scale of log-odds, where the beta distribution is almost normal.
    odds = exact.log(a / b) + np.sqrt(1 / a + 1 / b) * _DEVIATIONS
    share = expit(odds)
    density = exact.exp(a * log_expit(odds) + b * log_expit(-odds) - betaln(a, b))
    at_most = betainc(sizes.batch - count, count + 1, 1 - LEAST_NORMAL * share)
    below = betainc(a[:, 0], b[:, 0], share[:, 0])
    chances[is_few] = np.minimum(1.0, np.trapezoid(density * at_most, odds, axis=1) + below)
    return chances


def _chance_of_shares(counts: NDArray[np.int64], sizes: _Sizes) -> float:
    """Compare shares by Fisher's exact test, on both sides, with Bonferroni's correction."""
    lowest = 1.0
    for x, y in counts.T.tolist():
        fewer = beta_binomial_cdf(y, sizes.batch, x, sizes.normal - x + 1) if x else 1.0
        more = beta_binomial_cdf(x, sizes.normal, y, sizes.batch - y + 1) if y else 1.0
        lowest = min(lowest, fewer, more)
    # The shares of two levels are one comparison.
    n_sets = 1 if counts.shape[1] == 2 else counts.shape[1]
    return min(1.0, 2 * n_sets * lowest)


def _holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by Holm's method."""
    values = np.array(p_values)
    order = np.argsort(values)
    adjusted = np.empty(len(values))
    factors = np.arange(len(values), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    adjusted_list: list[float] = adjusted.tolist()
    return adjusted_list
