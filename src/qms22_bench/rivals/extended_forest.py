"""Extended Isolation Forest: isolation by hyperplanes in random directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from qms22_bench.rivals.base import NoveltyDetector, check_count
from qms22_bench.rivals.threads import in_batches, in_threads


@dataclass(kw_only=True, eq=False, repr=False)
class ExtendedIsolationForest(NoveltyDetector):
    """Extended Isolation Forest: isolation by hyperplanes in random directions.

    Every tree grows on a random sample of the normal rows. A node is split by a hyperplane: its
    normal vector is drawn from a standard normal distribution, and a point on it is drawn
    uniformly from the bounding box of the node's rows. The score of a row x is

        −2^(−h(x) / c(ψ))

    where h(x) is its depth in a tree, averaged over the trees, ψ the size of the samples and c(ψ)
    the mean depth of an unsuccessful search in a binary search tree of ψ keys. Features are scaled
    to the range of the normal rows first, so that a direction does not depend on units.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    max_samples : int, default=256
        Rows that a tree grows on, at most the number of normal rows.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.
    random_state : int, RandomState or None, default=None
        Draws samples and hyperplanes; an int makes fits repeatable.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the normal rows had names.

    Notes
    -----
    This is the paper's full extension level: no component of a normal vector is zero. The paper
    does not scale features.

    References
    ----------
    S. Hariri, M. Carrasco Kind, R. J. Brunner, "Extended Isolation Forest", IEEE Transactions on
    Knowledge and Data Engineering 33(4), 2021. https://doi.org/10.1109/TKDE.2019.2947676

    Examples
    --------
    >>> import numpy as np
    >>> from qms22_bench.rivals import ExtendedIsolationForest
    >>> rng = np.random.default_rng(0)
    >>> detector = ExtendedIsolationForest(random_state=0).fit(rng.normal(size=(300, 4)))
    >>> usual, odd = detector.score_samples([[0, 0, 0, 0], [6, 6, 6, 6]])
    >>> bool(odd < usual)
    True
    """

    n_estimators: int = 100
    max_samples: int = 256
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    def _check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators)
        check_count("max_samples", self.max_samples)

    def _learn(self, rows: NDArray[np.float64]) -> None:
        self._n_samples = min(self.max_samples, len(rows))
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)

        def grow(seed: int) -> list[Level]:
            rng = np.random.default_rng(seed)
            return grow_tree(rows[rng.permutation(len(rows))[: self._n_samples]], rng)

        self._trees = in_threads(grow, seeds, self.n_jobs)

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return in_batches(self._isolation, rows, self.n_jobs)

    def _isolation(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros(len(rows))
        for tree in self._trees:
            total += path_lengths(tree, rows)
        # A sample of one row has depth 0 everywhere.
        usual = max(float(mean_path_length(np.array(self._n_samples))), 1.0)
        scores: NDArray[np.float64] = -np.exp2(-total / (len(self._trees) * usual))
        return scores


@dataclass(frozen=True)
class Level:
    """The nodes of a tree at one depth.

    Parameters
    ----------
    lengths : ndarray of shape (n_nodes,)
        Path lengths of the rows that end in a node.
    split_of : ndarray of shape (n_nodes,)
        The number of a node's hyperplane, or −1 for a leaf. The children of hyperplane s are the
        nodes 2 s and 2 s + 1 of the next level.
    normals : ndarray of shape (n_splits, n_features)
    offsets : ndarray of shape (n_splits,)
        A row x goes to the second child if its product with the normal vector exceeds this.
    """

    lengths: NDArray[np.float64]
    split_of: NDArray[np.intp]
    normals: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def child_of(self, rows: NDArray[np.float64], splits: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the node of the next level that each row goes to from its hyperplane."""
        # Not a matrix product: its rounding depends on the number of rows.
        products = np.einsum("ij,ij->i", rows, self.normals[splits])
        children: NDArray[np.intp] = 2 * splits + (products > self.offsets[splits])
        return children


def grow_tree(rows: NDArray[np.float64], rng: np.random.Generator) -> list[Level]:
    """Return the levels of a tree that isolates rows, with the depth limit of the paper."""
    limit = math.ceil(math.log2(len(rows)))
    levels: list[Level] = []
    nodes = np.zeros(len(rows), dtype=np.intp)
    sizes = np.array([len(rows)])
    for depth in range(limit + 1):
        is_split = (sizes > 1) & (depth < limit)
        split_of = np.where(is_split, np.cumsum(is_split) - 1, -1)
        splits = split_of[nodes]
        rows, splits = rows[splits >= 0], splits[splits >= 0]
        normals = rng.normal(size=(int(is_split.sum()), rows.shape[1]))
        points = _draw_points(rows, splits, rng)
        offsets = np.einsum("ij,ij->i", points, normals)
        levels.append(Level(depth + mean_path_length(sizes), split_of, normals, offsets))
        if not len(rows):
            break
        nodes = levels[-1].child_of(rows, splits)
        sizes = np.bincount(nodes, minlength=2 * len(normals))
    return levels


def path_lengths(tree: list[Level], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the path length of each row in a tree."""
    lengths = np.empty(len(rows))
    left = np.arange(len(rows))
    nodes = np.zeros(len(rows), dtype=np.intp)
    for level in tree:
        splits = level.split_of[nodes]
        is_leaf = splits < 0
        lengths[left[is_leaf]] = level.lengths[nodes[is_leaf]]
        left, splits = left[~is_leaf], splits[~is_leaf]
        nodes = level.child_of(rows[left], splits)
    return lengths


def mean_path_length(sizes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean depth of an unsuccessful search in binary search trees of these sizes."""
    many = np.maximum(sizes, 3)
    lengths = 2 * (np.log(many - 1) + np.euler_gamma) - 2 * (many - 1) / many
    found: NDArray[np.float64] = np.select([sizes <= 1, sizes == 2], [0.0, 1.0], lengths)
    return found


def _draw_points(
    rows: NDArray[np.float64], splits: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a point from the bounding box of the rows of each hyperplane."""
    ordered = rows[np.argsort(splits, kind="stable")]
    sizes = np.bincount(splits)
    if not len(sizes):
        return rows
    starts = np.cumsum(sizes) - sizes
    low = np.minimum.reduceat(ordered, starts)
    return rng.uniform(low, np.maximum.reduceat(ordered, starts))
