"""BRM: the Bagging-Random Miner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist  # type: ignore[import-untyped, unused-ignore]
from sklearn.utils import check_random_state, gen_batches

from qms22_bench.rivals.base import NoveltyDetector, check_count, gaussian_similarity
from qms22_bench.rivals.neighbors import NeighborIndex, nearest_distances
from qms22_bench.rivals.threads import in_batches, in_threads

# A full bag holds 63 % of the rows. The nearest row of a bag is among the 16 nearest of all rows,
# except in one of 10⁷ cases.
_N_NEIGHBORS = 16

# Bags smaller than this share of the rows are searched one by one.
_SHARING_LIMIT = 0.25

_DISTANCES_PER_BATCH = 2**19


@dataclass(kw_only=True, eq=False, repr=False)
class BRM(NoveltyDetector):
    """Bagging-Random Miner: distance to the nearest row, averaged over bags of normal rows.

    Every member has a bag of rows drawn with replacement, and the mean distance δ between two rows
    of the bag. The similarity of a row x to the bag is

        exp(−½ (d(x) / δ)²)

    where d(x) is the Euclidean distance to the nearest row of the bag. The score is the mean over
    the members. Features are scaled to the range of the normal rows first.

    The members share their distances: one search finds a few nearest rows of all, and the nearest
    row of a bag is the first of them that is in the bag. Nothing is approximated.

    Parameters
    ----------
    n_members : int, default=100
        Bags.
    max_samples : int or None, default=None
        Rows drawn for a bag, at most as many as there are normal rows. None draws as many as there
        are, as the paper does. The time of a fit is then quadratic in their number; a few hundred
        rows per bag avoid that.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.
    random_state : int, RandomState or None, default=None
        Draws the bags; an int makes fits repeatable.

    Attributes
    ----------
    bags_ : ndarray of shape (n_members, n_drawn)
        Positions of the rows drawn for each bag.
    deltas_ : ndarray of shape (n_members,)
        δ of each bag, for scaled features; a mean over all pairs, including a row with itself.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the normal rows had names.

    Notes
    -----
    Scores are in [0, 1]. A row more than 38 δ away from every bag scores 0. If all normal rows are
    equal, every other row scores 0. The authors' package `brminer` returns 2 · score − 1 and draws
    other bags.

    References
    ----------
    J. B. Camiña, M. A. Medina-Pérez, R. Monroy, O. Loyola-González, L. A. Pereyra Villanueva,
    L. C. González Gurrola, "Bagging-RandomMiner: a one-class classifier for file access-based
    masquerade detection", Machine Vision and Applications 30, 2019.
    https://doi.org/10.1007/s00138-018-0957-4

    Examples
    --------
    >>> import numpy as np
    >>> from qms22_bench.rivals import BRM
    >>> rng = np.random.default_rng(0)
    >>> detector = BRM(random_state=0).fit(rng.normal(size=(300, 4)))
    >>> usual, odd = detector.score_samples([[0, 0, 0, 0], [6, 6, 6, 6]])
    >>> bool(odd < usual)
    True
    """

    n_members: int = 100
    max_samples: int | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    def _check_parameters(self) -> None:
        check_count("n_members", self.n_members)
        if self.max_samples is not None:
            check_count("max_samples", self.max_samples)

    def _learn(self, rows: NDArray[np.float64]) -> None:
        n_drawn = min(self.max_samples or len(rows), len(rows))
        rng = check_random_state(self.random_state)
        self.bags_ = rng.randint(len(rows), size=(self.n_members, n_drawn))
        self._rows = rows
        if n_drawn >= _SHARING_LIMIT * len(rows):
            self._search: _SharedSearch | None = _SharedSearch.build(rows, self.bags_)
            self.deltas_ = _shared_mean_distances(rows, self.bags_, self.n_jobs)
        else:
            self._search = None
            means = in_threads(lambda bag: _mean_distance(rows[bag]), self.bags_, self.n_jobs)
            self.deltas_ = np.array(means)

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        def score(batch: NDArray[np.float64]) -> NDArray[np.float64]:
            means: NDArray[np.float64] = self._similarities(batch).mean(axis=1)
            return means

        return in_batches(score, rows, self.n_jobs)

    def _similarities(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the similarity of every row to every bag."""
        if self._search is not None:
            nearest = self._search.nearest_in_bags(rows)
        else:
            nearest = np.full((len(rows), len(self.bags_)), np.inf)
        # Search single bags for what the shared search has not found.
        missing = np.isinf(nearest)
        for member in np.flatnonzero(missing.any(axis=0)):
            bag = self._rows[self.bags_[member]]
            left = missing[:, member]
            nearest[left, member] = nearest_distances(rows[left], bag)
        return gaussian_similarity(nearest, self.deltas_)


@dataclass(frozen=True)
class _SharedSearch:
    """One search for nearest rows that serves all bags."""

    index: NeighborIndex
    membership: NDArray[np.bool_]  # of shape (n_rows, n_members)

    @classmethod
    def build(cls, rows: NDArray[np.float64], bags: NDArray[np.intp]) -> _SharedSearch:
        membership = np.zeros((len(rows), len(bags)), dtype=np.bool_)
        membership[bags.T, np.arange(len(bags))] = True
        return cls(NeighborIndex.build(rows), membership)

    def nearest_in_bags(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the distance of every row to the nearest row of every bag.

        It is infinite if none of the few nearest rows of all is in the bag.
        """
        n_neighbors = min(_N_NEIGHBORS, len(self.membership))
        distances, positions = self.index.nearest(rows, n_neighbors)
        in_bag = self.membership[positions]
        first = np.take_along_axis(distances, in_bag.argmax(axis=1), axis=1)
        return np.where(in_bag.any(axis=1), first, np.inf)


def _shared_mean_distances(
    rows: NDArray[np.float64], bags: NDArray[np.intp], n_jobs: int | None
) -> NDArray[np.float64]:
    """Compute the mean distance between two rows of each bag, every distance only once.

    With w the number of times each row was drawn, the mean is the quadratic form wᵀDw over the
    squared number of draws. D is symmetric, so half of it is computed, in batches of rows.
    """
    draws = np.column_stack([np.bincount(bag, minlength=len(rows)) for bag in bags]).astype(float)

    def batch_sums(batch: slice) -> NDArray[np.float64]:
        distances = cdist(rows[batch], rows[batch.start :])
        n_inside = batch.stop - batch.start
        inside = distances[:, :n_inside] @ draws[batch]
        beyond = distances[:, n_inside:] @ draws[batch.stop :]
        sums: NDArray[np.float64] = (draws[batch] * (inside + 2.0 * beyond)).sum(axis=0)
        return sums

    batch_size = max(1, _DISTANCES_PER_BATCH // len(rows))
    sums = in_threads(batch_sums, gen_batches(len(rows), batch_size), n_jobs)
    means: NDArray[np.float64] = np.sum(sums, axis=0) / bags.shape[1] ** 2
    return means


def _mean_distance(bag: NDArray[np.float64]) -> float:
    """Compute the mean distance between two rows of one bag."""
    return float(cdist(bag, bag).mean())
