"""The views of the ensemble: scores of different kinds, each on the scale of held-out rows.

A view turns a row into −log p, where p is the share of held-out normal rows that score higher. It
can score the known-normal rows that it has learned from as if it had not; see `score_held_out`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.backends import Backend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.scaling import FeatureScaler
from qms22.estimators.forest import Forest
from qms22.estimators.held_out import HeldOutScores, log_mean
from qms22.estimators.learned_rows import LearnedRows
from qms22.estimators.nearest import mean_log_distances

# From rows on a device to an array with one number per row.
RowScorer = Callable[[Any], Any]


class View(Protocol):
    """One way to look at rows."""

    @property
    def n_compared(self) -> int:
        """Number of held-out rows behind each p."""
        ...

    def scorer(self, backend: Backend) -> RowScorer:
        """Load the view on a device; return a function from rows there to −log p."""
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
        forest = self.forest.load(backend.device)

        def score(rows: Any) -> Any:
            scores = self.learned.replace(forest.score(rows), rows)
            return -self.held_out.log_p_values(scores)

        return score


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
