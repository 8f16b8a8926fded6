"""Extremely randomised trees that tell the batch from known-normal rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22 import _core
from qms22._runtime.arrays import is_on_gpu
from qms22.estimators.cuda import view_kernels as views
from qms22.estimators.held_out import hash_rows

# As many as a byte can number.
MOST_BINS = 256

# Bins with equally many rows; the others are equally wide. Mean AUC on 41 of ADBench's sets with
# 256, 128, 64, 32 and 0 of them, eight seeds, noise about 0.001: 0.897, 0.898, 0.899, 0.899 and
# 0.898. With 256, few and extreme outliers share a bin with normal rows; with none, one extreme
# value puts most rows of a column into the same bin.
_BINS_BY_RANK = 64


@dataclass(frozen=True)
class Forest:
    """A fitted forest as plain arrays.

    A row in node i of a tree goes to node ``child[i]`` of the tree if its bin of column
    ``feature[i]`` is at most ``threshold[i]``, else to the node after that. A leaf is its own
    child, with a threshold that no bin exceeds. `first_node` has the place of every tree's first
    node in the arrays of nodes, then the number of all nodes.
    """

    # The bin of a value is the number of its column's edges below it; infinite after the last.
    edges: NDArray[np.float64]
    first_node: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.uint8]
    child: NDArray[np.int32]
    # The share of the batch in a leaf if batch and known-normal rows have the same weight.
    value: NDArray[np.float32]
    # For every row of the fit, the mean value of its leaves in trees that did not learn from it; ½
    # if there is none. The higher, the more the row looks like one of the batch alone.
    oob_scores: NDArray[np.float64]

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.first_node) - 1

    def first(self, n_trees: int) -> Forest:
        """Return the forest of the first trees."""
        return replace(self, first_node=self.first_node[: n_trees + 1])

    def score_bins(self, bins: Any, n_threads: int = 1) -> NDArray[np.float64]:
        """Compute the mean value of new rows over all trees, from `find_bins` of NumPy or CuPy."""
        nodes = (self.first_node, self.feature, self.threshold, self.child, self.value)
        if is_on_gpu(bins):
            scores: NDArray[np.float64] = views.forest_scores(bins, *nodes)
            return scores
        return _core.forest_scores(bins, *nodes, n_threads=n_threads)


@dataclass(frozen=True)
class BinnedRows:
    """Rows as numbers of bins, which several forests can learn from."""

    edges: NDArray[np.float64]  # as of `Forest`
    bins: NDArray[np.uint8]  # of shape (p, n)
    keys: NDArray[np.uint64]  # hashes of the rows

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> BinnedRows:
        """Find the bins of rows (n, p)."""
        edges = np.full((rows.shape[1], MOST_BINS - 1), np.inf)
        for column, its_edges in zip(rows.T, edges, strict=True):
            found = _bin_edges(column)
            its_edges[: len(found)] = found
        return cls(edges, find_bins(rows, edges), hash_rows(rows))

    def take(self, places: NDArray[np.intp]) -> BinnedRows:
        """Return some of the rows."""
        bins = np.ascontiguousarray(self.bins[:, places])
        return BinnedRows(self.edges, bins, self.keys[places])


def fit_forest(
    rows: BinnedRows,
    labels: NDArray[np.float64],
    *,
    n_trees: int = 200,
    min_leaf: int = 5,
    seed: int = 0,
    n_threads: int = 1,
) -> Forest:
    """Grow trees that tell rows with label 1, the batch, from rows with label 0.

    Each tree learns from rows drawn with replacement. A node tries √p random columns, each with
    one threshold drawn evenly from those between its bins, and takes the split with the lowest
    Gini impurity. Both labels have the same weight in all.

    Random draws depend on the places of rows, never on their values, and all sums are exact: rows
    with the same label are exchangeable. A row with a label between 0 and 1 counts as a row of the
    batch with this weight and as a known-normal one with the rest.

    A leaf has at least `min_leaf` different rows. The seed, below 2⁶⁴, fixes the forest; threads do
    not change it.
    """
    grown = _core.grow_forest(
        rows.bins,
        np.rint(labels * _core.LABEL_ONE).astype(np.uint16),
        n_trees=n_trees,
        max_features=max(1, math.isqrt(len(rows.bins))),
        min_leaf=min_leaf,
        seed=seed,
        n_threads=n_threads,
    )
    return Forest(rows.edges, *grown)


def _bin_edges(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges between the values of a column: all of them, or the most useful ones.

    Bins with equally many rows alone would not tell a few extreme values from the next ones.
    """
    values, counts = np.unique(column, return_counts=True)
    last = np.arange(len(values) - 1)  # values that are the last of their bin
    if len(values) > MOST_BINS:
        rank = np.cumsum(counts) - 1
        by_rank = np.flatnonzero(np.diff(rank * _BINS_BY_RANK // len(column)))
        n_widths = MOST_BINS - _BINS_BY_RANK
        # Halves, because the range may exceed the largest number.
        cuts = 2 * np.linspace(values[0] / 2, values[-1] / 2, n_widths + 1)[1:-1]
        by_width = np.searchsorted(values, cuts, side="right") - 1
        last = np.union1d(by_rank, np.clip(by_width, 0, len(values) - 2))
    below, above = values[last], values[last + 1]
    # Rounding must not move an edge up to the value above it.
    return np.clip(below / 2 + above / 2, below, np.nextafter(above, below))


def find_bins(rows: Any, edges: NDArray[np.float64]) -> Any:
    """Return the bins of rows (n, p), one column after the other: an array of shape (p, n)."""
    if is_on_gpu(rows):
        return views.find_bins(rows, edges)
    bins = np.empty(rows.T.shape, dtype=np.uint8)
    for number in range(len(bins)):
        bins[number] = np.searchsorted(edges[number], rows[:, number])
    return bins
