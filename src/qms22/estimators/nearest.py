"""Distances of rows to known-normal rows, as a score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist  # type: ignore[import-untyped, unused-ignore]

from qms22._runtime.threads import in_batches

# Known-normal rows to compare with. More would resolve differences smaller than most normal
# variation, and the time grows in proportion.
MOST_REFERENCES = 512

# Beyond these neighbors the weights are below 10⁻⁷.
_MOST_NEIGHBORS = 24

# Added to distances, as a share of a typical one: the logarithm of 0 is infinite.
_FLOOR = 1e-3


def mean_log_distances(
    rows: NDArray[np.float64], references: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """Compute the expected logarithm of the distance to the nearest row of a random half.

    A coin toss decides whether a reference is in the half, so that the nearest of all is the
    nearest of the half with probability ½, the second with ¼, and so on: the mean over all halves
    is a weighted mean over a few neighbors. It replaces the random bags of rows of `BRM`. For rows
    on a grid, such as categories, the second and third neighbor show how dense a place is.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
    references : ndarray of shape (n_references, p)
        Known-normal rows with the same scaling.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (n,)
    """
    n_neighbors = min(_MOST_NEIGHBORS, len(references))
    weights = 0.5 ** np.arange(1, n_neighbors + 1)
    weights /= weights.sum()
    # The typical distance between two references, or 1 if they are all equal.
    floor = _FLOOR * (np.sqrt(2.0 * references.var(axis=0).sum()) or 1.0)

    def score(batch: NDArray[np.float64]) -> NDArray[np.float64]:
        distances = cdist(batch, references)
        nearest = np.sort(np.partition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors], axis=1)
        # A product with a vector would add in an order that depends on the size of the batch.
        scores: NDArray[np.float64] = (np.log(nearest + floor) * weights).sum(axis=1)
        return scores

    return in_batches(score, rows, n_jobs)
