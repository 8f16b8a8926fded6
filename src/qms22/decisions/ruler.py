"""P-values and flags: a row of the batch is compared with the scores of known-normal rows.

The rank of a row is the number of known-normal rows that score as high or higher. All decisions
depend on how many rows of the batch have each rank: parts of a batch are counted where they are,
and counts are added.

References
----------
S. Bates, E. Candès, L. Lei, Y. Romano, M. Sesia, "Testing for outliers with conformal p-values",
Annals of Statistics 51 (2023). https://doi.org/10.1214/22-AOS2244

A. Marandon, L. Lei, D. Mary, E. Roquain, "Adaptive novelty detection with false discovery rate
guarantee", Annals of Statistics 52 (2024). https://doi.org/10.1214/23-AOS2338
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import as_host
from qms22._runtime.validation import check_share

# P-values and levels are fractions that may be equal; rounding must not make them differ.
SLACK = 1 + 1e-12

# A batch has moved as a whole if so large a share of the known-normal rows is between their middle
# score and that of the batch, with so many standard deviations of certainty. With a fifth of
# anomalies the share is an eighth. Of fewer rows nobody can say.
_LEAST_OFF = 0.15
_CERTAIN = 4.0
_LEAST_ALIGNED = 30
_LEAST_SPREAD = 1e-9

# Scores that are looked up among others at once: as many as stay in a CPU's cache.
_SEARCHED_AT_ONCE = 2**18


@dataclass(frozen=True, eq=False)
class Ruler:
    """The scores of known-normal rows, to compare the rows of a batch with."""

    ascending: NDArray[np.float64]  # higher is more suspicious

    @classmethod
    def of(cls, scores: Any) -> Ruler:
        """Sort the scores of known-normal rows, of NumPy or CuPy."""
        return cls(np.sort(as_host(scores)))

    def aligned(self, scores: NDArray[np.float64]) -> Ruler:
        """Return a ruler for a batch that has moved as a whole.

        If even the middle of a batch scores like the highest known-normal rows, its rows are not
        anomalies, one by one: they are compared without what all of them do. Up to a fifth of the
        batch may be anomalies without any change. NaN stands for no score.
        """
        scores = scores[~np.isnan(scores)]
        if min(len(scores), self.n_known) < _LEAST_ALIGNED:
            return self
        low, middle = np.quantile(scores, [0.1, 0.5])
        place = np.searchsorted(self.ascending, middle) / self.n_known
        if not is_moved(place, len(scores), self.n_known):
            return self
        own_low, own_middle = np.quantile(self.ascending, [0.1, 0.5])
        # Below the middle there are no anomalies that widen the batch.
        stretch = max(1.0, float((middle - low) / max(own_middle - own_low, _LEAST_SPREAD)))
        return Ruler((self.ascending - own_middle) * stretch + middle)

    @property
    def n_known(self) -> int:
        """Number of known-normal rows."""
        return len(self.ascending)

    def ranks(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Count, for every score, the known-normal rows that score as high or higher."""
        n_lower = np.empty(len(scores), dtype=np.intp)
        for first in range(0, len(scores), _SEARCHED_AT_ONCE):
            part = slice(first, first + _SEARCHED_AT_ONCE)
            # In ascending order scores are found 2 to 4 times faster, which is worth a sort.
            order = np.argsort(scores[part])
            n_lower[part][order] = np.searchsorted(self.ascending, scores[part][order])
        return self.n_known - n_lower


def is_moved(place: float, n_rows: int, n_known: int) -> bool:
    """Return whether a batch has moved as a whole, from where its middle row is.

    Its `place` is the share of known-normal rows that score lower.
    """
    deviation = 0.5 * math.sqrt(1 / n_rows + 1 / n_known)
    return place - 0.5 >= max(_LEAST_OFF, _CERTAIN * deviation)


def storey_rank(n_known: int) -> int:
    """Return the rank from which on rows are taken for normal ones: the middle one.

    With fewer than three known-normal rows it is n + 1, and nothing is estimated.
    """
    return (n_known + 1) // 2 - 1 if n_known >= 3 else n_known + 1


def share_of_normal(counts: NDArray[np.int64]) -> float:
    """Estimate the share of normal rows in a batch by the number of rows with a high rank.

    This is Storey's estimate with one row added, which makes the bound on false discoveries exact
    where scores do not depend on which rows are known to be normal. It may exceed 1.
    """
    n_known, first_high = len(counts) - 1, storey_rank(len(counts) - 1)
    n_steps = n_known - first_high
    if n_steps < 1:
        return 1.0
    n_high = int(counts[first_high:].sum())
    return (1 + n_high) * (n_known + 1) / (int(counts.sum()) * n_steps)


def highest_flagged_rank(counts: NDArray[np.int64], fdr: float) -> int:
    """Return the highest rank of the rows that are flagged; -1 if none is.

    This is the procedure of Benjamini and Hochberg at the level divided by the estimated share of
    normal rows (Marandon et al. 2024), on the p-values (1 + rank) / (n + 1). Only ranks below those
    that the estimate counts are flagged. `counts` has the number of rows of the batch with each
    rank, `fdr` is the false discovery rate, in (0, 1).
    """
    check_share("fdr", fdr)
    n_known, n_rows = len(counts) - 1, int(counts.sum())
    if not n_rows:
        return -1
    level = fdr / share_of_normal(counts)
    # No p-value above the level can be flagged.
    end = min(storey_rank(n_known), math.ceil(level * SLACK * (n_known + 1)), n_known + 1)
    n_flagged = np.cumsum(counts[:end])
    p_values = np.arange(1, end + 1) / (n_known + 1)
    possible = np.flatnonzero((p_values <= level * n_flagged / n_rows * SLACK) & (n_flagged > 0))
    return int(possible[-1]) if possible.size else -1


def least_to_flag(n_rows: int, n_known: int, fdr: float) -> int:
    """Return the smallest number of rows above 0 that can be flagged.

    No p-value is below 1 / (n_known + 1), and k rows are flagged only if all their p-values are at
    most fdr · k / n_rows. A result above `n_rows` means that no row can be flagged. Where fewer
    rows are estimated to be normal, fewer may do.
    """
    return math.ceil(n_rows / (fdr * (n_known + 1) * SLACK))


def enough_known(n_rows: int, fdr: float) -> int:
    """Return how many known-normal rows it takes to flag a single row of the batch."""
    return math.ceil(n_rows / (fdr * SLACK)) - 1


def why_none(n_rows: int, n_known: int, fdr: float) -> str | None:
    """Return a sentence on how many known-normal rows would do, if they are too few to flag one."""
    least = least_to_flag(n_rows, n_known, fdr)
    if least <= 1:
        return None
    flags = f"{least:,} or more of {n_rows:,} rows, or none" if least <= n_rows else "no row"
    return (
        f"no row is flagged: with {n_known:,} known-normal rows, a false discovery rate of {fdr:g} "
        f"flags {flags}; to flag a single row takes {enough_known(n_rows, fdr):,} known-normal rows"
    )
