"""E-values of rows on trial, and flags by them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.estimators.conformal import SLACK


class Line(NamedTuple):
    """A line through the scores of a trial.

    Parameters
    ----------
    n_found : int
        Other rows of the batch beyond it, and 1; 0 if there is no line.
    e_value : float
        Of the row on trial.
    """

    n_found: int
    e_value: float


def draw_line(
    known: NDArray[np.float64], others: NDArray[np.float64], level: float, n_batch: int
) -> Line:
    """Draw the lowest line beyond which there are few known-normal rows and many others.

    With k rows of `known` and r − 1 others beyond it, k / (n + 1) ≤ level · r / n_batch. All rows
    of `known`, the one on trial among them, are treated alike.

    Parameters
    ----------
    known : ndarray of shape (n + 1,)
        Scores of the known-normal rows and, last, of the row on trial.
    others : ndarray
        Scores of the other rows of the batch.
    level : float
    n_batch : int
    """
    n_known = len(known)
    most = min(n_known - 1, math.floor(level * n_known * SLACK))
    if most < 1:
        return Line(0, 0.0)
    highest = -np.sort(-np.partition(known, n_known - 1 - most)[n_known - 1 - most :])
    lines, n_beyond = highest[1:], np.arange(1, most + 1)
    n_found = 1 + len(others) - np.searchsorted(np.sort(others), lines, side="right")
    needed = n_batch * n_beyond / (level * n_known)
    # Trials differ: by about a standard deviation of a count, and in the normal rows they find.
    # More rows than needed make up for it; with one row beyond there is no lower line to fail.
    needed = np.where(n_beyond > 1, needed / (1 - level / 2) + np.sqrt(needed), needed)
    is_few = needed <= n_found * SLACK
    # Rows with equal scores are beyond a line together or not at all.
    possible = np.flatnonzero((highest[:-1] > lines) & is_few)
    if not possible.size:
        return Line(0, 0.0)
    last = possible[-1]
    is_beyond = known[-1] > lines[last]
    return Line(int(n_found[last]), n_known / n_beyond[last] if is_beyond else 0.0)


def closed_e_benjamini_hochberg(values: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Flag rows by e-values so that the false discovery rate is at most `level`.

    It flags a set R if, for every set A of rows, the mean e-value of A is at least the share
    |A ∩ R| / |R| divided by the level. One of these sets A is that of the normal rows: its mean has
    an expectation of at most 1, so the share of normal rows in R has one of at most the level. It
    flags all that `e_benjamini_hochberg` does, and often more.

    Parameters
    ----------
    values : ndarray of shape (n,)
        E-values, dependent in any way; the expected mean over any set of normal rows is at most 1.
    level : float

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    n = len(values)
    flagged = np.zeros(n, dtype=bool)
    order = np.argsort(-values, kind="stable")
    descending = values[order]
    for size in range(int(np.count_nonzero(values > 0)), 0, -1):
        # The worst A has the a lowest rows of R and, with e-values taken as 0, all rows outside.
        a = np.arange(1, size + 1)
        sums = np.cumsum(descending[:size][::-1])
        if (level * size * sums * SLACK >= a * (a + n - size)).all():
            flagged[order[:size]] = True
            break
    return flagged
