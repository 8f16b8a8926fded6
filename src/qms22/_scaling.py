"""Feature scaling, learned on the known-normal rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The paper's unit: the largest absolute value among the known-normal rows becomes 255. A standard
# deviation becomes a third of it, so that most of a standardised column stays within ±255 as well.
LARGEST = 255.0
DEVIATION = LARGEST / 3

# Values a thousand times beyond what is normal are cut off: they can hardly get more suspicious,
# but they could leave the range of float32.
LIMIT = 1024 * LARGEST

# Without scaling nothing is touched but what would overflow.
UNSCALED_LIMIT = 1e100


@dataclass(frozen=True)
class FeatureScaler:
    """x ↦ (x / peak − center) · factor, cut off at ± limit.

    Dividing by the peak (the column's largest absolute value) first keeps columns of any size in
    range, 1e300 and 1e−300 alike.
    """

    peak: NDArray[np.float64]
    center: NDArray[np.float64]
    factor: NDArray[np.float64]
    limit: float

    @classmethod
    def learn(
        cls,
        normal: NDArray[np.float64],
        scaling: str | None,
        weights: NDArray[np.float64] | None = None,
    ) -> FeatureScaler:
        """Learn the scaling of the columns.

        Parameters
        ----------
        normal : ndarray of shape (n, p)
            Known-normal rows.
        scaling : {"maxabs", "standard", None}
            "maxabs": the largest absolute value becomes 255 (the paper's). "standard": mean 0,
            standard deviation 85. Where a column is 0 ("maxabs") or constant ("standard") in every
            normal row, a difference of 1 becomes 255: a level never seen counts.
        weights : ndarray of shape (n,), optional
            Positive weights of the rows in mean and deviation.
        """
        n_features = normal.shape[1]
        ones, zeros = np.ones(n_features), np.zeros(n_features)
        if scaling is None:
            return cls(ones, zeros, ones, UNSCALED_LIMIT)
        peak = np.maximum(normal.max(axis=0), -normal.min(axis=0))
        peak[peak == 0.0] = 1.0
        if scaling == "maxabs":
            return cls(peak, zeros, np.full(n_features, LARGEST), LIMIT)
        # In one memory order, so that means are summed in one order, however the rows come.
        in_peaks = np.divide(normal, peak, order="C")
        center = np.average(in_peaks, axis=0, weights=weights)
        deviation = np.sqrt(np.average((in_peaks - center) ** 2, axis=0, weights=weights))
        constant = normal.max(axis=0) == normal.min(axis=0)
        center[constant] = in_peaks[0, constant]
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore", divide="ignore"):
            deviation[constant] = np.minimum(DEVIATION / LARGEST / peak[constant], largest)
            factor = np.minimum(DEVIATION / deviation, largest)
        return cls(peak, center, factor, LIMIT)

    def transform(
        self, X: NDArray[np.float64], out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Scale rows, into `out` where given."""
        with np.errstate(over="ignore"):
            scaled = np.divide(X, self.peak, out=out)
            scaled -= self.center
            scaled *= self.factor
        np.clip(scaled, -self.limit, self.limit, out=scaled)
        return scaled
