"""The views of the ensemble: scores of different kinds, each on the scale of held-out rows.

A view turns a row into −log p, where p is the share of held-out normal rows that score higher. It
can score the known-normal rows that it has learned from as if it had not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.backends import Backend, choose_backend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.scaling import FeatureScaler
from qms22.estimators.forest import Forest
from qms22.estimators.held_out import HeldOutScores, log_mean
from qms22.estimators.learned_rows import LearnedRows, hash_rows
from qms22.estimators.nearest import mean_log_distances

# From rows on a device to an array with one number per row.
RowScorer = Callable[[Any], Any]


# The share of the mean variance in every direction: columns that depend on each other, or that are
# constant among normal rows, have directions without any variance of their own.
SHRINKAGE = 1e-3

# Squared distances are at least this, because the logarithm of 0 is infinite.
LEAST_SQUARE = 1e-12


@dataclass(frozen=True)
class KnownRows:
    """The known-normal rows that views have learned from.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        In the order in which they were learned.
    held_out : sequence of ndarray of int
        The rows that each part of the view "members" has not learned from.
    n_marked : int
        How many rows marked as normal were learned from, too.
    """

    rows: NDArray[np.float64]
    held_out: Sequence[NDArray[np.intp]]
    n_marked: int = 0


class View(Protocol):
    """One way to look at rows."""

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        ...

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""
        ...

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        ...


@dataclass(frozen=True)
class MembersPart:
    """QMS22, learned with one part of T held out.

    Parameters
    ----------
    members : MemberFunctions
    held_out : HeldOutScores
        log(1 + η) of the held-out rows.
    """

    members: MemberFunctions
    held_out: HeldOutScores


@dataclass(frozen=True)
class MembersView:
    """QMS22: what is in the batch and not among normal rows.

    Parameters
    ----------
    scaler : FeatureScaler
    parts : tuple of MembersPart
    """

    scaler: FeatureScaler
    parts: tuple[MembersPart, ...]

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return sum(len(part.held_out.ascending) for part in self.parts)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""
        loaded = [(backend.load(part.members), part.held_out) for part in self.parts]

        def score(rows: Any) -> Any:
            scaled = self.scaler.transform(rows)
            return -log_mean(
                [
                    held_out.log_p_values(np.log1p(members.outlier_scores(scaled)))
                    for members, held_out in loaded
                ]
            )

        return score

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        scores, scaled = np.empty(len(known.rows)), self.scaler.transform(known.rows)
        backend = choose_backend("cpu")
        for part, out in zip(self.parts, known.held_out, strict=True):
            values = backend.load(part.members).outlier_scores(scaled[out])
            scores[out] = -part.held_out.log_p_values_of_own(np.log1p(values))
        return scores


@dataclass(frozen=True)
class DistancePart:
    """Rows of T to compute distances to.

    Parameters
    ----------
    references : ndarray of shape (n_references, p)
        Scaled.
    held_out : HeldOutScores
        `mean_log_distances` of rows of T, each without itself.
    """

    references: NDArray[Any]
    held_out: HeldOutScores


@dataclass(frozen=True)
class DistanceView:
    """The distance to the nearest known-normal rows.

    Parameters
    ----------
    scaler : FeatureScaler
    parts : tuple of DistancePart
        One; models of earlier versions have several.
    """

    scaler: FeatureScaler
    parts: tuple[DistancePart, ...]

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return sum(len(part.held_out.ascending) for part in self.parts)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""

        def score(rows: Any) -> Any:
            scaled = self.scaler.transform(rows)
            # In one thread: chunks of rows on the host are scored in threads already.
            return -log_mean(
                [
                    part.held_out.log_p_values(mean_log_distances(scaled, part.references))
                    for part in self.parts
                ]
            )

        return score

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        (near,) = self.parts
        scaled = self.scaler.transform(known.rows).astype(near.references.dtype)
        itself = _find(scaled, near.references)
        distances = mean_log_distances(scaled, near.references, skip=itself)
        return -near.held_out.log_p_values_of_own(distances)


@dataclass(frozen=True)
class CovarianceView:
    """The distance from the mean of normal rows in units of their covariance (Mahalanobis).

    Parameters
    ----------
    scaler : FeatureScaler
    members : MemberFunctions
        One member function ‖A x − b‖², the squared distance.
    held_out : HeldOutScores
        Logarithms of the squared distances of rows of T, each as if not learned from.
    """

    scaler: FeatureScaler
    members: MemberFunctions
    held_out: HeldOutScores

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return len(self.held_out.ascending)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""
        members = backend.load(self.members)

        def score(rows: Any) -> Any:
            squares = members.values(self.scaler.transform(rows))[:, 0]
            return -self.held_out.log_p_values(np.log(squares))

        return score

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        members = choose_backend("cpu").load(self.members)
        squares = members.values(self.scaler.transform(known.rows))[:, 0]
        alone = leave_one_out(squares, len(known.rows) + known.n_marked)
        return -self.held_out.log_p_values_of_own(np.log(alone))


@dataclass(frozen=True)
class ForestView:
    """A forest that tells the batch from T, by trees that have not learned from the row.

    Parameters
    ----------
    forest : Forest
    learned : LearnedRows
        Out-of-bag scores of the rows that the forest has learned from.
    held_out : HeldOutScores
        Out-of-bag scores of T.
    """

    forest: Forest
    learned: LearnedRows
    held_out: HeldOutScores

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return len(self.held_out.ascending)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""

        def score(rows: Any) -> Any:
            scores = self.learned.replace(self.forest.score(rows), rows)
            return -self.held_out.log_p_values(scores)

        return score

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        out_of_bag = self.learned.replace(np.zeros(len(known.rows)), known.rows)
        return -self.held_out.log_p_values_of_own(out_of_bag)


@dataclass(frozen=True)
class SimilarityView:
    """How much nearer a row is to marked outliers than to normal rows.

    Parameters
    ----------
    scaler : FeatureScaler
    normal : ndarray of shape (n_references, p)
        Rows of T and rows marked as normal, scaled.
    outliers : ndarray of shape (n_outliers, p)
        Marked outliers, scaled.
    held_out : HeldOutScores
        `similarity` of rows of T, each without itself among the normal rows.
    """

    scaler: FeatureScaler
    normal: NDArray[Any]
    outliers: NDArray[Any]
    held_out: HeldOutScores

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        return len(self.held_out.ascending)

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""

        def score(rows: Any) -> Any:
            scaled = self.scaler.transform(rows)
            return -self.held_out.log_p_values(similarity(scaled, self.normal, self.outliers))

        return score

    def score_known(self, known: KnownRows) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the view had not learned from them."""
        scaled = self.scaler.transform(known.rows).astype(self.normal.dtype)
        itself = _find(scaled, self.normal)
        compared = similarity(scaled, self.normal, self.outliers, skip_normal=itself)
        return -self.held_out.log_p_values_of_own(compared)


def similarity(
    scaled: Any,
    normal: NDArray[Any],
    outliers: NDArray[Any],
    *,
    skip_normal: NDArray[np.intp] | None = None,
    skip_outlier: NDArray[np.intp] | None = None,
    n_threads: int = 1,
) -> Any:
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
    of the covariance (shrinkage) is taken as the same.

    Parameters
    ----------
    squares : ndarray
        Squared distances of some of the rows to mean and covariance of all.
    n : int
        How many rows mean and covariance were learned from.
    """
    rest = np.maximum(1.0 - (1.0 - SHRINKAGE) * squares / max(1, n - 1), LEAST_SQUARE)
    return squares * n / max(1, n - 1) / rest


def _find(rows: NDArray[Any], references: NDArray[Any]) -> NDArray[np.intp]:
    """Return for every row the position of an equal one among the references; -1 for none."""
    known, keys = hash_rows(references), hash_rows(rows)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known[order], keys), len(known) - 1)]
    return np.where(known[place] == keys, place, -1)
