"""Detectors that score a row by its distances to the nearest normal rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.scaling import DEVIATION, UNSCALED_LIMIT, FeatureScaler, range_scaler
from qms22._runtime.threads import in_batches
from qms22._runtime.validation import check_choice, check_count
from qms22.detectors.base import NoveltyDetector
from qms22.detectors.neighbors import NeighborIndex


class NearestDetector(NoveltyDetector):
    """A detector that sees of a row only the distances to its nearest normal rows.

    Subclasses have the parameters `n_neighbors` and `n_jobs`, and implement `_score_distances`.
    """

    @abstractmethod
    def _score_distances(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score rows by their distances, nearest first; higher is more normal."""

    def _learn(self, rows: NDArray[np.float64]) -> None:
        self._index = NeighborIndex.build(rows)

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._scores(rows, n_skipped=0)

    def _left_out_scores(
        self, rows: NDArray[np.float64], positions: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        return self._scores(rows[positions], n_skipped=min(1, len(rows) - 1))

    def _scores(self, rows: NDArray[np.float64], n_skipped: int) -> NDArray[np.float64]:
        """Score rows without their nearest `n_skipped` normal rows."""
        n_neighbors = min(self.n_neighbors + n_skipped, len(self._index.rows))

        def score(batch: NDArray[np.float64]) -> NDArray[np.float64]:
            distances, _ = self._index.nearest(batch, n_neighbors)
            return self._score_distances(distances[:, n_skipped:])

        return in_batches(score, rows, self.n_jobs)


class KNNDetector(NearestDetector):
    """Distance to the nearest normal rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors k, at most the number of normal rows.
    method : {"mean", "kth"}, default="mean"
        The mean distance to the k nearest normal rows, or the distance to the k-th of them.
    scaling : {"minmax", "standard", None}, default="minmax"
        Scaling learned on the normal rows: to a range of length 1, to standard deviation 1, or
        none. A constant feature keeps its unit.
    contamination : "auto" or float, default="auto"
        The threshold of `predict`. "auto" flags one normal row in twenty, as estimated
        from up to 500 rows given to `fit`, each scored by the other rows. A share in (0, 0.5] flags
        that share of the rows given to `fit`; of new normal rows, which are not their own
        neighbors, it flags more.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.

    Attributes
    ----------
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
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
    >>> from qms22.detectors import KNNDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = KNNDetector().fit(rng.normal(size=(300, 4)))
    >>> detector.predict([[0, 0, 0, 0], [6, 6, 6, 6]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        method: str = "mean",
        scaling: str | None = "minmax",
        contamination: str | float = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.method = method
        self.scaling = scaling
        self.contamination = contamination
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_choice("method", self.method, ("mean", "kth"))
        check_choice("scaling", self.scaling, ("minmax", "standard", None))

    def _learn_scaler(self, normal: NDArray[np.float64]) -> FeatureScaler:
        return (
            range_scaler(normal) if self.scaling == "minmax" else unit_scaler(normal, self.scaling)
        )

    def _score_distances(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        return -(distances.mean(axis=1) if self.method == "mean" else distances[:, -1])


def unit_scaler(normal: NDArray[np.float64], scaling: str | None) -> FeatureScaler:
    """Return a scaler to standard deviation 1 ("standard"), or one that changes nothing (None)."""
    scaler = FeatureScaler.learn(normal, scaling)
    unit = DEVIATION if scaling == "standard" else 1.0
    return replace(scaler, factor=scaler.factor / unit, limit=UNSCALED_LIMIT)
