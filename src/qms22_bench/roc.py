"""ROC curves of pooled folds, thinned for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from qms22.metrics import roc

Truth = NDArray[np.bool_]
Scores = NDArray[np.float64]
Pooled = Mapping[str, Mapping[str, tuple[Truth, Scores]]]

# Points of a curve, and the number that represents 1 on its axes.
_MOST_POINTS = 100
_ONE = 1000


def pool_scores(scores: Mapping[tuple[str, int, str, int], tuple[Truth, Scores]]) -> Pooled:
    """Pool the scores of all folds, by data set and detector, for the first seed of each.

    Parameters
    ----------
    scores : mapping
        (dataset, fold, detector, seed) to (is_outlier, scores), as from `Store.scores`.

    Returns
    -------
    mapping
        dataset to detector to (is_outlier, scores). Scores are replaced by their ranks within the
        fold, from 0 to 1, because scores of different fits have different scales.
    """
    folds: dict[tuple[str, str], dict[int, list[tuple[Truth, Scores]]]] = {}
    for (dataset, _, detector, seed), pair in sorted(scores.items(), key=lambda item: item[0]):
        folds.setdefault((dataset, detector), {}).setdefault(seed, []).append(pair)
    pooled: dict[str, dict[str, tuple[Truth, Scores]]] = {}
    for (dataset, detector), by_seed in folds.items():
        pairs = by_seed[min(by_seed)]
        pooled.setdefault(dataset, {})[detector] = (
            np.concatenate([truth for truth, _ in pairs]).astype(bool),
            np.concatenate([_unit_ranks(values) for _, values in pairs]),
        )
    return pooled


def _unit_ranks(values: Scores) -> Scores:
    ranks: Scores = (rankdata(values) - 0.5) / max(len(values), 1)
    return ranks


def compact_curve(is_outlier: Truth, scores: Scores) -> dict[str, Any] | None:
    """Compute a ROC curve of at most a hundred points.

    Returns
    -------
    dict or None
        "auc" of the full curve, and "points": false and true positive rates, alternating, in
        thousandths. None if all rows are outliers or none is.
    """
    if np.asarray(is_outlier).all() or not np.asarray(is_outlier).any():
        return None
    curve = roc(is_outlier, scores)
    x, y = curve.thinned(_MOST_POINTS)
    points = np.rint(np.column_stack([x, y]) * _ONE).astype(int)
    return {"auc": round(curve.auc, 4), "points": points.ravel().tolist()}
