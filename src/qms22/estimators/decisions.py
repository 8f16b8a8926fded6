"""Decisions of a detector about its batch: p-values, flags, the share of outliers, a verdict."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from qms22.estimators.batch_columns import BatchColumns
from qms22.estimators.calibration import Calibration
from qms22.estimators.conformal import ContaminationEstimate
from qms22.estimators.moved_columns import MovedColumn
from qms22.estimators.verdict import Verdict, judge_batch, lost_columns, outlier_confidence


class CalibratedMixin:
    """The decisions of a detector that keeps a `Calibration` of its batch."""

    # The columns of the batch, to be compared with those of the known-normal rows.
    _columns: BatchColumns | None = None
    unlabeled_scores_: NDArray[np.float64]

    def p_values(self, *, n_splits: int = 1) -> NDArray[np.float64]:
        """Compute a conformal p-value for every unlabeled row.

        The p-value of a normal row is at most u with probability at most u, for any data. One
        known-normal row in three is held out and mixed into the batch, and the detector is fitted
        again. The p-value is one plus the number of held-out rows that score as high or higher,
        divided by one plus the number of held-out rows.

        Parameters
        ----------
        n_splits : int, default=1
            How many times to hold out rows, other ones each time. Several p-values of a row are
            merged by twice their mean. Every split costs one fit, made on first use.

        Returns
        -------
        ndarray of shape (n_unlabeled,)
        """
        return self._calibrated().p_values(n_splits=n_splits)

    def flag(self, fdr: float = 0.1, *, n_splits: int = 1) -> NDArray[np.bool_]:
        """Flag unlabeled rows with a bound on the expected share of false alarms.

        The expected share of normal rows among the flagged ones is at most `fdr`, for any data and
        any outliers, as long as the normal rows of the batch are drawn as the known-normal ones
        were. The bound holds on average over batches, not for each batch, and for rows that were
        not encoded by something that has learned from the held-out rows; see `calibrate`.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate, in (0, 1).
        n_splits : int, default=1
            How many times to hold out known-normal rows. One split finds most outliers. With
            five, merged by their e-values, the answer depends less on the split, and fewer
            outliers are found.

        Returns
        -------
        ndarray of bool of shape (n_unlabeled,)

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
        >>> S[:10] += 6
        >>> detector = QMS22(random_state=0).fit(T, unlabeled=S)
        >>> np.flatnonzero(detector.flag(fdr=0.1)).tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        """
        flagged = self._calibrated().flag(fdr, n_splits=n_splits)
        if flagged.any() and self._columns is not None:
            _warn_if_drifted(lost_columns(self._columns.moved))
        return flagged

    def verdict(self, *, confidence: float = 0.95, n_splits: int = 1) -> Verdict:
        """Decide whether the batch is fine, contains anomalies, or has drifted as a whole.

        The scores of the batch are compared with those of held-out rows, as in `flag`. This gives a
        test of the hypothesis that the batch is drawn as the known-normal rows were, and the number
        of outliers that there are at least, for any data. The columns of both are compared as well.
        A batch with anomalies still has its normal rows. It has drifted if normal rows are missing
        in some range of a column, or if more than a fifth of all rows are unlike the known-normal
        ones. Of large tables 20,000 rows are drawn to compare columns.

        Parameters
        ----------
        confidence : float, default=0.95
            If the batch is drawn as the known-normal rows were, it is found to be fine with at
            least this probability, in (0, 1).
        n_splits : int, default=1
            As in `p_values`.

        Returns
        -------
        Verdict
            Its text is a sentence about the batch.

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(600, 3)), rng.normal(size=(200, 3))
        >>> S[:, 1] += 1
        >>> verdict = QMS22(random_state=0).fit(T, unlabeled=S).verdict()
        >>> verdict.decision, verdict.moved[0].name
        ('drift', 'x1')
        """
        level = outlier_confidence(confidence)
        bound = self._calibrated().bound_outliers(confidence=level, n_splits=n_splits)
        columns = self._columns
        return judge_batch(
            () if columns is None else columns.moved,
            len(self.unlabeled_scores_),
            bound=bound,
            extremes=None if columns is None else columns.extremes,
            confidence=confidence,
        )

    def estimate_contamination(
        self, *, confidence: float = 0.95, n_splits: int = 1
    ) -> ContaminationEstimate:
        """Estimate the share of outliers in the batch.

        Parameters
        ----------
        confidence : float, default=0.95
            Of the interval, in (0, 1).
        n_splits : int, default=1
            As in `p_values`.

        Returns
        -------
        ContaminationEstimate
            A tuple (share, low, high).
        """
        return self._calibrated().estimate_contamination(confidence=confidence, n_splits=n_splits)

    def _calibrated(self) -> Calibration:
        check_is_fitted(self)
        calibration: Calibration | None = getattr(self, "_calibration", None)
        if calibration is None:
            raise ValueError(
                "there is no batch to flag rows of: the detector was fitted without one or comes "
                "from a file; fit it with fit(X, unlabeled=batch)"
            )
        return calibration


def _warn_if_drifted(lost: Sequence[MovedColumn]) -> None:
    """Warn that flags may be due to a drift of the whole batch."""
    if lost:
        warnings.warn(
            f"rows like the known-normal ones are missing in the batch ({lost[0].name}: "
            f"{lost[0].change}): it has drifted as a whole, so that most flags may be due to the "
            "drift, or more than a fifth of it are anomalies; see verdict()",
            stacklevel=3,
        )
