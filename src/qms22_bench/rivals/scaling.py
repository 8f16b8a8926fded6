"""Feature scaling of the rivals, learned on the known-normal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

# The inverse of a number below the first is infinite; a factor of infinity or 0 could make a NaN.
_TINY, _HUGE = np.finfo(np.float64).tiny, np.finfo(np.float64).max


@dataclass(frozen=True)
class Scaler:
    """x ↦ (x / peak − center) · factor, cut off at ± limit, where squares would overflow."""

    peak: Rows
    center: Rows
    factor: Rows
    limit: float = 1e100

    def transform(self, rows: Rows) -> Rows:
        """Scale rows."""
        with np.errstate(over="ignore"):
            scaled: Rows = (rows / self.peak - self.center) * self.factor
        return np.clip(scaled, -self.limit, self.limit)


def range_scaler(normal: Rows) -> Scaler:
    """Learn to scale every column to a range of length 1; a constant column keeps its unit.

    Min-max scaling up to a shift, which changes no distance: the median becomes 0, as rounding
    errors of distances are smallest near 0, where most rows should be.
    """
    peak, constant = _peaks(normal)
    in_peaks = normal / peak
    width = in_peaks.max(axis=0) - in_peaks.min(axis=0)
    # Dividing by 1 / peak undoes the division by the peak.
    width[constant] = 1.0 / peak[constant]
    with np.errstate(over="ignore"):
        factor = np.minimum(1.0 / width, _HUGE)
    return Scaler(peak, np.median(in_peaks, axis=0), factor)


def deviation_scaler(normal: Rows) -> Scaler:
    """Learn to scale every column to standard deviation 1; a constant column gets three units."""
    peak, constant = _peaks(normal)
    in_peaks = normal / peak
    center = _exact_mean(in_peaks)
    center[constant] = in_peaks[0, constant]
    # In units of the largest distance from the center, so that no square is too small to count.
    spread = np.maximum(in_peaks.max(axis=0) - center, center - in_peaks.min(axis=0))
    spread[spread <= 0.0] = 1.0
    deviation = spread * np.sqrt(_exact_mean(((in_peaks - center) / spread) ** 2))
    # By way of 85, a standard deviation in the unit of QMS22, whose rounding this has.
    with np.errstate(over="ignore", divide="ignore"):
        deviation[constant] = 85.0 / 255.0 / peak[constant]
        factor = np.minimum(85.0 / deviation, _HUGE) / 85.0
    return Scaler(peak, center, factor)


def _peaks(normal: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """Return the largest absolute value of every column, and which columns are constant."""
    high, low = normal.max(axis=0), normal.min(axis=0)
    constant = high == low
    peak = np.maximum(high, -low)
    peak[(peak == 0.0) | (constant & (peak < _TINY))] = 1.0
    return peak, constant


def _exact_mean(values: Rows) -> Rows:
    """Return the means of columns of values in [-1, 1], each rounded once."""
    # Both parts are whole numbers: float64 adds 250,000 of them without rounding.
    coarse = np.rint(values * 2.0**26)
    fine = np.rint((values - coarse * 2.0**-26) * 2.0**62)
    sums = zip(coarse.sum(axis=0), fine.sum(axis=0), strict=True)
    weight = len(values) << 62
    return np.array([(int(large) * 2**36 + int(small)) / weight for large, small in sums])
