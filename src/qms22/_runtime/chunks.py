"""Parts of a large table: rows drawn at random, and chunks of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.random import sample_without_replacement

# Values per chunk of rows: about a megabyte, which stays in a CPU's cache, or a gigabyte, which
# keeps a GPU busy.
VALUES_IN_CACHE = 2**17
VALUES_ON_GPU = 2**27

# With fewer rows the calls of a chunk would take longer than its rows.
_LEAST_ROWS_PER_CHUNK = 1024


def row_chunks(shape: tuple[int, ...], n_values: int = VALUES_IN_CACHE) -> list[slice]:
    """Cut a table of shape (n, p) into chunks of about `n_values`, and at least 1,024 rows."""
    n_rows, n_features = shape
    size = max(_LEAST_ROWS_PER_CHUNK, n_values // n_features)
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def spread_rows(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return all rows of a table, or `most` evenly spaced ones."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


def draw_rows(
    n_rows: int, max_samples: int | None, rng: np.random.RandomState
) -> NDArray[np.int64]:
    """Draw positions of rows without replacement, in ascending order.

    With a limit of None, and if the table has no more rows, all are taken and `rng` is not used, so
    that later draws do not depend on a limit without effect.
    """
    if max_samples is None or max_samples >= n_rows:
        return np.arange(n_rows)
    drawn: NDArray[np.int64] = sample_without_replacement(n_rows, max_samples, random_state=rng)
    return np.sort(drawn)
