"""P-values and flags of a batch on the workers of a Dask cluster.

What is held out, learned and compared is what `qms22.estimators.calibration` describes: held-out
rows are drawn at random from all known-normal ones, and the rows to learn from are drawn at random
from the others and, in random order, from the mixture of the batch and the held-out rows. So the
bounds of `flag` and `p_values` hold here as well. Only positions and counts are kept on the client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.base import clone

from qms22._runtime.chunks import draw_rows
from qms22._runtime.threads import OwnLock
from qms22._runtime.validation import check_count, check_share
from qms22.cluster.dask_table import DaskTable, add_up
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.calibration import count_held_out, warn_if_too_few
from qms22.estimators.conformal import (
    ContaminationEstimate,
    estimate_from_counts,
    least_to_flag,
    level_of_split,
)
from qms22.estimators.conformal_counts import FlagLine, HeldOutRanks, e_value_line
from qms22.estimators.splits import check_not_held_out

# The client keeps the scores of the held-out rows, and workers count p-values in as many classes.
MOST_HELD_OUT = 1_000_000


@dataclass(frozen=True, eq=False)
class LazySplit:
    """The scores of one split.

    Parameters
    ----------
    scores : Array
        Of the rows of the batch, in the memory of the workers.
    ranks : HeldOutRanks
        Of the held-out rows.
    seed : int
        Breaks ties.
    """

    scores: da.Array
    ranks: HeldOutRanks
    seed: int

    def p_values(self) -> da.Array:
        """Return the p-values of the rows of the batch."""
        return self.scores.map_blocks(_p_values, delayed(self.ranks), meta=np.empty(0))

    def line(self, level: float) -> FlagLine:
        """Find the score above which rows are flagged."""
        shared = delayed(self.ranks)
        counts = add_up(
            [delayed(_count_p_values)(block, shared) for block in self.scores.to_delayed()]
        )
        return self.ranks.line(counts, len(self.scores), level)

    def count_above(self) -> NDArray[np.intp]:
        """Count the p-values above the cuts that contamination is estimated with."""
        shared = delayed(self.ranks)
        blocks = enumerate(self.scores.to_delayed())
        n_above: NDArray[np.intp] = add_up(
            [delayed(_count_above)(block, shared, [self.seed, number]) for number, block in blocks]
        )
        return n_above


class DaskCalibration:
    """P-values and flags for the rows of a batch, by comparison with held-out normal rows.

    Parameters
    ----------
    detector : BatchDetector
        Its parameters are used, not what it has learned.
    normal, batch : DaskTable
    groups : sequence of sequence of int
        The columns of features with several.
    seed : int
        Of the splits.

    Attributes
    ----------
    n_held_out : int
        Known-normal rows held out in each split, at most `MOST_HELD_OUT`.
    """

    def __init__(
        self,
        detector: BatchDetector,
        normal: DaskTable,
        batch: DaskTable,
        groups: Sequence[Sequence[int]],
        seed: int,
    ) -> None:
        self.n_held_out = min(count_held_out(normal.n_rows, batch.n_rows), MOST_HELD_OUT)
        self._detector = detector
        self._normal = normal
        self._batch = batch
        self._groups = groups
        self._seed = seed
        self._splits: list[LazySplit] = []
        self._lock = OwnLock()

    def p_values(self, *, n_splits: int = 1) -> da.Array:
        """Compute a p-value for every row of the batch, lazily."""
        p_values = [split.p_values() for split in self._first_splits(n_splits)]
        return p_values[0] if n_splits == 1 else da.minimum(2.0 * sum(p_values) / n_splits, 1.0)

    def flag(self, fdr: float = 0.1, *, n_splits: int = 1) -> da.Array:
        """Flag rows of the batch: the rows are counted now, the flags are lazy."""
        check_share("fdr", fdr)
        splits = self._first_splits(n_splits)
        level = level_of_split(fdr, n_splits)
        lines = [split.line(level) for split in splits]
        if n_splits == 1:
            is_none = not lines[0].n_flagged
            flagged = splits[0].scores > lines[0].above
        else:
            pairs = zip(splits, lines, strict=True)
            values = sum(da.where(split.scores > at.above, at.e_value, 0.0) for split, at in pairs)
            values = values / n_splits
            counts = add_up([delayed(_count_values)(block) for block in values.to_delayed()])
            line = e_value_line(counts, self._batch.n_rows, fdr)
            is_none = np.isinf(line)
            flagged = values >= line
        if is_none:
            warn_if_too_few(self._batch.n_rows, self.n_held_out, fdr, n_splits)
        return flagged

    def count_flagged(self, fdr: float) -> int:
        """Count the rows that one split flags."""
        return self._first_splits(1)[0].line(fdr).n_flagged

    def least_to_flag(self, fdr: float) -> int:
        """Return how many rows one split flags at least, if it flags any."""
        return least_to_flag(self._batch.n_rows, self.n_held_out, fdr)

    def estimate_contamination(
        self, *, confidence: float = 0.95, n_splits: int = 1
    ) -> ContaminationEstimate:
        """Estimate the share of outliers in the batch, from counts of p-values."""
        check_share("confidence", confidence)
        n_above = [split.count_above() for split in self._first_splits(n_splits)]
        return estimate_from_counts(
            np.stack(n_above, axis=1), self._batch.n_rows, self.n_held_out, confidence
        )

    def _first_splits(self, n_splits: int) -> list[LazySplit]:
        check_count("n_splits", n_splits)
        with self._lock:
            while len(self._splits) < n_splits:
                self._splits.append(self._make_split(number=len(self._splits)))
        return self._splits[:n_splits]

    def _make_split(self, number: int) -> LazySplit:
        """Hold out rows, learn from a draw of the others, and score."""
        rng = np.random.RandomState((self._seed + number) % 2**32)
        detector: BatchDetector = clone(self._detector).set_params(checkpoint=None, log=None)
        options = detector._check_parameters()
        held_out = draw_rows(self._normal.n_rows, self.n_held_out, rng)
        n_known = self._normal.n_rows - self.n_held_out
        check_not_held_out(detector, n_known, self.n_held_out)
        known, mixture = self._draw(held_out, detector._n_drawn, rng)
        detector._learn(known, mixture, rng, options, self._groups)
        # Every answer needs these scores, of eight bytes per row; rows are scored only once.
        scores = self._batch.scores(detector).persist()
        ranks = HeldOutRanks.of(self._normal.score_some(detector, held_out), rng)
        return LazySplit(scores, ranks, int(rng.randint(2**31 - 1)))

    def _draw(
        self, held_out: NDArray[np.int64], max_samples: int | None, rng: np.random.RandomState
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw rows that are not held out, and rows of the mixture of held-out ones and the batch.

        The order of the mixture is random, so that nothing distinguishes its rows.
        """
        n_batch = self._batch.n_rows
        drawn = draw_rows(self._normal.n_rows - len(held_out), max_samples, rng)
        known = other_positions(held_out, drawn)
        mixed = draw_rows(n_batch + len(held_out), max_samples, rng)
        mixed_in = held_out[mixed[mixed >= n_batch] - n_batch]
        # One pass over the normal rows for both.
        positions = np.concatenate([known, mixed_in])
        order = np.argsort(positions)
        normal = np.empty((len(positions), self._detector.n_features_in_))
        normal[order] = self._normal.take(positions[order])
        of_batch = self._batch.take(mixed[mixed < n_batch])
        mixture = np.concatenate([of_batch, normal[len(known) :]])
        return normal[: len(known)], rng.permutation(mixture)


def other_positions(left_out: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of some of the rows that are not left out.

    Parameters
    ----------
    left_out : ndarray of int
        In ascending order.
    which : ndarray of int
        0 is the first row that is not left out, 1 the second one, and so on.
    """
    n_others_before = left_out - np.arange(len(left_out))
    positions: NDArray[np.int64] = which + np.searchsorted(n_others_before, which, side="right")
    return positions


def _p_values(scores: NDArray[np.float64], ranks: HeldOutRanks) -> NDArray[np.float64]:
    return ranks.p_values(scores)


def _count_p_values(scores: NDArray[np.float64], ranks: HeldOutRanks) -> NDArray[np.int64]:
    return ranks.count_p_values(scores)


def _count_above(
    scores: NDArray[np.float64], ranks: HeldOutRanks, seed: list[int]
) -> NDArray[np.intp]:
    return ranks.count_above(scores, np.random.RandomState(seed))


def _count_values(values: NDArray[np.float64]) -> Counter[float]:
    different, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(different.tolist(), counts.tolist(), strict=True)))
