"""The views of the ensemble: scores of different kinds, each on the scale of held-out rows.

A view turns a row into −log p, where p is the share of held-out normal rows that score higher. It
can score the known-normal rows that it has learned from as if it had not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.backends import BACKENDS, Backend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.scaling import FeatureScaler
from qms22._runtime import exact
from qms22.estimators.forest import Forest, find_bins
from qms22.estimators.held_out import HeldOutScores, LearnedRows, hash_rows, log_mean
from qms22.estimators.nearest import mean_log_distances

# The share of the mean variance in every direction: columns that depend on each other, or that are
# constant among normal rows, have directions without any variance of their own. Small, so that it
# changes no other direction much.
SHRINKAGE = 1e-3

# Squared distances are at least this, because the logarithm of 0 is infinite.
LEAST_SQUARE = 1e-12


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows on a device, with what several views need of them computed once."""

    rows: Any
    _made: dict[int, Any] = field(default_factory=dict, init=False)

    @cached_property
    def keys(self) -> Any:
        """Hashes of the rows."""
        return hash_rows(self.rows)

    def scaled(self, scaler: FeatureScaler) -> Any:
        """Return the scaled rows, which must not be changed."""
        if id(scaler) not in self._made:
            self._made[id(scaler)] = scaler.transform(self.rows)
        return self._made[id(scaler)]

    def bins(self, edges: NDArray[np.float64]) -> Any:
        """Return the bins of the rows between edges; see `Forest`."""
        if id(edges) not in self._made:
            self._made[id(edges)] = find_bins(self.rows, edges)
        return self._made[id(edges)]


@dataclass(frozen=True, eq=False)
class KnownRows(ScoredRows):
    """The known-normal rows that views have learned from, in the order in which they did."""

    held_out: Sequence[NDArray[np.intp]]  # rows that each part of "members" has not learned from
    n_marked: int = 0  # rows marked as normal that were learned from, too


# From rows on a device to an array with one number per row.
RowScorer = Callable[[ScoredRows], Any]


