"""Nearest neighbors with exact distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

# Up to this many rows a scan with matrix products is faster than a tree.
_SCAN_LIMIT = 10_000


@dataclass(frozen=True)
class NeighborIndex:
    """Rows to search for nearest neighbors."""

    rows: NDArray[np.float64]
    search: NearestNeighbors

    @classmethod
    def build(cls, rows: NDArray[np.float64]) -> NeighborIndex:
        """Build the index of `rows`."""
        algorithm = "brute" if len(rows) <= _SCAN_LIMIT else "auto"
        return cls(rows, NearestNeighbors(algorithm=algorithm).fit(rows))

    def nearest(
        self, query: NDArray[np.float64], n_neighbors: int
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Find the nearest rows of every query row.

        Parameters
        ----------
        query : ndarray of shape (n, p)
        n_neighbors : int
            At most the number of indexed rows.

        Returns
        -------
        distances, positions : ndarray of shape (n, n_neighbors)
            Nearest first.
        """
        positions = self.search.kneighbors(query, n_neighbors, return_distance=False)
        distances = np.empty(positions.shape)
        for rank in range(n_neighbors):
            distances[:, rank] = row_distances(query, self.rows[positions[:, rank]])
        order = np.argsort(distances, axis=1, kind="stable")
        return (
            np.take_along_axis(distances, order, axis=1),
            np.take_along_axis(positions, order, axis=1),
        )


def nearest_distances(query: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the distance of every query row to the nearest of `rows`."""
    return row_distances(query, rows[pairwise_distances_argmin(query, rows)])


def row_distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the distance of every row of `a` to the same row of `b`.

    The search expands (a − b)² to a² − 2ab + b². That is fast and finds the nearest rows, but
    rounding makes the distance of equal rows 1e−8 instead of 0.
    """
    gap = a - b
    distances: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return distances
