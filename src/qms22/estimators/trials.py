"""Scores of rows in trials: each row of the batch, in turn, is taken for a known-normal one.

In the trial of row j the known-normal rows and j are treated alike, and the other rows of the batch
are the batch. If j is normal, it takes every rank among the known-normal rows with the same
probability, whatever the scores are. So every known-normal row teaches, and every one of them is
compared with; none is held out.

It would take one fit per row of the batch, if all trials did not share their work. Trees draw their
rows at random (`ForestTrials`), and distances and covariance change little by one more row, which
can be computed directly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular  # type: ignore[import-untyped, unused-ignore]
from scipy.spatial.distance import cdist  # type: ignore[import-untyped, unused-ignore]

from qms22 import _core
from qms22._cpm.scaling import DEVIATION, FeatureScaler
from qms22.estimators.forest import bin_rows
from qms22.estimators.learning import distance_scaler
from qms22.estimators.marks import Marks

# A tree takes a known-normal row into its bag with this probability.
_IN_BAG = 0.4
# It leaves a row of the batch out with the first of these, and takes it as a known-normal row with
# the second: of a row that is not taken as one of the batch, the share in the bag is _IN_BAG, as it
# is of a known-normal row.
_BATCH_OUT = 0.4
_BATCH_AS_NORMAL = _BATCH_OUT * _IN_BAG / (1 - _IN_BAG)
_MIN_LEAF = 5

# Known-normal rows that distances are computed to, on average.
_REFERENCES = 4000
_ROWS_AT_ONCE = 512

# Distances get this share of a typical one added: the logarithm of 0 is infinite.
_FLOOR = 1e-3

# The variance added in every direction, in squared standard deviations of the columns.
_RIDGE = 1e-3
# Added to squared distances: the logarithm of 0 is infinite.
_LEAST = 1e-12

# Of scores that are logarithms; see `_on_grid`.
_DECIMALS = 6


class TrialScores(NamedTuple):
    """Scores in some trials, one column for each; higher is more suspicious.

    Parameters
    ----------
    known : ndarray of shape (n_normal + 1, n_trials)
        Of the known-normal rows, and in the last line of the row on trial.
    batch : ndarray of shape (n_batch, n_trials)
        Of the rows of the batch. That of the row on trial is not used.
    """

    known: NDArray[np.float64]
    batch: NDArray[np.float64]


class Trials(Protocol):
    """One kind of scores."""

    def untried(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores of the known-normal rows and of the batch without a row on trial."""
        ...

    def scores(self, rows: NDArray[np.intp]) -> TrialScores:
        """Return the scores in the trials of some rows of the batch."""
        ...


def _with_own(
    known: NDArray[np.float64], batch: NDArray[np.float64], rows: NDArray[np.intp]
) -> TrialScores:
    """Put the scores of the rows on trial below those of the known-normal rows."""
    own = batch[rows, np.arange(len(rows))]
    return TrialScores(np.vstack([known, own]), batch)


