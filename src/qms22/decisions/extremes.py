"""How many rows of a batch have values far outside: a bound that needs no fit.

The score of a row is its most extreme value: the largest distance from the median of a column, in
units of a distance that most rows stay within. Medians and units come from the normal rows and the
batch together, so that the scores do not depend on which rows are which, and the bound of
`bound_outliers` is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qms22.decisions.curve import OutlierBound, bound_outliers
from qms22.decisions.moved_columns import ColumnPair
from qms22.decisions.ruler import Ruler

# The unit of distances in a column: a tenth of all rows may be outliers without a change of it.
_INNER_SHARE = 0.9


class ExtremeRows:
    """The rows of a batch that are more extreme than normal rows.

    Parameters
    ----------
    normal, batch : ndarray
        How extreme the rows are, by a rule that treats both alike.
    """

    def __init__(self, normal: NDArray[np.float64], batch: NDArray[np.float64]) -> None:
        self._counts = Ruler.of(normal).count(batch)

    @classmethod
    def of_columns(cls, columns: Sequence[ColumnPair]) -> ExtremeRows | None:
        """Compare the most extreme numbers of rows; None if no column has numbers."""
        scores = [_extremeness(pair) for pair in columns if not pair.levels]
        if not scores:
            return None
        highest = np.max(scores, axis=0)
        n_batch = len(columns[0].batch)
        return cls(highest[n_batch:], highest[:n_batch])

    def bound(self, confidence: float) -> OutlierBound:
        """Return how many rows of the batch are outliers at least."""
        return bound_outliers(self._counts, confidence)


def _extremeness(pair: ColumnPair) -> NDArray[np.float64]:
    """Return the distances of the batch and of the normal rows from the median of a column."""
    values = np.concatenate([pair.batch, pair.normal]).astype(np.float64)
    is_finite = np.isfinite(values)
    distances = np.where(np.isinf(values), np.inf, 0.0)
    if is_finite.any():
        with np.errstate(over="ignore"):
            finite = np.abs(values[is_finite] - np.median(values[is_finite]))
        unit = float(np.quantile(finite, _INNER_SHARE))
        if not unit and finite.any():
            unit = float(finite[finite > 0].mean())  # most values are equal
        distances[is_finite] = finite / (unit or 1.0)
    return distances
