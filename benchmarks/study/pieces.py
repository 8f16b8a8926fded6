"""Fits and distances of one fold, which the variants share; each is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import rankdata
from sklearn.covariance import ledoit_wolf

from qms22._cpm.members import MemberFunctions
from qms22._cpm.options import SolverOptions
from qms22._cpm.restarts import solve_restarts
from qms22._cpm.scaling import DEVIATION, FeatureScaler, range_scaler
from qms22.datasets import Fold
from qms22.detectors import BRM
from qms22.estimators.held_out import HeldOutScores
from qms22.estimators.nearest import MOST_REFERENCES, mean_log_distances

# Least variance of whitened directions, as a share of a feature's variance: below it, rounding
# errors would dominate.
_LEAST_VARIANCE = 1e-6

Array = NDArray[np.float64]
Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Search:
    """Settings of QMS22.

    Parameters
    ----------
    space : {"maxabs", "standard", "whitened"}
        How features are scaled.
    n_members : int
    options : SolverOptions
    """

    space: str = "standard"
    n_members: int = 7
    options: SolverOptions = field(default_factory=lambda: SolverOptions(max_iter=20))

    @classmethod
    def standard(cls, n_members: int = 7, **options: Any) -> Search:
        """Search in standardized features, with 20 sweeps by default."""
        return cls("standard", n_members, SolverOptions(**{"max_iter": 20, **options}))


@dataclass(frozen=True)
class HoldOut:
    """How rows of T are held out.

    Parameters
    ----------
    n_splits : int
    share : float or None
        Share of T to draw for each split. None cuts T into parts: every row is held out once.
    """

    n_splits: int = 8
    share: float | None = None

    def draw(self, n_normal: int, rng: np.random.RandomState) -> list[NDArray[np.intp]]:
        """Return the positions of the held-out rows of every split."""
        if self.share is None:
            return np.array_split(rng.permutation(n_normal), min(self.n_splits, n_normal))
        n_held_out = round(self.share * n_normal)
        return [rng.permutation(n_normal)[:n_held_out] for _ in range(self.n_splits)]


@dataclass(frozen=True)
class HeldOutSplit:
    """One split: the held-out rows, the others in random order, and a seed for what is fitted."""

    held_out: NDArray[np.intp]
    others: NDArray[np.intp]
    seed: int


@dataclass(frozen=True)
class View:
    """Scores of the batch in several splits, and those of the rows held out in each.

    Parameters
    ----------
    scores : ndarray of shape (n_splits, n_unlabeled)
    held_out : tuple of ndarray
    """

    scores: Array
    held_out: tuple[Array, ...]

    @classmethod
    def of(cls, splits: Iterable[tuple[Array, Array]]) -> View:
        """Gather (scores of the batch, scores of the held-out rows) of every split."""
        scores, held_out = zip(*splits, strict=True)
        return cls(np.array(scores), held_out)

    @cached_property
    def log_p(self) -> Array:
        """Logarithm of the share of held-out rows that score higher, by split."""
        pairs = zip(self.scores, self.held_out, strict=True)
        return np.array([HeldOutScores.of(held_out).log_p_values(row) for row, held_out in pairs])

    @cached_property
    def log_mean_p(self) -> Array:
        """Logarithm of the mean share over the splits."""
        mean: Array = logsumexp(self.log_p, axis=0) - np.log(len(self.log_p))
        return mean

    @cached_property
    def agreement(self) -> float:
        """Mean rank correlation between two splits."""
        return agreement(self.scores)

    @property
    def separation(self) -> float:
        """How much higher the batch scores than held-out rows, in [0, 1]."""
        return max(0.0, 1.0 - 2.0 * float(np.exp(self.log_mean_p).mean()))


@dataclass(frozen=True)
class ScaledRows:
    """Known-normal rows and the batch, scaled in the same way."""

    normal: Array
    batch: Array


class Pieces:
    """Fits and distances of one fold and seed, computed on first use.

    Parameters
    ----------
    fold : Fold
    seed : int
    """

    def __init__(self, fold: Fold, seed: int) -> None:
        self.fold = fold
        self.seed = seed
        self._made: dict[Hashable, Any] = {}

    def rows(self, space: str) -> ScaledRows:
        """Scale the rows: "range", "maxabs", "standard" or "whitened"."""
        return self.once(("rows", space), lambda: self._scale(space))

    def shuffles(self, search: Search, n_shuffles: int) -> list[MemberFunctions]:
        """Fit QMS22 without held-out rows, with the seeds that `QMS22` uses."""
        seeds = np.random.RandomState(self.seed).randint(2**31 - 1, size=n_shuffles)
        return [
            self.once(("shuffle", search, seed), partial(self._fit, search, seed))
            for seed in seeds.tolist()
        ]

    def member_scores(self, search: Search, n_shuffles: int) -> Array:
        """Compute η of the batch: an array of shape (n_shuffles, n_unlabeled)."""
        batch = self.rows(search.space).batch
        fits = self.shuffles(search, n_shuffles)
        return np.array([members.outlier_scores(batch) for members in fits])

    def distances(self, space: str, n_references: int = MOST_REFERENCES) -> Array:
        """Compute the distance view of the batch, without held-out rows."""
        rows = self.rows(space)
        order = np.random.RandomState(self.seed).permutation(len(rows.normal))
        return mean_log_distances(rows.batch, rows.normal[order[:n_references]])

    def members_view(self, search: Search, hold_out: HoldOut) -> View:
        """Fit QMS22 with held-out rows."""
        return self.once(("members", search, hold_out), lambda: self._fit_splits(search, hold_out))

    def distance_view(
        self, space: str, hold_out: HoldOut, n_references: int = MOST_REFERENCES
    ) -> View:
        """Compute the distance view of the batch and of held-out rows."""
        rows = self.rows(space)

        def measure(split: HeldOutSplit) -> tuple[Array, Array]:
            references = rows.normal[split.others[:n_references]]
            held_out = rows.normal[split.held_out]
            return (
                mean_log_distances(rows.batch, references),
                mean_log_distances(held_out, references),
            )

        key = "distance", space, hold_out, n_references
        return self.once(key, lambda: View.of(map(measure, self.splits(hold_out))))

    def brm_view(self, hold_out: HoldOut) -> View:
        """Score the batch and held-out rows by BRM."""
        normal, batch = self.fold.normal, self.fold.unlabeled

        def measure(split: HeldOutSplit) -> tuple[Array, Array]:
            brm = BRM(random_state=split.seed).fit(normal[split.others])
            return -brm.score_samples(batch), -brm.score_samples(normal[split.held_out])

        return self.once(("brm", hold_out), lambda: View.of(map(measure, self.splits(hold_out))))

    def splits(self, hold_out: HoldOut) -> list[HeldOutSplit]:
        """Draw the splits, in the order in which `QMS22Ensemble` draws."""
        n_normal = len(self.fold.normal)
        rng = np.random.RandomState(self.seed)
        held_out = hold_out.draw(n_normal, rng)
        seeds = rng.randint(2**31 - 1, size=len(held_out)).tolist()
        return [
            HeldOutSplit(out, rng.permutation(np.delete(np.arange(n_normal), out)), seed)
            for out, seed in zip(held_out, seeds, strict=True)
        ]

    def once(self, key: Hashable, make: Callable[[], Piece]) -> Piece:
        """Return the piece of a key, and compute it first if it is new."""
        if key not in self._made:
            self._made[key] = make()
        piece: Piece = self._made[key]
        return piece

    def _scale(self, space: str) -> ScaledRows:
        normal, batch = self.fold.normal, self.fold.unlabeled
        if space == "whitened":
            return _whiten(self.rows("standard"))
        scaler = range_scaler(normal) if space == "range" else FeatureScaler.learn(normal, space)
        return ScaledRows(scaler.transform(normal), scaler.transform(batch))

    def _fit(self, search: Search, seed: int) -> MemberFunctions:
        return self._solve(search, [seed])[0]

    def _fit_splits(self, search: Search, hold_out: HoldOut) -> View:
        rows, splits = self.rows(search.space), self.splits(hold_out)
        fits = self._solve(search, [split.seed for split in splits], splits)
        return View.of(
            (
                np.log1p(members.outlier_scores(rows.batch)),
                np.log1p(members.outlier_scores(rows.normal[split.held_out])),
            )
            for members, split in zip(fits, splits, strict=True)
        )

    def _solve(
        self, search: Search, seeds: list[int], splits: list[HeldOutSplit] | None = None
    ) -> list[MemberFunctions]:
        rows = self.rows(search.space)
        solutions = solve_restarts(
            np.concatenate([rows.batch, rows.normal]),
            len(rows.batch),
            search.n_members,
            search.options,
            seeds,
            held_out=None if splits is None else [split.held_out for split in splits],
        )
        return [solution.members for solution in solutions]


def agreement(scores: Array) -> float:
    """Compute the mean rank correlation between two rows of `scores`; 0 if it is negative."""
    ranks = rankdata(scores, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    # Scores that are all equal agree with nothing.
    ranks /= np.where(lengths > 0, lengths, np.inf)
    correlations = (ranks @ ranks.T)[np.triu_indices(len(ranks), k=1)]
    return float(np.clip(correlations.mean(), 0.0, 1.0))


def _whiten(rows: ScaledRows) -> ScaledRows:
    """Transform standardized rows so that normal rows have the same variance in every direction."""
    center = rows.normal.mean(axis=0)
    covariance = ledoit_wolf((rows.normal - center) / DEVIATION, assume_centered=True)[0]
    variances, directions = np.linalg.eigh(covariance)
    turn = directions / np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    return ScaledRows((rows.normal - center) @ turn, (rows.batch - center) @ turn)
