"""Calibration: known-normal rows are held out, mixed into the batch, and compared with it.

The bound on false discoveries rests on one condition: what learns and scores must not be able to
tell the held-out rows from the normal rows of the batch. So everything that learns from
known-normal rows (encoder, scaling, detector) learns again in each split, from the rows that are
not held out, and treats all rows of the mixture alike. `qms22.estimators.conformal` has what
follows from that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import as_host
from qms22._runtime.chunks import choose_rows, draw_rows
from qms22._runtime.threads import OwnLock
from qms22._runtime.validation import check_count, check_share
from qms22._runtime.warn import warn_user
from qms22.estimators.conformal import (
    SLACK,
    ContaminationEstimate,
    RowsBeyond,
    conformal_p_values,
    estimate_contamination,
    flag_rows,
    least_to_flag,
    merge_p_values,
    random_p_values,
)
from qms22.estimators.outlier_bound import (
    OutlierBound,
    bound_outliers,
    counts_by_split,
    cut_ranks,
)

# One known-normal row in three is held out, the others teach. Held-out rows dilute the outliers of
# the batch: with one in two fewer outliers are found. With more than this many for each row of the
# batch even a single outlier can be flagged at a false discovery rate of 0.05.
_ONE_HELD_OUT_IN = 3
_MOST_PER_ROW = 20

# Splits that are asked separately how sure a flag is.
_COMPARED_SPLITS = 5


@dataclass(frozen=True, eq=False)
class CalibrationSplit:
    """One random choice of held-out rows.

    Parameters
    ----------
    known : ndarray of int
        Positions of the known-normal rows to learn from.
    held_out : ndarray of int
        Positions of the known-normal rows that are mixed into the batch.
    make_order : callable
        Returns a random order of the mixture, which has the rows of the batch, then the held-out
        ones; the same at every call.
    rng : RandomState
        For learning.
    """

    known: NDArray[np.intp]
    held_out: NDArray[np.intp]
    make_order: Callable[[], NDArray[np.intp]]
    rng: np.random.RandomState

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """A random order of the mixture; made on first use, as a draw does not need it."""
        return self.make_order()

    def draw(self, n_mixed: int, max_samples: int | None) -> NDArray[np.intp]:
        """Draw rows of the mixture to learn from; see `draw_rows`.

        They come in random order, so that nothing distinguishes held-out rows from the others.
        """
        if max_samples is None or max_samples >= n_mixed:
            return self.order
        return self.rng.permutation(draw_rows(n_mixed, max_samples, self.rng))


def count_held_out(n_normal: int, n_batch: int) -> int:
    """Return how many known-normal rows to hold out in each split."""
    return max(1, min(n_normal // _ONE_HELD_OUT_IN, _MOST_PER_ROW * n_batch))


def warn_if_too_few(n_batch: int, n_held_out: int, fdr: float, n_splits: int) -> None:
    """Warn that no row is flagged, if more held-out rows might change that."""
    least = least_to_flag(n_batch, n_held_out, fdr, n_splits)
    if least > 1:
        can = f"none or at least {least}" if least <= n_batch else "none"
        split = "" if n_splits == 1 else "each split at "
        warn_user(
            "no row is flagged, which may be for want of known-normal rows: with "
            f"{n_held_out} of them held out, {split}fdr={fdr:g} can flag {can} of {n_batch} rows; "
            "give more known-normal rows, a smaller batch or a higher fdr",
        )


# Learns from the rows of a split and scores its mixture, the batch and then the held-out rows; the
# scores are NumPy's or CuPy's.
ScoreSplit = Callable[[CalibrationSplit], NDArray[np.float64]]


class Calibration:
    """P-values and flags for the rows of a batch, by comparison with held-out normal rows.

    The fit of a split is made when it is first needed, once for all threads.

    Parameters
    ----------
    n_normal, n_batch : int
        Numbers of known-normal rows and of rows of the batch.
    seed : int
        Of the splits.
    score_split : callable
        Learns from a `CalibrationSplit` and returns the scores of its mixture.

    Attributes
    ----------
    n_held_out : int
        Known-normal rows held out in each split.
    """

    def __init__(self, n_normal: int, n_batch: int, seed: int, score_split: ScoreSplit) -> None:
        self.n_held_out = count_held_out(n_normal, n_batch)
        self._n_normal = n_normal
        self._n_batch = n_batch
        self._seed = seed
        self._score_split = score_split
        self._splits: list[_ComparedSplit] = []  # those made so far
        self._lock = OwnLock()

    def p_values(self, *, n_splits: int = 1) -> NDArray[np.float64]:
        """Compute a p-value for every row of the batch; see `QMS22.p_values`."""
        return merge_p_values(self.p_values_by_split(n_splits))

    def flag(self, fdr: float = 0.1, *, n_splits: int = 1) -> NDArray[np.bool_]:
        """Flag rows of the batch; see `QMS22.flag`, with ``method="split"``."""
        flagged = self.decide(fdr, n_splits)
        if not flagged.any():
            warn_if_too_few(self._n_batch, self.n_held_out, fdr, n_splits)
        return flagged

    def decide(self, fdr: float, n_splits: int = 1) -> NDArray[np.bool_]:
        """Flag rows of the batch without a warning."""
        check_share("fdr", fdr)
        return flag_rows(self.p_values_by_split(n_splits), self.n_held_out, fdr)

    def agreement(self, fdr: float = 0.1) -> NDArray[np.float64]:
        """Return the share of five splits that flag each row."""
        check_share("fdr", fdr)
        splits = self.p_values_by_split(_COMPARED_SPLITS)
        flagged = [flag_rows(split[None], self.n_held_out, fdr) for split in splits]
        share: NDArray[np.float64] = np.mean(flagged, axis=0)
        return share

    def beyond(self, rank: int = 1) -> RowsBeyond:
        """Return the rows that score higher than all but `rank` − 1 held-out rows."""
        check_count("rank", rank)
        share = rank / (self.n_held_out + 1)
        p_values = self.p_values_by_split(1)[0]
        return RowsBeyond(np.flatnonzero(p_values <= share * SLACK), self._n_batch * share)

    def least_to_flag(self, fdr: float, n_splits: int = 1) -> int:
        """Return how many rows a split flags at least, if it flags any."""
        return least_to_flag(self._n_batch, self.n_held_out, fdr, n_splits)

    def estimate_contamination(
        self, *, confidence: float = 0.95, n_splits: int = 1
    ) -> ContaminationEstimate:
        """Estimate the share of outliers in the batch; see `QMS22.estimate_contamination`."""
        check_share("confidence", confidence)
        p_values = self.p_values_by_split(n_splits, ties_at_random=True)
        return estimate_contamination(p_values, self.n_held_out, confidence)

    def bound_outliers(self, *, confidence: float = 0.95, n_splits: int = 1) -> OutlierBound:
        """Compute how many rows of the batch are outliers at least.

        Parameters
        ----------
        confidence : float, default=0.95
            Of the bound, in (0, 1).
        n_splits : int, default=1
            As in `p_values`.

        Returns
        -------
        OutlierBound
            A tuple (fewest, p_value).
        """
        check_share("confidence", confidence)
        p_values = self.p_values_by_split(n_splits, ties_at_random=True)
        ranks = cut_ranks(self.n_held_out)
        n_above = counts_by_split(p_values, self.n_held_out, ranks)
        return bound_outliers(n_above, self._n_batch, self.n_held_out, confidence, ranks)

    def p_values_by_split(
        self, n_splits: int, *, ties_at_random: bool = False
    ) -> NDArray[np.float64]:
        """Return the p-values of the first splits, of shape (n_splits, n_batch).

        Ties count against a row or are broken at random. The latter makes the p-values of normal
        rows uniform, but rows that are equal may get different ones.
        """
        check_count("n_splits", n_splits)
        with self._lock:
            while len(self._splits) < n_splits:
                self._splits.append(self._compare(number=len(self._splits)))
        splits = self._splits[:n_splits]
        return np.stack([s.random_p_values if ties_at_random else s.p_values for s in splits])

    def _compare(self, number: int) -> _ComparedSplit:
        """Make a split, and compare the batch with its held-out rows."""
        rng = np.random.RandomState((self._seed + number) % 2**32)
        is_held_out = choose_rows(self._n_normal, self.n_held_out, rng)
        learning_rng = np.random.RandomState(rng.randint(2**31 - 1))
        split = CalibrationSplit(
            np.flatnonzero(~is_held_out),
            np.flatnonzero(is_held_out),
            partial(_permutation, self._n_batch + self.n_held_out, rng.get_state()),
            learning_rng,
        )
        # Compared where they are: sorting millions of them takes a GPU no time.
        scores = self._score_split(split)
        p_values = conformal_p_values(scores[: self._n_batch], scores[self._n_batch :])
        return _ComparedSplit(as_host(p_values), as_host(scores), split)


def _permutation(n_rows: int, state: Any) -> NDArray[np.intp]:
    """Return a random order, the same for the same state of a generator."""
    rng = np.random.RandomState()
    rng.set_state(state)
    return rng.permutation(n_rows)


@dataclass(frozen=True, eq=False)
class _ComparedSplit:
    """The p-values of the rows of a batch in one split.

    Parameters
    ----------
    p_values : ndarray of shape (n_batch,)
        Ties count against a row.
    scores : ndarray of shape (n_batch + n_held_out,)
    split : CalibrationSplit
    """

    p_values: NDArray[np.float64]
    scores: NDArray[np.float64]
    split: CalibrationSplit

    @cached_property
    def random_p_values(self) -> NDArray[np.float64]:
        """The p-values with ties broken at random."""
        return random_p_values(self.scores, len(self.p_values), self.split.order)
