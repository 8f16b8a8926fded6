"""Feature scaling, learned on the known-normal rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from qms22._cpm.cuda.scores import scale_rows
from qms22._runtime.arrays import array_module, as_host, is_on_gpu, to_device_of
from qms22._runtime.devices import to_device

# The paper's unit: the largest absolute value among the known-normal rows becomes 255. A standard
# deviation becomes a third of it, so that most of a standardised column stays within ±255 as well.
LARGEST = 255.0
DEVIATION = LARGEST / 3

# Values a thousand times larger than normal ones are cut off: they are as suspicious as can be, and
# larger ones could leave the range of float32.
LIMIT = 1024 * LARGEST

# Without scaling only values whose squares and products would overflow are cut off.
UNSCALED_LIMIT = 1e100

# The inverse of a number below the first is infinite; a factor of infinity or 0 could make a NaN.
_TINY, _HUGE = np.finfo(np.float64).tiny, np.finfo(np.float64).max

# Sums are exact: every term is rounded to a whole multiple of 2^-62 first. Two parts of a term have
# 26 and 36 bits, and the sum of 2^16 of them at most 52, which float64 holds.
_FINE_BITS, _COARSE_BITS = 62, 26
_ROWS_PER_BATCH = 65_536


def _mean(
    values: Callable[[Any], Any], rows: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Compute the means of columns in exact arithmetic, so that the order of rows does not matter.

    `values` is a function of rows with values in [-1, 1]; weights are in [0, 1] or 1.
    """
    total, weight = np.zeros(rows.shape[1], dtype=object), 0
    for batch in gen_batches(len(rows), _ROWS_PER_BATCH):
        terms = values(rows[batch])
        if weights is None:
            weight += len(terms) << _FINE_BITS
        else:
            shares = to_device_of(weights[batch, None], terms)
            terms = terms * shares
            weight += _exact_sum(shares)[0]
        total += _exact_sum(terms)
    return np.array([each / weight for each in total], dtype=np.float64)


def _exact_sum(values: NDArray[np.float64]) -> NDArray[np.object_]:
    """Sum one batch of rows of values in [-1, 1], as whole multiples of 2^-62."""
    # Both parts are whole numbers, and so few rows of them that float64 adds them exactly.
    coarse = np.rint(values * 2.0**_COARSE_BITS)
    fine = np.rint((values - coarse * 2.0**-_COARSE_BITS) * 2.0**_FINE_BITS)
    unit = 2 ** (_FINE_BITS - _COARSE_BITS)
    sums = zip(as_host(coarse.sum(axis=0)), as_host(fine.sum(axis=0)), strict=True)
    return np.array([int(large) * unit + int(small) for large, small in sums], dtype=object)


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
        """Learn the scaling of the columns of known-normal rows, with positive weights or none.

        "maxabs": the largest absolute value becomes 255 (the paper's). "standard": mean 0, standard
        deviation 85. If a column is 0 ("maxabs") or constant ("standard") in all normal rows, a
        difference of 1 becomes 255, so that an unseen level counts.
        """
        low, high = as_host(normal.min(axis=0)), as_host(normal.max(axis=0))
        shares = None if weights is None else weights / weights.max()
        n_features = len(low)
        ones, zeros = np.ones(n_features), np.zeros(n_features)
        if scaling is None:
            return cls(ones, zeros, ones, UNSCALED_LIMIT)
        peak = np.maximum(high, -low)
        peak[peak == 0.0] = 1.0
        if scaling == "maxabs":
            return cls(peak, zeros, np.full(n_features, LARGEST), LIMIT)
        constant = high == low
        peak[constant & (peak < _TINY)] = 1.0

        def in_peaks(rows: Any) -> Any:
            return rows / to_device_of(peak, rows)

        center = _mean(in_peaks, normal, shares)
        center[constant] = low[constant] / peak[constant]
        # In units of the largest distance from the center, so that no square is too small to count.
        spread = np.maximum(high / peak - center, center - low / peak)
        spread[spread <= 0.0] = 1.0

        def squares(rows: Any) -> Any:
            away = in_peaks(rows) - to_device_of(center, rows)
            return (away / to_device_of(spread, rows)) ** 2

        deviation = spread * np.sqrt(_mean(squares, normal, shares))
        with np.errstate(over="ignore", divide="ignore"):
            deviation[constant] = DEVIATION / LARGEST / peak[constant]
            factor = np.minimum(DEVIATION / deviation, _HUGE)
        return cls(peak, center, factor, LIMIT)

    def transform(
        self, X: NDArray[np.float64], out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Scale rows of NumPy or CuPy, into `out` if given."""
        if is_on_gpu(X):
            scaled = array_module(X).empty(X.shape) if out is None else out
            scale_rows(X, (self.peak, self.center, self.factor), self.limit, scaled)
            return scaled
        with np.errstate(over="ignore"):
            scaled = np.divide(X, self.peak, out=out)
            scaled -= self.center
            scaled *= self.factor
        np.clip(scaled, -self.limit, self.limit, out=scaled)
        return scaled


def fit_scaler_and_stack(
    normal: NDArray[np.float64], batch: NDArray[np.float64], scaling: str | None, device: str
) -> tuple[FeatureScaler, NDArray[np.float64]]:
    """Learn the scaling of T; return it and the scaled rows of S, then T, on the device."""
    known, sought = to_device(normal, device), to_device(batch, device)
    scaler = FeatureScaler.learn(known, scaling)
    rows = array_module(known).empty((len(sought) + len(known), known.shape[1]))
    scaler.transform(sought, out=rows[: len(sought)])
    scaler.transform(known, out=rows[len(sought) :])
    return scaler, rows
