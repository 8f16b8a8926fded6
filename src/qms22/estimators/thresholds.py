"""Thresholds: how many rows to flag, and the score that separates them from the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.validation import is_count, is_number


def count_flagged(contamination: object, n_unlabeled: int) -> int | None:
    """Return the number of rows that `contamination` asks for; None for "auto"."""
    if isinstance(contamination, str) and contamination == "auto":
        return None
    if is_count(contamination) and 1 <= contamination <= n_unlabeled:  # type: ignore[operator]
        return int(contamination)  # type: ignore[call-overload, no-any-return]
    if is_number(contamination) and 0 < contamination < 1:  # type: ignore[operator]
        return round(contamination * n_unlabeled)  # type: ignore[operator]
    raise ValueError(
        "contamination must be 'auto', a share in (0, 1) or a number of rows from 1 to "
        f"{n_unlabeled}, the number of unlabeled rows; got {contamination!r}"
    )


def threshold(scores: NDArray[np.float64], n_flagged: int | None) -> float:
    """Return the midpoint between flagged and other scores, or Tukey's upper fence for None."""
    if n_flagged is None:
        first, third = np.percentile(scores, [25, 75])
        return float(third + 1.5 * (third - first))
    if n_flagged == 0:
        return float(scores.max())
    if n_flagged == len(scores):
        return float(np.nextafter(scores.min(), -np.inf))
    place = len(scores) - n_flagged
    ascending = np.partition(scores, [place - 1, place])
    return float(ascending[place - 1] + ascending[place]) / 2
