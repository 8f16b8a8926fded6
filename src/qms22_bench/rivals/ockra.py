"""OCKRA: one-class k-means with randomly projected features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist  # type: ignore[import-untyped, unused-ignore]
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from qms22_bench.rivals.base import NoveltyDetector, check_count, gaussian_similarity
from qms22_bench.rivals.threads import in_batches, in_threads

# From this many rows on, use mini-batch k-means.
_MANY_ROWS = 20_000

# δ is a mean over the pairs of at most this many rows.
_MAX_PAIRED = 256


@dataclass(kw_only=True, eq=False, repr=False)
class OCKRA(NoveltyDetector):
    """One-Class K-means with Randomly-projected features Algorithm.

    Every member sees the normal rows through a random subset of the features, drawn with
    replacement (repeats do not count), and stores the centers that k-means finds there. The
    similarity of a row x to the normal rows is

        exp(−½ (d(x) / δ)²)

    where d(x) is the Euclidean distance to the nearest center and δ the mean distance between two
    normal rows in the member's features, estimated from up to 256 rows. The score is the mean over
    the members. Features are scaled to the range of the normal rows first. (The public
    implementation has δ = 1 by default.)

    Parameters
    ----------
    n_members : int, default=100
        Random projections.
    n_clusters : int, default=10
        Centers of each member, at most the number of normal rows.
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
    >>> from qms22_bench.rivals import OCKRA
    >>> rng = np.random.default_rng(0)
    >>> detector = OCKRA(random_state=0).fit(rng.normal(size=(300, 4)))
    >>> usual, odd = detector.score_samples([[0, 0, 0, 0], [6, 6, 6, 6]])
    >>> bool(odd < usual)
    True
    """

    n_members: int = 100
    n_clusters: int = 10
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    def _check_parameters(self) -> None:
        check_count("n_members", self.n_members)
        check_count("n_clusters", self.n_clusters)

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
            self.centers_ = in_threads(
                lambda task: task.find_centers(rows, self.n_clusters), tasks, self.n_jobs
            )
        self.features_ = [task.features for task in tasks]
        self.deltas_ = np.array([_mean_distance(paired[:, seen]) for seen in self.features_])

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return in_batches(self._mean_similarity, rows, self.n_jobs)

    def _mean_similarity(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros(len(rows))
        for member, seen in enumerate(self.features_):
            distances = cdist(rows[:, seen], self.centers_[member])
            total += gaussian_similarity(distances.min(axis=1), self.deltas_[member])
        return total / len(self.features_)


@dataclass(frozen=True)
class _MemberDraw:
    """The features that a member sees, and its seed."""

    features: NDArray[np.intp]
    seed: int

    def find_centers(self, rows: NDArray[np.float64], n_clusters: int) -> NDArray[np.float64]:
        """Return the centers in the member's features."""
        algorithm = KMeans if len(rows) < _MANY_ROWS else MiniBatchKMeans
        k_means = algorithm(min(n_clusters, len(rows)), n_init=1, random_state=self.seed)
        centers: NDArray[np.float64] = k_means.fit(rows[:, self.features]).cluster_centers_
        return centers


def _mean_distance(rows: NDArray[np.float64]) -> float:
    """Compute the mean distance between two different rows; 0 if there is only one."""
    return float(pdist(rows).mean()) if len(rows) > 1 else 0.0
