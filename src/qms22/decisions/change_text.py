"""What changed in a column, as a short text in its own units."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# A spread that changes by this ratio is named instead of a median that hardly changes.
_CLEAR_RATIO = 1.25

# Larger numbers, and differences smaller than one over this, are shown with an exponent.
_MOST_DIGITS = 1e9


@np.errstate(over="ignore", invalid="ignore")
def change_of_numbers(normal: NDArray[np.float64], batch: NDArray[np.float64]) -> str:
    """Return what changed most visibly: a share, all values, the median, the spread or the mean.

    Both arrays are sorted.
    """
    ends = normal[0], normal[-1], batch[0], batch[-1]
    if batch[0] > normal[-1] or batch[-1] < normal[0]:
        return _change_of_range(*ends)
    levels = np.unique(ends)
    if len(levels) == 2 and all(np.isin(values, levels).all() for values in (normal, batch)):
        shares = (float(np.mean(values == levels[1])) for values in (normal, batch))
        return change_of_share(f"share of {_numbers(*levels)[1]}", *shares)
    (low, middle, high), (low_after, after, high_after) = (
        np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf") for values in (normal, batch)
    )
    widths = high - low, high_after - low_after
    is_wider = max(widths) > _CLEAR_RATIO * min(widths)
    if is_wider and abs(after - middle) < max(widths) / 4:
        return f"middle half {_change_of_range(low, high, low_after, high_after)}"
    if middle != after:
        return "median {} → {}".format(*_numbers(middle, after))
    return "mean {} → {}".format(*_numbers(normal.mean(), batch.mean()))


def _numbers(*values: float) -> list[str]:
    """Return numbers with as many decimal places as their differences need."""
    if all(float(value).is_integer() and abs(value) < _MOST_DIGITS for value in values):
        return [f"{value:.0f}" for value in values]
    spread = max(values) - min(values) or abs(values[0])
    if not 1 / _MOST_DIGITS < spread < _MOST_DIGITS:
        return [f"{value:.3g}" for value in values]
    n_decimals = max(0, 1 - math.floor(math.log10(spread)))
    return [f"{value:.{n_decimals}f}" for value in values]


def _change_of_range(*ends: float) -> str:
    low, high, low_after, high_after = _numbers(*ends)
    before, after = (
        first if first == last else f"{first} to {last}"
        for first, last in ((low, high), (low_after, high_after))
    )
    return f"{before} → {after}"


def change_of_share(what: str, before: float, after: float) -> str:
    """Return a change of a share of rows as text."""
    return f"{what} {_percent(before)} → {_percent(after)}"


def _percent(share: float) -> str:
    """Return a share in percent, with one decimal place below ten percent."""
    return f"{100 * share:.0f} %" if share in (0, 1) or share >= 0.1 else f"{100 * share:.1f} %"
