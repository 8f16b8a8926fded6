"""Flags that spend no known-normal row: full-conformal e-values.

In the trial of a row of the batch (see `qms22.estimators.trials`) the row and the n known-normal
ones are exchangeable if the row is normal. A line is drawn through their scores by a rule that
treats them alike. If k of the n + 1 rows are beyond it, the row on trial gets the e-value
(n + 1) / k if it is one of them, and else 0. The expected value is at most 1 for a normal row:
each of the n + 1 rows is equally likely to be the one on trial. Averages of e-values over any set
of normal rows have an expectation of at most 1 as well, for any dependence between them, and this
is all that `closed_e_benjamini_hochberg` needs.

References
----------
J. Lee, I. Popov, Z. Ren, "Full-conformal novelty detection: A powerful and non-random approach",
2025. https://arxiv.org/abs/2501.02703

Z. Xu, A. Solari, L. Fischer, R. de Heide, A. Ramdas, J. Goeman, "Bringing closure to false
discovery rate control", 2025. https://arxiv.org/abs/2504.11759
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.validation import check_count, check_share
from qms22.estimators.conformal import SLACK, benjamini_hochberg, conformal_p_values
from qms22.estimators.trials import (
    CovarianceTrials,
    DistanceTrials,
    ForestTrials,
    Trials,
    TrialScores,
)

# With more rows of T and the batch together rows are held out instead: enough of them are left.
MOST_ROWS = 20_000

# Trees: as many as there are values of them in memory, between the two limits. The fewer trees, the
# more the trials of similar rows differ, and the fewer rows are flagged.
_VALUES_OF_TREES = 12_000_000
_FEWEST_TREES, _MOST_TREES = 600, 4000

# Weights of forest, distances and covariance in the scores to choose from.
_CHOICES = ((2.0, 1.0, 0.0), (2.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

# The share of known-normal rows in the tail of the scores, where they are taken as exponential.
_TAIL = 0.1

# Rows to find in a trial beyond those needed, in standard deviations of a count.
_MARGIN = 1.0

# Rows that are flagged at so many times the level by scores without a trial get one.
_GENEROUS = 2.0

# Scores held in memory at a time.
_SCORES_AT_ONCE = 4_000_000

# Parts of the trees that are asked separately how sure a flag is.
_PARTS = 5


class RowsBeyond(NamedTuple):
    """Rows of the batch that are more suspicious than nearly all known-normal rows.

    Parameters
    ----------
    rows : ndarray of int
        Positions in the batch.
    expected_false : float
        So many normal rows are expected among them at most, on average over batches.
    """

    rows: NDArray[np.intp]
    expected_false: float


class FullCalibration:
    """Decisions about a batch in which every known-normal row teaches and is compared with.

    Parameters
    ----------
    normal, batch : ndarray of shape (n, p)
        Encoded by something that treats the rows of both alike.
    groups : sequence of sequence of int
        Columns of features with several.
    seed : int
    outliers, teachers : ndarray of shape (n, p), optional
        Rows known to be outliers, and known-normal rows that must not be compared with.
    n_threads : int
        Does not change the result.
    """

    def __init__(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        groups: Sequence[Sequence[int]] = (),
        *,
        seed: int = 0,
        outliers: NDArray[np.float64] | None = None,
        teachers: NDArray[np.float64] | None = None,
        n_threads: int = 1,
    ) -> None:
        self.n_normal, self.n_batch = len(normal), len(batch)
        none = normal[:0]
        n_rows = len(normal) + len(batch)
        rng = np.random.RandomState(seed)
        self._forest = ForestTrials(
            normal,
            batch,
            none if outliers is None else outliers,
            none if teachers is None else teachers,
            min(max(_VALUES_OF_TREES // n_rows, _FEWEST_TREES), _MOST_TREES),
            rng,
            n_threads,
        )
        self._others: tuple[Trials, Trials] = (
            DistanceTrials(normal, batch, groups, rng),
            CovarianceTrials(normal, batch),
        )
        self._found: dict[float, NDArray[np.float64]] = {}

    def flag(self, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Flag rows so that the expected share of normal ones among them is at most `fdr`."""
        return closed_e_benjamini_hochberg(self.e_values(fdr), fdr)

    def e_values(self, fdr: float = 0.1) -> NDArray[np.float64]:
        """Compute the e-values of all rows of the batch, for flags at a level."""
        check_share("fdr", fdr)
        if fdr not in self._found:
            self._found[fdr] = self._e_values(self._forest, fdr)
        return self._found[fdr]

    def agreement(self, fdr: float = 0.1) -> NDArray[np.float64]:
        """Return the share of five separate parts of the trees that flag each row."""
        flagged = [
            closed_e_benjamini_hochberg(self._e_values(self._forest.part(i, _PARTS), fdr), fdr)
            for i in range(_PARTS)
        ]
        share: NDArray[np.float64] = np.mean(flagged, axis=0)
        return share

    def beyond(self, rank: int = 1) -> RowsBeyond:
        """Return the rows that score higher than all but `rank` − 1 known-normal rows.

        In its trial a normal row is among the first `rank` of n + 1 rows with a probability of
        rank / (n + 1). So the expected number of normal rows among the result is at most that
        times the size of the batch.
        """
        check_count("rank", rank)
        share = rank / (self.n_normal + 1)
        # A few more than scores without a trial say: in its trial a row may rank higher.
        most = 2 * (rank + 2) / (self.n_normal + 1)
        rows = np.flatnonzero((self._untried(self._forest) <= most).any(axis=0))
        is_beyond = np.zeros(self.n_batch, dtype=bool)
        for row, scores in self._trials(self._forest, rows):
            known, _ = scores[0]
            is_beyond[row] = np.count_nonzero(known >= known[-1]) <= rank
        return RowsBeyond(np.flatnonzero(is_beyond), self.n_batch * share)

    def _e_values(self, forest: ForestTrials, level: float) -> NDArray[np.float64]:
        values = np.zeros(self.n_batch)
        # An e-value may always be replaced by 0. So trials are made for rows only that come into
        # question: by scores without a trial, at twice the level.
        flagged = [benjamini_hochberg(p, _GENEROUS * level) for p in self._untried(forest)]
        for row, scores in self._trials(forest, np.flatnonzero(np.any(flagged, axis=0))):
            lines = [draw_line(*of_choice, level, self.n_batch) for of_choice in scores]
            # The choice depends on how many of the other rows are found, not on the row on trial.
            values[row] = max(lines, key=lambda line: line.n_found).e_value
        return values

    def _untried(self, forest: ForestTrials) -> NDArray[np.float64]:
        """Return about the p-values of the rows of the batch, (n_choices, n_batch)."""
        views = []
        for view in (forest, *self._others):
            known, batch = view.untried()
            views.append(on_common_scale(TrialScores(known[:, None], batch[:, None])))
        return np.array([conformal_p_values(batch, known) for known, batch in _combined(views, 0)])

    def _trials(
        self, forest: ForestTrials, rows: NDArray[np.intp]
    ) -> Iterator[tuple[int, list[tuple[NDArray[np.float64], NDArray[np.float64]]]]]:
        """Yield rows, and for each choice the scores of known-normal rows and other ones."""
        size = max(1, _SCORES_AT_ONCE // (self.n_normal + self.n_batch))
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            views = [on_common_scale(view.scores(part)) for view in (forest, *self._others)]
            for trial, row in enumerate(part.tolist()):
                yield (
                    row,
                    [(known, np.delete(batch, row)) for known, batch in _combined(views, trial)],
                )


def _combined(
    views: Sequence[TrialScores], trial: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the sums of the scores of one trial for each of the choices of weights."""
    for weights in _CHOICES:
        weighted = [(w, view) for w, view in zip(weights, views, strict=True) if w > 0]
        known = sum(w * view.known[:, trial] for w, view in weighted)
        batch = sum(w * view.batch[:, trial] for w, view in weighted)
        yield np.asarray(known), np.asarray(batch)


def on_common_scale(scores: TrialScores) -> TrialScores:
    """Convert scores to −log p, with p the share of the known-normal rows that are higher.

    Beyond nine tenths of them the tail is taken as exponential, with the median that it has, so
    that a row far beyond all others counts for more than one just beyond them.
    """
    known, batch = np.empty_like(scores.known), np.empty_like(scores.batch)
    n_known = len(known)
    n_tail = math.ceil(_TAIL * n_known)
    for trial, of_trial in enumerate(scores.known.T):
        ascending = np.sort(of_trial)
        line = ascending[-1 - n_tail] if n_tail < n_known else ascending[0]
        middle = float(np.median(ascending[-n_tail:])) - line
        unit = middle / math.log(2.0) or float(of_trial.std()) or 1.0
        for values, scaled in (
            (of_trial, known[:, trial]),
            (scores.batch[:, trial], batch[:, trial]),
        ):
            n_lower = np.searchsorted(ascending, values, side="left")
            n_not_higher = np.searchsorted(ascending, values, side="right")
            p_values = (1 + 2 * n_known - n_lower - n_not_higher) / (2 * n_known + 2)
            highest = math.log(n_known / n_tail)
            scaled[:] = np.minimum(-np.log(p_values), highest)
            beyond = values > line
            scaled[beyond] = highest + (values[beyond] - line) / unit
    return TrialScores(known, batch)


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
    # Trials differ by about a standard deviation of a count, which matters from the second on.
    needed += np.where(n_beyond > 1, _MARGIN * np.sqrt(needed), 0.0)
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
