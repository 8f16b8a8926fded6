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
discovery rate control", 2025. https://arxiv.org/abs/2509.02517
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import as_host
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.progress import progress_bar
from qms22._runtime.threads import OwnLock
from qms22._runtime.validation import check_count, check_share
from qms22.estimators.conformal import (
    SLACK,
    RowsBeyond,
    benjamini_hochberg,
    conformal_p_values,
)
from qms22.estimators.e_values import closed_e_benjamini_hochberg, draw_line
from qms22.estimators.marks import NO_MARKS, Marks
from qms22.estimators.trials import (
    CovarianceTrials,
    DistanceTrials,
    FixedTrials,
    ForestTrials,
    Trials,
    TrialScores,
)

# With more rows of T and the batch together rows are held out instead: enough of them are left.
MOST_ROWS = 10_000

# Trees: as many as there are values of them in memory, between the two limits. The fewer trees, the
# more the trials of similar rows differ, and the fewer rows are flagged.
_VALUES_OF_TREES = 12_000_000
_FEWEST_TREES, _MOST_TREES = 600, 4000

# Weights of forest, distances, covariance and, where there is one, oddness in the scores to choose
# from.
_CHOICES = (
    (2.0, 1.0, 0.0),
    (2.0, 1.0, 1.0),
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 0.0, 1.0),
    (0.0, 0.0, 0.0, 1.0),
    (2.0, 1.0, 0.0, 2.0),
)

_DISTANCES = 3  # the choice that is distances alone
_ODDNESS = 3  # the view of the oddness of cells, if there is one

# The share of known-normal rows in the tail of the scores, where they are taken as exponential.
_TAIL = 0.1

# Rows that are flagged at so many times the level by scores without a trial get one.
_GENEROUS = 2.0

# Scores held in memory at a time.
_SCORES_AT_ONCE = 4_000_000

# With fewer scores in all trials no progress bar is shown.
_SCORES_WITHOUT_BAR = 1_500_000

# Rows that are named where none is flagged.
_ROWS_NAMED = 6

# Parts of the trees that are asked separately how sure a flag is.
_PARTS = 5


# Of known-normal rows and the row on trial, and of rows of the batch.
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