class View:
    """One way to look at rows."""

    held_out: HeldOutScores

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return len(self.held_out.ascending)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""
        measure = self._measure(backend)
        return lambda shared: -self.held_out.log_p_values(measure(shared))

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        return -self.held_out.log_p_values_of_own(self._measure_known(known))

    def _measure(self, backend: Backend) -> RowScorer:
        """Return a function from rows on a device to numbers that are higher for odd rows."""
        raise NotImplementedError

    def _measure_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute these numbers of known-normal rows as if not learned from."""
        raise NotImplementedError


@dataclass(frozen=True)
class MembersPart:
    """QMS22, learned with one part of T held out."""

    members: MemberFunctions
    held_out: HeldOutScores  # log(1 + η) of the held-out rows


@dataclass(frozen=True)
class MembersView(View):
    """QMS22: what is in the batch and not among normal rows."""

    scaler: FeatureScaler
    parts: tuple[MembersPart, ...]

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return sum(len(part.held_out.ascending) for part in self.parts)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""
        loaded = [(backend.load(part.members), part.held_out) for part in self.parts]

        def score(shared: ScoredRows) -> Any:
            scaled = shared.scaled(self.scaler)
            return -log_mean(
                [
                    held_out.log_p_values(exact.log1p(members.outlier_scores(scaled)))
                    for members, held_out in loaded
                ]
            )

        return score

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        scores, scaled = np.empty(len(known.rows)), known.scaled(self.scaler)
        backend = BACKENDS["cpu"]
        for part, out in zip(self.parts, known.held_out, strict=True):
            values = backend.load(part.members).outlier_scores(scaled[out])
            scores[out] = -part.held_out.log_p_values_of_own(exact.log1p(values))
        return scores


@dataclass(frozen=True)
class DistanceView(View):
    """The distance to the nearest known-normal rows."""

    scaler: FeatureScaler
    references: NDArray[Any]  # rows of T, scaled
    held_out: HeldOutScores  # `mean_log_distances` of rows of T, each without itself

    def _measure(self, backend: Backend) -> RowScorer:
        # In one thread: chunks of rows on the host are scored in threads already.
        return lambda shared: mean_log_distances(shared.scaled(self.scaler), self.references)

    def _measure_known(self, known: KnownRows) -> NDArray[np.float64]:
        scaled = known.scaled(self.scaler).astype(self.references.dtype)
        itself = _find(scaled, self.references)
        return mean_log_distances(scaled, self.references, skip=itself)


@dataclass(frozen=True)
class CovarianceView(View):
    """The distance from the mean of normal rows in units of their covariance (Mahalanobis)."""

    scaler: FeatureScaler
    members: MemberFunctions  # one, ‖A x − b‖²: the squared distance
    held_out: HeldOutScores  # logarithms of those of rows of T, each as if not learned from

    def _measure(self, backend: Backend) -> RowScorer:
        members = backend.load(self.members)
        return lambda shared: exact.log(members.values(shared.scaled(self.scaler))[:, 0])

    def _measure_known(self, known: KnownRows) -> NDArray[np.float64]:
        squares = self.members.values(known.scaled(self.scaler))[:, 0]
        return exact.log(leave_one_out(squares, len(known.rows) + known.n_marked))


@dataclass(frozen=True)
class ForestView(View):
    """A forest that tells the batch from T, by trees that have not learned from the row."""

    forest: Forest
    learned: LearnedRows  # out-of-bag scores of the rows that the forest has learned from
    held_out: HeldOutScores  # those of T

    def _measure(self, backend: Backend) -> RowScorer:
        # This share of all trees has not learned from a row. As many score a new row: with more
        # of them its score would vary less than theirs.
        forest = self.forest.first(math.ceil(self.forest.n_trees / math.e))

        def measure(shared: ScoredRows) -> Any:
            scores = forest.score_bins(shared.bins(forest.edges))
            return self.learned.replace(scores, shared.keys)

        return measure

    def _measure_known(self, known: KnownRows) -> NDArray[np.float64]:
        unknown = np.zeros(len(known.rows))
        return self.learned.replace(unknown, known.keys)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SimilarityView(View):
    """How much nearer a row is to marked outliers than to normal rows."""

    scaler: FeatureScaler
    normal: NDArray[Any]  # rows of T and rows marked as normal, scaled
    outliers: NDArray[Any]  # marked outliers, scaled
    held_out: HeldOutScores  # `similarity` of rows of T, each without itself

    def _measure(self, backend: Backend) -> RowScorer:
        return lambda shared: similarity(shared.scaled(self.scaler), self.normal, self.outliers)

    def _measure_known(self, known: KnownRows) -> NDArray[np.float64]:
        scaled = known.scaled(self.scaler).astype(self.normal.dtype)
        itself = _find(scaled, self.normal)
        return similarity(scaled, self.normal, self.outliers, skip_normal=itself)


def similarity(
    scaled: Any,
    normal: NDArray[Any],
    outliers: NDArray[Any],
    *,
    skip_normal: NDArray[np.intp] | None = None,
    skip_outlier: NDArray[np.intp] | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Compute the logarithm of the distance to normal rows over that to outliers.

    See `mean_log_distances` for the rows to skip: a row itself must not count.
    """
    to_normal = mean_log_distances(scaled, normal, skip=skip_normal, n_threads=n_threads)
    to_outliers = mean_log_distances(scaled, outliers, skip=skip_outlier, n_threads=n_threads)
    return to_normal - to_outliers


def leave_one_out(squares: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Compute the squared distances of rows to the mean and covariance of the other rows.

    With mean and covariance of n rows and h the squared distance of a row, that of the others is
    h · n / (n − 1) / (1 − h / (n − 1)), by the formula of Sherman and Morrison; the constant part
    of the covariance (shrinkage) is taken as the same. `squares` may be of some of the rows.
    """
    rest = np.maximum(1.0 - (1.0 - SHRINKAGE) * squares / max(1, n - 1), LEAST_SQUARE)
    return squares * n / max(1, n - 1) / rest


def _find(rows: NDArray[Any], references: NDArray[Any]) -> NDArray[np.intp]:
    """Return for every row the position of an equal one among the references; -1 for none."""
    places = LearnedRows.of_equal(hash_rows(references), np.arange(len(references)))
    found: NDArray[np.intp] = places.replace(np.full(len(rows), -1), hash_rows(rows))
    return found
