"""From scores to decisions with a guarantee: conformal p-values, false discoveries, outlier share.

Some known-normal rows, the calibration rows, are mixed into the unlabeled ones before anything is
learned. What learns and scores cannot distinguish them, so the score of a normal row takes every
rank among the calibration scores with the same probability, for any data and any scores. All
guarantees here rest on that alone.

References
----------
S. Bates, E. Candès, L. Lei, Y. Romano, M. Sesia, "Testing for outliers with conformal p-values",
Annals of Statistics 51 (2023). https://doi.org/10.1214/22-AOS2244

A. Marandon, L. Lei, D. Mary, E. Roquain, "Adaptive novelty detection with false discovery rate
guarantee", Annals of Statistics 52 (2024). https://doi.org/10.1214/23-AOS2338

M. Bashari, A. Epstein, Y. Romano, M. Sesia, "Derandomized novelty detection with FDR control via
conformal e-values", NeurIPS 2023.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import array_module, is_on_gpu
from qms22.estimators.outlier_bound import (
    counts_above,
    counts_by_split,
    cut_ranks,
    first_number,
    most_normal,
)

# P-values and levels are fractions that may be equal; rounding must not make them differ.
SLACK = 1 + 1e-12

# Scores that are looked up among millions of others at once: as many as stay in a CPU's cache.
_SEARCHED_AT_ONCE = 2**18


class ContaminationEstimate(NamedTuple):
    """The share of outliers in a batch.

    Parameters
    ----------
    share : float
        Storey's estimate.
    low : float
        The share is at least this, for any data, with the confidence asked for.
    high : float
        The share is at most this, with the same confidence, if all outliers have p-values below
        one half. No method can count outliers that look like normal rows.
    """

    share: float
    low: float
    high: float


class RowsBeyond(NamedTuple):
    """Rows of the batch that are more suspicious than nearly all known-normal rows.

    Parameters
    ----------
    rows : ndarray of int
        Positions in the batch.
    expected_false : float
        So many normal rows are expected among them at most, on average over batches.
    """

    rows: NDArray[np.intp]
    expected_false: float


def conformal_p_values(
    scores: NDArray[np.float64], calibration: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute (1 + the number of calibration scores that are as high or higher) / (n + 1).

    For a normal row it is at most u with probability at most u. Ties count against the row.

    Parameters
    ----------
    scores : ndarray of shape (n_unlabeled,)
        Higher is more suspicious. Of NumPy or CuPy, as is the result.
    calibration : ndarray of shape (n_calibration,)

    Returns
    -------
    ndarray of shape (n_unlabeled,)
    """
    n_lower = _count_lower(scores, array_module(scores).sort(calibration))
    p_values: NDArray[np.float64] = (1 + len(calibration) - n_lower) / (len(calibration) + 1)
    return p_values


def _count_lower(scores: NDArray[np.float64], ascending: NDArray[np.float64]) -> NDArray[np.intp]:
    """Count, for every score, the lower ones among sorted scores."""
    if is_on_gpu(scores):
        counts: NDArray[np.intp] = array_module(scores).searchsorted(ascending, scores)
        return counts
    counts = np.empty(len(scores), dtype=np.intp)
    for first in range(0, len(scores), _SEARCHED_AT_ONCE):
        part = slice(first, first + _SEARCHED_AT_ONCE)
        # In ascending order scores are found 2 to 4 times faster, which is worth a sort.
        order = np.argsort(scores[part])
        counts[part][order] = np.searchsorted(ascending, scores[part][order])
    return counts


