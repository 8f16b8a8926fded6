"""Detectors that score a row by its distances to the nearest normal rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22_bench.rivals.base import NoveltyDetector, check_count
from qms22_bench.rivals.neighbors import NeighborIndex
from qms22_bench.rivals.threads import in_batches


class NearestDetector(NoveltyDetector):
    """A detector that sees of a row only the distances to its nearest normal rows.

    Subclasses have the parameters `n_neighbors` and `n_jobs`, and implement `_score_distances`.
    """

    def _check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors)

    @abstractmethod
    def _score_distances(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score rows by their distances, nearest first; higher is more normal."""

    def _learn(self, rows: NDArray[np.float64]) -> None:
        self._index = NeighborIndex.build(rows)

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        n_neighbors = min(self.n_neighbors, len(self._index.rows))

        def score(batch: NDArray[np.float64]) -> NDArray[np.float64]:
            distances, _ = self._index.nearest(batch, n_neighbors)
            return self._score_distances(distances)

        return in_batches(score, rows, self.n_jobs)


@dataclass(kw_only=True, eq=False, repr=False)
class KNNDetector(NearestDetector):
    """Mean distance to the nearest normal rows.

    Features are scaled to the range of the normal rows first.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors k, at most the number of normal rows.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the normal rows had names.

    Notes
    -----
    ``score_samples`` is minus the distance. A normal row given to `fit` is its own nearest
    neighbor when it is scored again.

    References
    ----------
    S. Ramaswamy, R. Rastogi, K. Shim, "Efficient algorithms for mining outliers from large data
    sets", SIGMOD 2000. https://doi.org/10.1145/342009.335437

    Examples
    --------
    >>> import numpy as np
    >>> from qms22_bench.rivals import KNNDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = KNNDetector().fit(rng.normal(size=(300, 4)))
    >>> usual, odd = detector.score_samples([[0, 0, 0, 0], [6, 6, 6, 6]])
    >>> bool(odd < usual)
    True
    """

    n_neighbors: int = 5
    n_jobs: int | None = None

    def _score_distances(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        means: NDArray[np.float64] = distances.mean(axis=1)
        return -means
