"""OCKRA: one-class k-means with randomly projected features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist  # type: ignore[import-untyped, unused-ignore]
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from qms22._runtime.threads import in_batches, in_threads
from qms22._runtime.validation import check_count, is_number
from qms22.detectors.base import NoveltyDetector, gaussian_similarity

# From this many rows on, use mini-batch k-means.
_MANY_ROWS = 20_000

# δ is a mean over the pairs of at most this many rows.
_MAX_PAIRED = 256


class OCKRA(NoveltyDetector):
    """One-Class K-means with Randomly-projected features Algorithm.

    Every member sees the normal rows through a random subset of the features, drawn with
    replacement (repeats do not count), and stores the centers that k-means finds there. The
    similarity of a row x to the normal rows is

        exp(−½ (d(x) / δ)²)

    where d(x) is the Euclidean distance to the nearest center. The score is the mean over the
    members. Features are scaled to the range of the normal rows first.

    Parameters
    ----------
    n_members : int, default=100
        Random projections.
    n_clusters : int, default=10
        Centers of each member, at most the number of normal rows.
    delta : "mean" or float, default="mean"
        The distance δ at which similarity has fallen to 0.61. "mean" is the mean distance between
        two normal rows in the member's features, estimated from up to 256 rows; a number is in
        units of the features' ranges. The public implementation uses 1.0 by default.
    contamination : "auto" or float, default="auto"
        The threshold of `predict`. "auto" flags one normal row in twenty, as estimated
        from up to 500 rows given to `fit`, each scored without its pull on the centers. A share
        in (0, 0.5] flags that share of the rows given to `fit`; of new normal rows it flags more.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.
    random_state : int, RandomState or None, default=None
        Draws features and starts k-means; an int makes fits repeatable.

    Attributes
    ----------
    features_ : list of ndarray
        Positions of the features that each member sees, in ascending order.
    centers_ : list of ndarray of shape (n_clusters, n_features seen)
        Centers of each member, for scaled features.
    deltas_ : ndarray of shape (n_members,)
        δ of each member.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the normal rows had names.

    References
    ----------
    J. Rodríguez, A. Y. Barrera-Animas, L. A. Trejo, M. A. Medina-Pérez, R. Monroy, "Ensemble of
    One-Class Classifiers for Personal Risk Detection Based on Wearable Sensor Data", Sensors
    16(10), 2016. https://doi.org/10.3390/s16101619

    Examples
    --------
    >>> import numpy as np
    >>> from qms22.detectors import OCKRA
    >>> rng = np.random.default_rng(0)
    >>> detector = OCKRA(random_state=0).fit(rng.normal(size=(300, 4)))
    >>> detector.predict([[0, 0, 0, 0], [6, 6, 6, 6]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        n_members: int = 100,
        n_clusters: int = 10,
        delta: str | float = "mean",
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_members = n_members
        self.n_clusters = n_clusters
        self.delta = delta
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_members", self.n_members)
        check_count("n_clusters", self.n_clusters)
        if isinstance(self.delta, str) and self.delta == "mean":
            return
        if not (is_number(self.delta) and 0 < self.delta < np.inf):  # type: ignore[operator]
            raise ValueError(f"delta must be 'mean' or a positive number; got {self.delta!r}")

    def _learn(self, rows: NDArray[np.float64]) -> None:
        n_rows, n_features = rows.shape
        rng = check_random_state(self.random_state)
        paired = rows[rng.permutation(n_rows)[:_MAX_PAIRED]]
        tasks = [
            _MemberDraw(
                features=np.unique(rng.randint(n_features, size=n_features)),
                seed=int(rng.randint(2**31 - 1)),
            )
            for _ in range(self.n_members)
        ]
        with warnings.catch_warnings():
            # Fewer distinct rows than centers, as with binary features, are harmless. The filter
            # is set here because it applies to all threads.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = in_threads(
                lambda task: task.find_centers(rows, self.n_clusters), tasks, self.n_jobs
            )
        self.features_ = [task.features for task in tasks]
        self.centers_ = [centers for centers, _ in found]
        self._sizes = [sizes for _, sizes in found]
        if self.delta == "mean":
            self.deltas_ = np.array([_mean_distance(paired[:, seen]) for seen in self.features_])
        else:
            self.deltas_ = np.full(self.n_members, float(self.delta))

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return in_batches(self._mean_similarity, rows, self.n_jobs)

    def _left_out_scores(
        self, rows: NDArray[np.float64], positions: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        if len(rows) == 1:
            return self._score(rows)
        score = partial(self._mean_similarity, left_out=True)
        return in_batches(score, rows[positions], self.n_jobs)

    def _mean_similarity(
        self, rows: NDArray[np.float64], left_out: bool = False
    ) -> NDArray[np.float64]:
        """Score rows, or normal rows as if k-means had not seen them (`left_out`)."""
        total = np.zeros(len(rows))
        for member, seen in enumerate(self.features_):
            distances = cdist(rows[:, seen], self.centers_[member])
            if left_out:
                _undo_pull(distances, self._sizes[member])
            total += gaussian_similarity(distances.min(axis=1), self.deltas_[member])
        return total / len(self.features_)


@dataclass(frozen=True)
class _MemberDraw:
    """The features that a member sees, and its seed."""

    features: NDArray[np.intp]
    seed: int

    def find_centers(
        self, rows: NDArray[np.float64], n_clusters: int
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the centers in the member's features, and the sizes of the clusters."""
        algorithm = KMeans if len(rows) < _MANY_ROWS else MiniBatchKMeans
        k_means = algorithm(min(n_clusters, len(rows)), n_init=1, random_state=self.seed)
        k_means.fit(rows[:, self.features])
        centers = k_means.cluster_centers_
        return centers, np.bincount(k_means.labels_, minlength=len(centers))


def _undo_pull(distances: NDArray[np.float64], sizes: NDArray[np.intp]) -> None:
    """Correct the distance to every row's nearest center, as if the center were without the row.

    A center is the mean of its c rows. Without one of them it is c / (c − 1) times as far from that
    row; a center of a single row disappears.
    """
    row = np.arange(len(distances))
    own = distances.argmin(axis=1)
    size = sizes[own]
    farther = distances[row, own] * size / np.maximum(size - 1, 1)
    distances[row, own] = np.where(size > 1, farther, np.inf)


def _mean_distance(rows: NDArray[np.float64]) -> float:
    """Compute the mean distance between two different rows; 0 if there is only one."""
    return float(pdist(rows).mean()) if len(rows) > 1 else 0.0