def _on_grid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round scores.

    The row on trial and the known-normal rows are computed by different formulas. Where rows are
    equal, their scores must be so as well: rounding errors would tell which of them is on trial.
    """
    return np.round(scores, _DECIMALS)


class ForestTrials:
    """Trees that tell the batch from known-normal rows.

    In every tree each known-normal row is in the bag as a normal row, or out of it. Each row of the
    batch is out of it, or in it as a normal row, or in it as a row of the batch. The trial of j
    uses the trees in which j is not a row of the batch: there j is in the bag as a normal row with
    the same probability as a known-normal row, independently in each tree. A row is scored by the
    trees whose bag it is not in.

    Parameters
    ----------
    normal, batch : ndarray
    marks : Marks
        Outliers, which are in every bag as rows of the batch, and normal rows that only teach.
    n_trees : int
    rng : RandomState
    n_threads : int
        Does not change the result.
    """

    def __init__(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        marks: Marks,
        n_trees: int,
        rng: np.random.RandomState,
        n_threads: int,
    ) -> None:
        rows = marks.add_normal(marks.add_outliers(np.concatenate([normal, batch])))
        ends = np.cumsum([len(normal), len(batch), len(marks.outliers)])
        roles = np.empty((n_trees, len(rows)), dtype=np.uint8)
        draws = rng.random_sample((n_trees, len(rows)))
        known, searched, marked, teaching = np.split(np.arange(len(rows)), ends)
        in_bag = draws < _IN_BAG
        as_normal = draws < _BATCH_AS_NORMAL
        as_batch = draws >= _BATCH_AS_NORMAL + _BATCH_OUT
        for part in (known, teaching):
            roles[:, part] = np.where(in_bag[:, part], _core.AS_NORMAL, _core.OUT_OF_BAG)
        roles[:, searched] = np.where(
            as_batch[:, searched],
            _core.AS_BATCH,
            np.where(as_normal[:, searched], _core.AS_NORMAL, _core.OUT_OF_BAG),
        )
        roles[:, marked] = _core.AS_BATCH
        values = _core.grow_by_roles(
            bin_rows(rows),
            roles,
            max_features=max(1, math.isqrt(rows.shape[1])),
            min_leaf=_MIN_LEAF,
            seed=rng.randint(2**31 - 1),
            n_threads=n_threads,
        )
        n_scored = len(normal) + len(batch)
        self._n_normal = len(normal)
        self._values = values[:, :n_scored]
        self._is_out = roles[:, :n_scored] == _core.OUT_OF_BAG
        self._is_used = roles[:, searched] != _core.AS_BATCH

    def part(self, number: int, n_parts: int) -> ForestTrials:
        """Return a part of the trees, as a forest of its own."""
        forest = object.__new__(ForestTrials)
        forest._n_normal = self._n_normal
        forest._values = self._values[number::n_parts]
        forest._is_out = self._is_out[number::n_parts]
        forest._is_used = self._is_used[number::n_parts]
        return forest

    def untried(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores of the known-normal rows and of the batch without a row on trial."""
        means = self._means(np.ones((len(self._values), 1)))[:, 0]
        return means[: self._n_normal], means[self._n_normal :]

    def scores(self, rows: NDArray[np.intp]) -> TrialScores:
        """Return the scores in the trials of some rows of the batch."""
        means = self._means(self._is_used[:, rows].astype(np.float64))
        return _with_own(means[: self._n_normal], means[self._n_normal :], rows)

    def _means(self, used: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean values of rows over the trees used, one column for each trial."""
        # Values are multiples of 2⁻²⁰ and at most 1, so that sums in float64 are exact: the order
        # of rows does not change a bit.
        sums = self._values.T.astype(np.float64) @ used
        counts = self._is_out.T.astype(np.float64) @ used
        return np.where(counts > 0, sums / np.maximum(counts, 1), 0.5)


class DistanceTrials:
    """The expected logarithm of the distance to the nearest row of a random half.

    As of `mean_log_distances`. References are the known-normal rows and the row on trial; of many
    rows a random part, in which each row is with the same probability.

    Parameters
    ----------
    normal, batch : ndarray
    groups : sequence of sequence of int
        Columns of features with several.
    rng : RandomState
    """

    def __init__(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        groups: Sequence[Sequence[int]],
        rng: np.random.RandomState,
    ) -> None:
        everything = np.concatenate([normal, batch])
        # Learned from all rows alike: the scaling must not tell known-normal rows from the batch.
        standard = FeatureScaler.learn(everything, "standard")
        rows = distance_scaler(standard, everything, groups).transform(everything)
        n_normal = len(normal)
        is_reference = rng.random_sample(len(rows)) < min(1.0, _REFERENCES / n_normal)
        references = np.flatnonzero(is_reference[:n_normal])
        self._floor = _FLOOR * (math.sqrt(2.0 * float(rows.var(axis=0).sum())) or 1.0)
        self._rows, self._n_normal = rows, n_normal
        self._is_reference = is_reference
        self._nearest = np.empty((len(rows), _core.NEIGHBORS))
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            distances = np.full((len(rows[part]), len(references) + _core.NEIGHBORS), np.inf)
            distances[:, : len(references)] = cdist(rows[part], rows[references])
            itself = np.arange(len(rows))[part, None] == references
            distances[:, : len(references)][itself] = np.inf
            distances.partition(_core.NEIGHBORS - 1, axis=1)
            self._nearest[part] = np.sort(distances[:, : _core.NEIGHBORS], axis=1)

    def untried(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores of the known-normal rows and of the batch without a row on trial."""
        means = _on_grid(self._means(self._nearest, np.full((len(self._rows), 1), np.inf)))[:, 0]
        return means[: self._n_normal], means[self._n_normal :]

    def scores(self, rows: NDArray[np.intp]) -> TrialScores:
        """Return the scores in the trials of some rows of the batch."""
        on_trial = self._n_normal + rows
        means = np.empty((len(self._rows), len(rows)))
        for first in range(0, len(self._rows), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            added = cdist(self._rows[part], self._rows[on_trial])
            # A row is no neighbor of its own.
            added[np.arange(len(self._rows))[part, None] == on_trial] = np.inf
            added[:, ~self._is_reference[on_trial]] = np.inf
            means[part] = _on_grid(self._means(self._nearest[part], added))
        return _with_own(means[: self._n_normal], means[self._n_normal :], rows)

    def _means(
        self, nearest: NDArray[np.float64], added: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the weighted means with one more neighbor: an array like `added`."""
        weights = 0.5 ** np.arange(1, _core.NEIGHBORS + 1)
        there = np.isfinite(nearest)
        logs = np.where(there, np.log(np.where(there, nearest, 1.0) + self._floor), 0.0) * weights
        # Sums over the neighbors before each place, which is where the added one may come.
        before = np.concatenate([np.zeros((len(nearest), 1)), np.cumsum(logs, axis=1)], axis=1)
        total, weight = before[:, -1:], (there * weights).sum(axis=1, keepdims=True)
        # With the added one the last of a full list is one too many.
        kept, kept_weight = before[:, -2:-1], np.minimum(weight, 1.0 - 2 * weights[-1])
        place = np.zeros(added.shape, dtype=np.intp)
        for column in nearest.T:
            place += column[:, None] < added
        is_neighbor = np.isfinite(added) & (place < _core.NEIGHBORS)
        first = np.take_along_axis(before, place, axis=1)
        own_weight = 0.5 ** (place + 1)
        own = own_weight * np.log(np.where(is_neighbor, added, 1.0) + self._floor)
        # The neighbors behind the added one move one place on, so that they count half.
        moved = first + own + (kept - first) / 2
        before_weight = 1.0 - 0.5**place
        behind_weight = np.maximum(kept_weight - before_weight, 0.0)
        moved_weight = before_weight + own_weight + behind_weight / 2
        means: NDArray[np.float64] = np.where(
            is_neighbor, moved / moved_weight, total / np.where(weight > 0, weight, 1.0)
        )
        return means


class CovarianceTrials:
    """The distance from the mean of all rows in units of the covariance of the normal ones.

    The second moments of the known-normal rows and the row on trial, about the mean of all rows,
    take the place of the covariance. A row of these is scored as if it had not been learned from;
    see `learn_covariance`.
    """

    def __init__(self, normal: NDArray[np.float64], batch: NDArray[np.float64]) -> None:
        everything = np.concatenate([normal, batch])
        rows = FeatureScaler.learn(everything, "standard").transform(everything) / DEVIATION
        n_normal = len(normal)
        known = rows[:n_normal]
        moments = known.T @ known / (n_normal + 1)
        moments[np.diag_indices(len(moments))] += _RIDGE
        self._white = solve_triangular(np.linalg.cholesky(moments), rows.T, lower=True)
        self._squares = np.sum(self._white**2, axis=0)
        self._n_normal = n_normal

    def untried(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores of the known-normal rows and of the batch without a row on trial."""
        known, batch = self._squares[: self._n_normal], self._squares[self._n_normal :]
        return _log_squares(_unlearned(known, self._n_normal + 1)), _log_squares(batch)

    def scores(self, rows: NDArray[np.intp]) -> TrialScores:
        """Return the scores in the trials of some rows of the batch."""
        on_trial, n = self._n_normal + rows, self._n_normal + 1
        products = self._white.T @ self._white[:, on_trial]
        # The formula of Sherman and Morrison, for one more row in the moments.
        squares = self._squares[:, None] - products**2 / (n + self._squares[on_trial])
        known, batch = squares[: self._n_normal], squares[self._n_normal :]
        batch[rows, np.arange(len(rows))] = self._squares[on_trial]
        return _with_own(_log_squares(_unlearned(known, n)), _log_squares(batch), rows)


class FixedTrials:
    """Scores that do not depend on which rows are known to be normal: the same in every trial.

    Parameters
    ----------
    known, batch : ndarray
        Scores of the known-normal rows and of the batch, by a rule that treats both alike.
    """

    def __init__(self, known: NDArray[np.float64], batch: NDArray[np.float64]) -> None:
        self._known, self._batch = _on_grid(known), _on_grid(batch)

    def untried(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores of the known-normal rows and of the batch without a row on trial."""
        return self._known, self._batch

    def scores(self, rows: NDArray[np.intp]) -> TrialScores:
        """Return the scores in the trials of some rows of the batch."""
        known = np.repeat(self._known[:, None], len(rows), axis=1)
        return _with_own(known, np.repeat(self._batch[:, None], len(rows), axis=1), rows)


def _log_squares(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    return _on_grid(np.log(squares + _LEAST))


def _unlearned(squares: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the squared distances of learned rows as if each had not been learned from."""
    alone: NDArray[np.float64] = squares / np.maximum(1.0 - squares / n, _LEAST)
    return alone
