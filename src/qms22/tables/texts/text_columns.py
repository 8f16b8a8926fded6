"""When a column of texts counts as one of numbers or dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

# So large a share of the rows must fit, ...
LEAST_SHARE = 0.9
# ... and the others may have so many different texts, or so many per row: "-", "unknown", "n/k".
# Where more differ they are no words but codes, such as the ISBNs that end in "X".
MOST_WORDS = 3
MOST_WORDS_PER_ROW = 0.02
# Where many different numbers go with so few words, more rows may have one: "pending", "< 5".
LEAST_SHARE_WITH_FEW_WORDS = 0.6
LEAST_DIFFERENT = 10
_SAMPLE = 1000


def row_weights(texts: Sequence[str], counts: ArrayLike | None) -> NDArray[np.float64]:
    """Return in how many rows each text occurs: once each if that is not known."""
    return np.ones(len(texts)) if counts is None else np.asarray(counts, dtype=np.float64)


def fits_column(fits: NDArray[np.bool_], counts: NDArray[np.float64], is_asked: bool) -> bool:
    """Return whether nearly all rows fit, and the others have few different texts.

    `fits` says which of the different texts fit, and `counts` in how many rows each of them occurs.
    If the user has asked for it, any row is enough.
    """
    if is_asked:
        return bool(fits.any())
    n_rows = counts.sum()
    n_words = np.count_nonzero(~fits & (counts > 0))
    is_clear = n_words <= MOST_WORDS and np.count_nonzero(fits) >= LEAST_DIFFERENT
    least = LEAST_SHARE_WITH_FEW_WORDS if is_clear else LEAST_SHARE
    return bool(
        counts[fits].sum() > 0
        and counts[fits].sum() >= least * n_rows
        and n_words <= max(MOST_WORDS, MOST_WORDS_PER_ROW * n_rows)
    )


def most_weighty(pairs: Sequence[tuple[T, float]]) -> Sequence[tuple[T, float]]:
    """Return the values with the largest weights: they show how a column is written."""
    return sorted(pairs, key=lambda pair: -pair[1])[:_SAMPLE]


def most_frequent(pairs: Sequence[tuple[T, float]]) -> tuple[T, float]:
    """Return the value with the largest total weight, and its share.

    The order of the pairs does not decide between values of the same weight.
    """
    totals: dict[T, float] = {}
    for value, weight in pairs:
        totals[value] = totals.get(value, 0.0) + weight
    best = max(totals, key=lambda value: (totals[value], repr(value)))
    return best, float(totals[best] / (sum(totals.values()) or 1.0))
