"""How far to trust each view of the ensemble, judged from the batch without labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact

# Excess counts from here on, in standard deviations. By chance up to a tenth of clean batches have
# more than 3 in some view. That view would then decide, and the batch would raise an alarm with the
# rows that stand out in it: 9 % of 700 clean tables did with 3, and 4 % of 400 do with 5. With 6, a
# handful of outliers in one view would not count.
_CHANCE = 5.0

# The share of the batch in which an excess of suspicious rows is looked for: a batch is mostly
# normal.
_MOST_SUSPICIOUS = 0.1

# Weight of all excess together; trust adds up to between 1 and 3. From 2 to 4 the mean AUC on KEEL
# and ADBench falls by 0.001, and the recall on mixed tables rises by 0.009.
_EXCESS_WEIGHT = 4.0

# The most weight of each view of marked outliers, and how many outliers give it half of that. A
# single outlier has a neighborhood, but a forest needs several. Chosen on half of ADBench's sets.
_MARKS_WEIGHT = 3.0
_HALF_SIMILARITY = 1
_HALF_FOREST = 5


def rank_correlation(scores: NDArray[np.float64]) -> float:
    """Compute the mean rank correlation between two rows of `scores`."""
    ranks = np.stack([mean_ranks(row) for row in scores])
    centered = ranks - ranks.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.sum(centered**2, axis=1, keepdims=True))
    # Constant scores correlate with nothing.
    directions = centered / np.where(lengths > 0, lengths, np.inf)
    n = len(ranks)
    return float((np.sum(directions.sum(axis=0) ** 2) - np.sum(directions**2)) / (n * (n - 1)))


def mean_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value from 1 on; equal values have the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def excess(scores: NDArray[np.float64], n_compared: int) -> float:
    """Compute by how much the batch has more suspicious rows than chance would give.

    For each of the most suspicious rows: of n rows, n p would be beyond it if all were normal, and
    k are. The largest difference k − n p, in its standard deviations, is the result (the idea of
    "higher criticism", Donoho and Jin 2004). The deviation counts that p is an estimate, too, and
    it is at least 1, so that a single row never counts for much. Scores are −log p in one view, and
    `n_compared` held-out rows are behind each p.
    """
    n = len(scores)
    beyond = np.arange(1, max(1, int(_MOST_SUSPICIOUS * n)) + 1)
    p_values = exact.exp(np.sort(-scores)[: len(beyond)])
    variance = n * p_values * (1.0 - p_values) * (1.0 + n / n_compared)
    return max(0.0, float(np.max((beyond - n * p_values) / np.sqrt(variance + 1.0))))


def view_weights(trust: Mapping[str, float], excesses: Mapping[str, float]) -> dict[str, float]:
    """Add to the trust in each view its share of all excess beyond chance."""
    counted = {name: max(0.0, value - _CHANCE) for name, value in excesses.items()}
    total = 1.0 + sum(counted.values())
    return {name: trust[name] + _EXCESS_WEIGHT * counted[name] / total for name in trust}


def excess_weight(value: float) -> float:
    """Compute the weight of a view of its own from its excess, by the same rule."""
    counted = max(0.0, value - _CHANCE)
    return _EXCESS_WEIGHT * counted / (1.0 + counted)


def separation(of_outliers: NDArray[np.float64], ascending: NDArray[np.float64]) -> float:
    """Compute how far scores separate marked outliers from normal rows: 2 AUC − 1, at least 0."""
    n_lower = np.searchsorted(ascending, of_outliers, side="left")
    n_not_higher = np.searchsorted(ascending, of_outliers, side="right")
    auc = float(np.mean(n_lower + n_not_higher)) / (2 * len(ascending))
    return max(0.0, 2.0 * auc - 1.0)


def similarity_weight(separated: float, n_outliers: int) -> float:
    """Compute the weight of the similarity to marked outliers from how far it separates them."""
    return _MARKS_WEIGHT * separated * n_outliers / (n_outliers + _HALF_SIMILARITY)


def outlier_forest_weight(separated: float, n_outliers: int) -> float:
    """Compute the weight of the forest of marked outliers from how far it separates them."""
    return _MARKS_WEIGHT * separated * n_outliers / (n_outliers + _HALF_FOREST)