def random_p_values(
    scores: NDArray[np.float64], n_unlabeled: int, order: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Compute conformal p-values with ties broken at random.

    Parameters
    ----------
    scores : ndarray of shape (n_unlabeled + n_calibration,)
        Those of the unlabeled rows, then those of the calibration rows.
    n_unlabeled : int
    order : ndarray of shape (n_unlabeled + n_calibration,)
        A random order of all rows.

    Returns
    -------
    ndarray of shape (n_unlabeled,)
    """
    # A stable sort of a random order breaks ties at random.
    ascending = order[np.argsort(scores[order], kind="stable")]
    n_calibration = len(scores) - n_unlabeled
    p_values = np.empty(len(scores))
    n_lower = np.cumsum(ascending >= n_unlabeled)
    p_values[ascending] = (1 + n_calibration - n_lower) / (n_calibration + 1)
    return p_values[:n_unlabeled]


def benjamini_hochberg(p_values: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Flag rows so that the false discovery rate is at most `level`.

    It is at most `level` times the share of normal rows.

    Parameters
    ----------
    p_values : ndarray of shape (n,)
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    # No higher p-value can be flagged: the others need not be sorted.
    ascending = np.sort(p_values[p_values <= level * SLACK])
    lines = level * np.arange(1, len(ascending) + 1) / len(p_values)
    below = np.flatnonzero(ascending <= lines * SLACK)
    return p_values <= (ascending[below[-1]] if below.size else 0.0)


def storey_rank(n_calibration: int) -> int:
    """Return the rank K of the p-value K / (n + 1) from which on rows are taken for normal ones.

    With fewer than three calibration rows it is n + 1, and nothing is estimated.
    """
    return (n_calibration + 1) // 2 if n_calibration >= 3 else n_calibration + 1


def share_of_normal(n_high: int, n_rows: int, n_calibration: int) -> float:
    """Estimate the share of normal rows by the number of p-values of at least K / (n + 1).

    This is Storey's estimate with one row added, which makes the bound on false discoveries exact.
    It may exceed 1.

    Parameters
    ----------
    n_high : int
        Rows with such a p-value.
    n_rows, n_calibration : int
    """
    n_steps = n_calibration + 1 - storey_rank(n_calibration)
    return (1 + n_high) * (n_calibration + 1) / (n_rows * n_steps) if n_steps else 1.0


def adaptive_benjamini_hochberg(
    p_values: NDArray[np.float64], n_calibration: int, level: float
) -> NDArray[np.bool_]:
    """Flag rows so that the false discovery rate is at most `level`.

    The procedure of Benjamini and Hochberg at the level divided by the estimated share of normal
    rows (Marandon et al. 2024). Only p-values below those that the estimate counts are flagged.

    Parameters
    ----------
    p_values : ndarray of shape (n,)
        Conformal p-values, multiples of 1 / (n_calibration + 1).
    n_calibration : int
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    return _adapted(p_values, n_calibration, level)[0]


def e_values(
    p_values: NDArray[np.float64], n_calibration: int, level: float
) -> NDArray[np.float64]:
    """Convert the p-values of one split to e-values.

    Where `adaptive_benjamini_hochberg` flags k rows and estimates a share π of normal ones, each of
    the k rows gets 1 / (π u), where u is the highest value at or below level · k / (π n) that a
    flagged p-value can take; any other row gets 0. The expected sum of the e-values of the normal
    rows is at most n. This is what `e_benjamini_hochberg` needs, and, unlike p-values, averages of
    e-values have the same property.

    The highest p-value that is flagged cannot take the place of u: it is often lower by chance, and
    the expected sum would be too high.

    Parameters
    ----------
    p_values : ndarray of shape (n,)
    n_calibration : int
    level : float

    Returns
    -------
    ndarray of shape (n,)
    """
    flagged, share = _adapted(p_values, n_calibration, level)
    n_flagged = int(np.count_nonzero(flagged))
    value = e_value_of(n_flagged, len(p_values), n_calibration, level, share)
    return np.where(flagged, value, 0.0)


def e_value_of(
    n_flagged: int, n_rows: int, n_calibration: int, level: float, share: float
) -> float:
    """Return the e-value of each of the rows that a split flags; see `e_values`."""
    if not n_flagged:
        return 0.0
    line = level / share * n_flagged / n_rows
    highest = min(math.floor(line * (n_calibration + 1) * SLACK), storey_rank(n_calibration) - 1)
    return (n_calibration + 1) / (highest * share)


def _adapted(
    p_values: NDArray[np.float64], n_calibration: int, level: float
) -> tuple[NDArray[np.bool_], float]:
    """Return what `adaptive_benjamini_hochberg` flags, and the estimated share of normal rows."""
    first_high = storey_rank(n_calibration) / (n_calibration + 1)
    is_high = p_values * SLACK >= first_high
    share = share_of_normal(int(np.count_nonzero(is_high)), len(p_values), n_calibration)
    flagged = benjamini_hochberg(np.where(is_high, np.inf, p_values), level / share)
    return flagged, share


def e_benjamini_hochberg(values: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Flag rows by e-values so that the false discovery rate is at most `level`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        E-values, dependent in any way.
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    # Rows without evidence, which are most of them, need not be sorted.
    descending = -np.sort(-values[values > 0])
    rank = np.arange(1, len(descending) + 1)
    enough = np.flatnonzero(level * rank * descending * SLACK >= len(values))
    return values >= (descending[enough[-1]] if enough.size else np.inf)


def flag_rows(p_values: NDArray[np.float64], n_calibration: int, level: float) -> NDArray[np.bool_]:
    """Flag rows by the p-values of one split or of several.

    For one split this is `adaptive_benjamini_hochberg`. Several splits are merged by the
    mean of their e-values, whose guarantee holds for any dependence. Twice the mean p-value is a
    p-value again, but the guarantee on false discoveries needs more than valid p-values.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)
    n_calibration : int
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    cut = level_of_split(level, len(p_values))
    if len(p_values) == 1:
        return adaptive_benjamini_hochberg(p_values[0], n_calibration, cut)
    values = np.mean([e_values(split, n_calibration, cut) for split in p_values], axis=0)
    return e_benjamini_hochberg(values, level)


def least_to_flag(n_unlabeled: int, n_calibration: int, level: float, n_splits: int = 1) -> int:
    """Return the smallest number of rows above 0 that a split can flag.

    No p-value is below 1 / (n_calibration + 1), and k rows are flagged only if all their p-values
    are at most level · k / n_unlabeled. A result above `n_unlabeled` means that no row can be
    flagged. Where fewer rows of the batch are estimated to be normal, fewer rows may do.

    Parameters
    ----------
    n_unlabeled, n_calibration : int
    level : float
        As in `flag_rows`.
    n_splits : int

    Returns
    -------
    int
    """
    highest = level_of_split(level, n_splits) * (n_calibration + 1) * SLACK
    return math.ceil(n_unlabeled / highest)


def merge_p_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge the p-values of several splits: twice their mean, which is a p-value again.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)

    Returns
    -------
    ndarray of shape (n,)
    """
    factor = 1.0 if len(p_values) == 1 else 2.0
    merged: NDArray[np.float64] = np.minimum(factor * p_values.mean(axis=0), 1.0)
    return merged


def estimate_contamination(
    p_values: NDArray[np.float64], n_calibration: int, confidence: float
) -> ContaminationEstimate:
    """Estimate the share of outliers by the number of p-values above one half.

    About half of the normal rows have such a p-value, and few outliers do. The number of them among
    n₀ normal rows follows a beta-binomial distribution exactly. The interval contains all shares
    for which the observed number is not too unlikely. Few normal rows have low p-values, so that
    outliers stand out there: the lower end, that of `bound_outliers`, also uses the numbers of
    p-values above lower cuts.

    Parameters
    ----------
    p_values : ndarray of shape (n_splits, n)
        Computed from ranks without ties: tied rows would all be above one half, or none. The
        estimates of several splits are averaged; their probabilities are merged by twice the mean.
    n_calibration : int
        At least 1.
    confidence : float

    Returns
    -------
    ContaminationEstimate
    """
    n_above = counts_by_split(p_values, n_calibration, cut_ranks(n_calibration))
    return estimate_from_counts(n_above, p_values.shape[1], n_calibration, confidence)


def estimate_from_counts(
    n_above: NDArray[np.intp], n_rows: int, n_calibration: int, confidence: float
) -> ContaminationEstimate:
    """Estimate the share of outliers as `estimate_contamination` does.

    Parameters
    ----------
    n_above : ndarray of int of shape (n_cuts, n_splits)
        How many p-values of each split are above each of the `cut_ranks`.
    n_rows : int
    n_calibration : int
    confidence : float

    Returns
    -------
    ContaminationEstimate
    """
    doubt = (1.0 - confidence) / 2
    counts = counts_above(n_above, n_calibration, cut_ranks(n_calibration))
    half, n_merged = counts[0], min(n_above.shape[1], 2)
    most = most_normal(counts, n_rows, doubt)
    fewest = first_number(n_rows, lambda n: half.chance_of_more(n) > doubt / n_merged)
    fewest = min(fewest, most)
    n_normal = np.clip(half.n_normal, fewest, most)
    share, low, high = (float(1.0 - n / n_rows) for n in (n_normal, most, fewest))
    return ContaminationEstimate(share, low, high)


def level_of_split(level: float, n_splits: int) -> float:
    """Return the level that is applied to each split."""
    return level if n_splits == 1 else level / 2
