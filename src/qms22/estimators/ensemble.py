"""QMS22Ensemble: the recommended detector."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.stats import rankdata  # type: ignore[import-untyped, unused-ignore]

from qms22._cpm.backends import Backend, LoadedMembers, choose_backend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.options import SolverOptions
from qms22._cpm.restarts import solve_restarts
from qms22._cpm.scaling import range_scaler
from qms22._runtime.arrays import as_host
from qms22._runtime.devices import to_device
from qms22._runtime.validation import check_count
from qms22.estimators.batch_detector import BatchDetector, fit_scaler_and_stack
from qms22.estimators.nearest import MOST_REFERENCES, mean_log_distances

# Held-out rows that others are compared with, in each split.
MOST_COMPARED = 4096


class QMS22Ensemble(BatchDetector):
    """The recommended detector: QMS22 and nearest distances, made comparable by held-out rows.

    The known-normal rows T are cut into `n_splits` parts. Each part in turn is held out, and two
    detectors with different strengths learn from the rest:

    - QMS22 (see there), with standardised features and fewer sweeps. The held-out rows are mixed
      into the batch. It finds what is in the batch and not among normal rows, best if outliers
      are many or similar.
    - The distance to the nearest known-normal rows (a mean over a few of them). It also finds
      single outliers.

    The share p of held-out rows that score higher puts the scores of both on one scale. A row's
    score is

        −w log p(QMS22) − (1 − w) log p(distance)

    with each p averaged over the splits. The weight w measures how far the splits agree: it is the
    square of the mean rank correlation between the scores of QMS22 for the batch in two splits.
    If there is nothing to learn from the batch, each split fits its own noise, w is small and the
    distance decides.

    Parameters
    ----------
    n_splits : int, default=8
        Parts of T, each held out once; at most as many as there are rows.
    n_members : int, default=7
        As of `QMS22`.
    n_components : int, default=10
        As of `QMS22`.
    max_iter : int, default=20
        Sweeps, at most. More of them fit the noise of the batch.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the fit and of distances.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        As of `QMS22`. Distances are computed on the host.
    contamination : "auto", float or int, default="auto"
        As of `QMS22`.
    max_samples : int or None, default=None
        As of `QMS22`.
    n_jobs : int or None, default=None
        Splits that run side by side or, with many rows, threads of one; -1 means all cores. It
        does not change the result.
    random_state : int, RandomState or None, default=None
        Cuts and shuffles T; an int makes fits repeatable.
    verbose : int, default=0
        Above 0 a progress bar is shown on standard error.
    log : path or None, default=None
        As of `QMS22`.
    checkpoint : path or None, default=None
        As of `QMS22`.

    Attributes
    ----------
    unlabeled_scores_ : ndarray of shape (n_unlabeled,)
        Scores of the unlabeled rows, in their order; higher is more suspicious.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
    weight_ : float
        w, in [0, 1].
    splits_ : tuple of Split
        The fitted model of each split.
    n_iter_ : int
        Sweeps made: the most of any split.
    typical_ : ndarray of shape (n_features,)
        Median of every feature in T; what `explain` compares with.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if T has names.

    Examples
    --------
    >>> import numpy as np
    >>> from qms22 import QMS22Ensemble
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
    >>> S[:5] += 6
    >>> detector = QMS22Ensemble(random_state=0).fit(T, unlabeled=S)
    >>> sorted(detector.top_k(5).tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        *,
        n_splits: int = 8,
        n_members: int = 7,
        n_components: int = 10,
        max_iter: int = 20,
        dtype: str = "float64",
        device: str = "cpu",
        contamination: str | float | int = "auto",
        max_samples: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        log: str | PathLike[str] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.n_members = n_members
        self.n_components = n_components
        self.max_iter = max_iter
        self.dtype = dtype
        self.device = device
        self.contamination = contamination
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.log = log
        self.checkpoint = checkpoint

    def _check_parameters(self) -> SolverOptions:
        options = super()._check_parameters()
        check_count("n_splits", self.n_splits, least=2)
        return options

    def _check_enough(self, n_normal: int) -> None:
        n_known = n_normal - math.ceil(n_normal / min(self.n_splits, n_normal))
        if n_known < self.n_members - 1:
            raise ValueError(
                f"X has n_samples={n_normal} known-normal rows, of which {n_known} stay when a "
                f"part is held out, fewer than n_members − 1 = {self.n_members - 1}; give more "
                "rows or a smaller n_members"
            )

    def _learn(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        rng: np.random.RandomState,
        options: SolverOptions,
    ) -> None:
        n_jobs = effective_n_jobs(self.n_jobs)
        n_splits = min(self.n_splits, len(normal))
        held_out = np.array_split(rng.permutation(len(normal)), n_splits)
        self._scaler, rows = fit_scaler_and_stack(normal, batch, "standard", options.device)
        solutions = solve_restarts(
            rows,
            len(batch),
            self.n_members,
            options,
            rng.randint(2**31 - 1, size=n_splits).tolist(),
            held_out=held_out,
            n_jobs=n_jobs,
            reporting=self._reporting(),
        )
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        # Distances are computed on the host, also if the member functions are on a GPU.
        self._distance_scaler = range_scaler(as_host(normal))
        near = self._distance_scaler.transform(as_host(normal)).astype(options.dtype)
        backend = choose_backend(options.device)
        loaded = [backend.load(solution.members) for solution in solutions]
        of_batch, of_normal = rows[: len(batch)], rows[len(batch) :]
        self.splits_ = tuple(
            Split(
                solution.members,
                HeldOutScores.of(_log_scores(members, of_normal[out[:MOST_COMPARED]])),
                *self._learn_distances(near, out, rng),
            )
            for solution, members, out in zip(solutions, loaded, held_out, strict=True)
        )
        ranks = [rankdata(_log_scores(members, of_batch)) for members in loaded]
        # Squared, as a correlation is: the share of the variance that two splits have in common.
        self.weight_ = _agreement(np.array(ranks)) ** 2

    def _learn_distances(
        self, near: NDArray[Any], held_out: NDArray[np.intp], rng: np.random.RandomState
    ) -> tuple[NDArray[Any], HeldOutScores]:
        """Draw references from the other rows of T; compute distances of held-out rows to them."""
        others = np.delete(np.arange(len(near)), held_out)
        references = near[rng.permutation(others)[:MOST_REFERENCES]]
        distances = mean_log_distances(
            near[held_out[:MOST_COMPARED]], references, n_threads=effective_n_jobs(self.n_jobs)
        )
        return references, HeldOutScores.of(distances)

    def _scorer(self, backend: Backend) -> Callable[[Any], Any]:
        loaded = [(split, backend.load(split.members)) for split in self.splits_]
        # Chunks of the host's rows are scored in threads already.
        n_threads = 1 if backend.uses_threads else effective_n_jobs(self.n_jobs)

        def score(rows: Any) -> NDArray[np.float64]:
            scaled = self._scaler.transform(to_device(rows, backend.device))
            by_members = [
                split.of_members.log_p_values(_log_scores(members, scaled))
                for split, members in loaded
            ]
            near = self._distance_scaler.transform(as_host(rows))
            by_distance = [
                split.of_distances.log_p_values(
                    mean_log_distances(near, split.references, n_threads=n_threads)
                )
                for split in self.splits_
            ]
            weight = self.weight_
            return -weight * _log_mean(by_members) - (1.0 - weight) * _log_mean(by_distance)

        return score


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of held-out normal rows, for comparison.

    Parameters
    ----------
    ascending : ndarray of shape (n,)
    deviation : float
        Their standard deviation, or 1 if that is 0.
    """

    ascending: NDArray[np.float64]
    deviation: float

    @classmethod
    def of(cls, scores: NDArray[np.float64]) -> HeldOutScores:
        """Sort scores; higher is more suspicious."""
        return cls(np.sort(scores), float(scores.std()) or 1.0)

    def log_p_values(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the logarithm of the share of held-out rows that score higher.

        Ties count half, and a share is at least 1 / (2n + 2). Above the highest held-out score the
        value decreases exponentially, so that the most suspicious rows keep their order.
        """
        n = len(self.ascending)
        n_lower = np.searchsorted(self.ascending, scores, side="left")
        n_not_higher = np.searchsorted(self.ascending, scores, side="right")
        shares = (1 + 2 * n - n_lower - n_not_higher) / (2 * n + 2)
        beyond = np.maximum(scores - self.ascending[-1], 0.0) / self.deviation
        logarithms: NDArray[np.float64] = np.log(shares) - beyond
        return logarithms


@dataclass(frozen=True)
class Split:
    """The model learned with one part of T held out.

    Parameters
    ----------
    members : MemberFunctions
        Of QMS22.
    of_members : HeldOutScores
        log(1 + η) of the held-out rows.
    references : ndarray of shape (n_references, p)
        Scaled rows of T to compute distances to, in the precision of the detector.
    of_distances : HeldOutScores
        `mean_log_distances` of the held-out rows.
    """

    members: MemberFunctions
    of_members: HeldOutScores
    references: NDArray[Any]
    of_distances: HeldOutScores


def _log_scores(members: LoadedMembers, scaled: Any) -> NDArray[np.float64]:
    """Compute log(1 + η) of scaled rows, on the host."""
    scores: NDArray[np.float64] = np.log1p(as_host(members.outlier_scores(scaled)))
    return scores


def _log_mean(logarithms: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    # Reduce one after the other: a sum along the axis would add in an order that depends on n.
    mean: NDArray[np.float64] = np.logaddexp.reduce(logarithms, axis=0) - np.log(len(logarithms))
    return mean


def _agreement(ranks: NDArray[np.float64]) -> float:
    """Compute the mean correlation between two rows of `ranks`, at least 0."""
    centered = ranks - ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    # Constant scores correlate with nothing.
    directions = centered / np.where(lengths > 0, lengths, np.inf)
    n = len(ranks)
    mean = (np.sum(directions.sum(axis=0) ** 2) - np.sum(directions**2)) / (n * (n - 1))
    return float(np.clip(mean, 0.0, 1.0))