class FullCalibration:
    """Decisions about a batch in which every known-normal row teaches and is compared with.

    The trees are grown on first use.

    Parameters
    ----------
    normal, batch : LazyRows
        Encoded by something that treats the rows of both alike.
    groups : sequence of sequence of int
        Columns of features with several.
    seed : int
    marks : Marks
        Rows someone has looked at. They teach, and are not compared with.
    odd : tuple of ndarray, optional
        How odd the cells of known-normal rows and of the batch are, by a rule that treats both
        alike.
    n_threads : int
        Does not change the result.
    verbose : int
        Above 0 a progress bar is shown where many rows come into question.
    """

    def __init__(
        self,
        normal: LazyRows,
        batch: LazyRows,
        groups: Sequence[Sequence[int]] = (),
        *,
        seed: int = 0,
        marks: Marks = NO_MARKS,
        odd: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        n_threads: int = 1,
        verbose: int = 0,
    ) -> None:
        self._odd = odd
        self.n_normal, self.n_batch = len(normal), len(batch)
        self._tables = (normal, batch)
        self._groups = groups
        self._seed = seed
        self._marks = marks
        self._n_threads = n_threads
        self._verbose = verbose
        self._found: dict[float, NDArray[np.float64]] = {}
        self._lock = OwnLock()

    @cached_property
    def _views(self) -> tuple[ForestTrials, Trials, *tuple[Trials, ...]]:
        """What scores rows in trials."""
        normal, batch = (as_host(table.read(slice(None))) for table in self._tables)
        rng = np.random.RandomState(self._seed)
        n_trees = _VALUES_OF_TREES // (len(normal) + len(batch))
        forest = ForestTrials(
            normal,
            batch,
            self._marks,
            min(max(n_trees, _FEWEST_TREES), _MOST_TREES),
            rng,
            self._n_threads,
        )
        distances = DistanceTrials(normal, batch, self._groups, rng)
        covariance = CovarianceTrials(normal, batch)
        if self._odd is None:
            return forest, distances, covariance
        return forest, distances, covariance, FixedTrials(*self._odd)

    def least_to_flag(self, fdr: float) -> int:
        """Return the smallest number of rows above 0 that can be flagged.

        No e-value exceeds n + 1, so that fewer rows never have enough evidence.
        """
        return math.ceil(self.n_batch / (fdr * (self.n_normal + 1) * SLACK))

    def flag(self, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Flag rows so that the expected share of normal ones among them is at most `fdr`."""
        return closed_e_benjamini_hochberg(self.e_values(fdr), fdr)

    def e_values(self, fdr: float = 0.1) -> NDArray[np.float64]:
        """Compute the e-values of all rows of the batch, for flags at a level."""
        check_share("fdr", fdr)
        with self._lock:
            if fdr not in self._found:
                self._found[fdr] = self._e_values(self._views, fdr)
            return self._found[fdr]

    def agreement(self, fdr: float = 0.1) -> NDArray[np.float64]:
        """Return the share of five separate parts of the trees that flag each row."""
        check_share("fdr", fdr)
        forest, *others = self._views
        flagged = []
        for number in range(_PARTS):
            values = self._e_values((forest.part(number, _PARTS), *others), fdr)
            flagged.append(closed_e_benjamini_hochberg(values, fdr))
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
        rows = np.flatnonzero((self._untried(self._views) <= most).any(axis=0))
        is_beyond = np.zeros(self.n_batch, dtype=bool)
        for row, scores in self._trials(self._views, rows):
            known = choose_for_few(scores, rank, self.n_batch * share)
            is_beyond[row] = np.count_nonzero(known >= known[-1]) <= rank
        return RowsBeyond(np.flatnonzero(is_beyond), self.n_batch * share)

    def why_none(self, fdr: float, name: Callable[[int], str] = str) -> str | None:
        """Say why no row is flagged, if more known-normal rows may help, and what holds instead.

        `name` returns the name of a row of the batch.
        """
        least = self.least_to_flag(fdr)
        if least <= 1:
            return None
        rows, expected_false = self.beyond()
        if not len(rows):
            return None
        named = [*map(name, rows[:_ROWS_NAMED].tolist()), *["…"] * (len(rows) > _ROWS_NAMED)]
        names = ", ".join(named)
        can = f"at least {least} of {self.n_batch} rows or none"
        if least > self.n_batch:
            can = f"none of {self.n_batch} rows"
        row, are = ("row", "is") if len(rows) == 1 else ("rows", "are")
        # So many would be enough to flag these rows alone.
        enough = math.ceil(self.n_batch / (fdr * len(rows) * SLACK)) - 1
        more = f"at least {enough}" if enough > self.n_normal else "more"
        return (
            f"no row is flagged: with {self.n_normal} known-normal rows a false discovery rate of "
            f"{fdr:g} can flag {can}; look at {row} {names}, which {are} more suspicious than all "
            f"known-normal ones (by chance at most {expected_false:.2g}), or give {more} "
            "known-normal rows"
        )

    def is_quick(self, fdr: float) -> bool:
        """Whether few rows come into question, so that `agreement` takes a few seconds at most."""
        n_tried = len(self._in_question(self._views, fdr))
        return n_tried * (self.n_normal + self.n_batch) <= _SCORES_WITHOUT_BAR

    def _in_question(self, views: Sequence[Trials], level: float) -> NDArray[np.intp]:
        """Return the rows that scores without a trial flag at twice the level."""
        flagged = [benjamini_hochberg(p, _GENEROUS * level) for p in self._untried(views)]
        return np.flatnonzero(np.any(flagged, axis=0))

    def _e_values(self, views: Sequence[Trials], level: float) -> NDArray[np.float64]:
        values = np.zeros(self.n_batch)
        # An e-value may always be replaced by 0, so that only rows in question get a trial.
        for row, scores in self._trials(views, self._in_question(views, level)):
            lines = [draw_line(*of_choice, level, self.n_batch) for of_choice in scores]
            # The choice depends on how many of the other rows are found, not on the row on trial.
            values[row] = max(lines, key=lambda line: line.n_found).e_value
        return values

    def _untried(self, views: Sequence[Trials]) -> NDArray[np.float64]:
        """Return about the p-values of the rows of the batch, (n_choices, n_batch)."""
        scaled = []
        for view in views:
            known, batch = view.untried()
            scaled.append(on_common_scale(TrialScores(known[:, None], batch[:, None])))
        return np.array([conformal_p_values(batch, known) for known, batch in _combined(scaled, 0)])

    def _trials(
        self, views: Sequence[Trials], rows: NDArray[np.intp]
    ) -> Iterator[tuple[int, list[Scores]]]:
        """Yield rows, and for each choice the scores of known-normal rows and of other ones."""
        size = max(1, _SCORES_AT_ONCE // (self.n_normal + self.n_batch))
        is_long = len(rows) * (self.n_normal + self.n_batch) > _SCORES_WITHOUT_BAR
        with progress_bar("comparing", len(rows), enabled=self._verbose > 0 and is_long) as show:
            for first in range(0, len(rows), size):
                part = rows[first : first + size]
                scaled = [on_common_scale(view.scores(part)) for view in views]
                for trial, row in enumerate(part.tolist()):
                    scores = _combined(scaled, trial)
                    yield row, [(known, np.delete(batch, row)) for known, batch in scores]
                show(first + len(part), "rows")


def _largest(views: Sequence[TrialScores], trial: int) -> Scores:
    """Return the largest of the scores of a trial: a row may be odd in one view alone."""
    known = np.max([view.known[:, trial] for view in views], axis=0)
    return known, np.max([view.batch[:, trial] for view in views], axis=0)


def _combined(views: Sequence[TrialScores], trial: int) -> Iterator[Scores]:
    """Yield the sums of the scores of one trial for each of the choices of weights.

    With the oddness of cells, their largest is one more choice.
    """
    for weights in (each for each in _CHOICES if len(each) <= len(views)):
        weighted = [(w, view) for w, view in zip(weights, views, strict=False) if w > 0]
        known = sum(w * view.known[:, trial] for w, view in weighted)
        batch = sum(w * view.batch[:, trial] for w, view in weighted)
        yield np.asarray(known), np.asarray(batch)
    if len(views) > _ODDNESS:
        yield _largest(views, trial)


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


def choose_for_few(scores: Sequence[Scores], rank: int, expected: float) -> NDArray[np.float64]:
    """Return the scores of known-normal rows by which the most other rows are beyond them.

    Unless these are many more than expected by chance, distances decide: they see a single row.

    Parameters
    ----------
    scores : sequence of Scores
        For each of the choices.
    rank : int
        A row is beyond if fewer than this many known-normal rows are as high.
    expected : float
        How many normal rows are beyond on average.
    """
    if rank >= len(scores[0][0]):
        return scores[_DISTANCES][0]
    # All known-normal rows and the one on trial are treated alike.
    n_beyond = [
        np.count_nonzero(others > np.partition(known, -1 - rank)[-1 - rank])
        for known, others in scores
    ]
    best = int(np.argmax(n_beyond))
    return scores[best if n_beyond[best] > 3 * (1 + expected) else _DISTANCES][0]
