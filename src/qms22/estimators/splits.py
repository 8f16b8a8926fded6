"""A detector fitted on the rows of a calibration split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from qms22._runtime.lazy_rows import LazyRows, SelectedRows, StackedRows
from qms22.estimators.calibration import CalibrationSplit
from qms22.estimators.marks import NO_MARKS, Marks


@dataclass(frozen=True, eq=False)
class Splits:
    """The rows that calibrate a detector, and an unfitted clone of it.

    A reference to the fitted detector, which holds this object, would keep the rows in memory until
    the garbage collector runs.
    """

    unfitted: Any
    normal: LazyRows
    batch: LazyRows
    groups: Sequence[Sequence[int]]
    marks: Marks

    def score(self, split: CalibrationSplit) -> NDArray[np.float64]:
        """Learn from the rows of a split and score its mixture."""
        known = SelectedRows(self.normal, split.known)
        held_out = SelectedRows(self.normal, split.held_out)
        mixture = StackedRows(self.batch, held_out)
        return score_mixture(self.unfitted, known, mixture, split, self.groups, self.marks)


def score_mixture(
    detector: Any,
    known: LazyRows,
    mixture: LazyRows,
    split: CalibrationSplit,
    groups: Sequence[Sequence[int]] = (),
    marks: Marks = NO_MARKS,
) -> NDArray[np.float64]:
    """Fit a clone of a detector on the rows of a split, and score its mixture.

    Parameters
    ----------
    detector : BatchDetector
        Its parameters are used, not what it has learned.
    known : LazyRows
        The known-normal rows to learn from.
    mixture : LazyRows
        The rows of the batch, then the held-out ones.
    split : CalibrationSplit
    groups : sequence of sequence of int
        Columns of features with several.
    marks : Marks
        Rows someone has looked at, outside of the mixture. They are the same in every split, and
        nothing learned from them depends on which rows of the mixture are held out.

    Returns
    -------
    ndarray of NumPy or, if the detector is on a GPU, of CuPy
    """
    fresh = clone(detector).set_params(checkpoint=None, log=None)
    options = fresh._check_parameters()
    check_not_held_out(fresh, len(known), len(split.held_out))
    normal = known.draw(fresh._n_drawn, split.rng)
    batch = mixture.read(split.draw(len(mixture), fresh._n_drawn))
    fresh._learn(normal, batch, split.rng, options, groups, marks)
    scores: NDArray[np.float64] = fresh._scores_on(options.device, mixture)
    return scores


def check_not_held_out(detector: Any, n_known: int, n_held_out: int) -> None:
    """Raise ValueError if the rows that are not held out are too few to learn from."""
    try:
        detector._check_drawn(n_known)
    except ValueError as error:
        raise ValueError(
            f"of {n_known + n_held_out} known-normal rows {n_held_out} are held out to compare the "
            "batch with, which leaves too few to learn from; give more of them"
        ) from error
