"""Decisions of a detector about its batch: p-values, flags, the share of outliers, a verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.validation import check_choice, check_count, check_share
from qms22._runtime.warn import warn_user
from qms22.estimators.batch_columns import BatchColumns
from qms22.estimators.calibration import Calibration, warn_if_too_few
from qms22.estimators.conformal import ContaminationEstimate, RowsBeyond
from qms22.estimators.full_conformal import FullCalibration
from qms22.estimators.moved_columns import MovedColumn
from qms22.estimators.verdict import Verdict, judge_batch, lost_columns, outlier_confidence


class CalibratedMixin:
    """The decisions of a detector that keeps a `Calibration` of its batch."""

    # The columns of the batch, to be compared with those of the known-normal rows.
    _columns: BatchColumns | None = None
    # What compares with all known-normal rows, where the detector and the number of rows allow it.
    _has_full = False
    _full: FullCalibration | None = None
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

    def flag(
        self, fdr: float = 0.1, *, method: str = "auto", n_splits: int = 1
    ) -> NDArray[np.bool_]:
        """Flag unlabeled rows with a bound on the expected share of false alarms.

        The expected share of normal rows among the flagged ones is at most `fdr`, for any data and
        any outliers, as long as the normal rows of the batch are drawn as the known-normal ones
        were. The bound holds on average over batches, not for each batch, and for rows that were
        not encoded by something that has learned from the known-normal rows alone; see `calibrate`.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate, in (0, 1).
        method : {"auto", "full", "split"}, default="auto"
            "full" holds out no row: each row of the batch in turn is taken for a known-normal one,
            and compared with all of these by trees, distances and covariance. It finds more
            outliers, needs fewer known-normal rows and depends little on chance. "split" holds out
            one known-normal row in three and compares scores of the detector itself. "auto" is
            "full" for `QMS22Ensemble` with up to 10,000 rows of T and the batch together and one
            split, else "split".
        n_splits : int, default=1
            With "split": how many times to hold out known-normal rows. One split finds most
            outliers. With five, merged by their e-values, the answer depends less on the split, and
            fewer outliers are found.

        Returns
        -------
        ndarray of bool of shape (n_unlabeled,)

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22Ensemble
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
        >>> S[:10] += 6
        >>> detector = QMS22Ensemble(random_state=0).fit(T, unlabeled=S)
        >>> np.flatnonzero(detector.flag(fdr=0.1)).tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        """
        check_count("n_splits", n_splits)
        check_share("fdr", fdr)
        full = self._full_if(method, n_splits)
        if full is not None:
            flagged = full.flag(fdr)
        else:
            calibration = self._calibrated()
            flagged = calibration.decide(fdr, n_splits)
        if flagged.any():
            if self._columns is not None:
                _warn_if_drifted(lost_columns(self._columns.moved))
        elif full is None:
            n_held_out = calibration.n_held_out
            warn_if_too_few(len(flagged), n_held_out, fdr, n_splits)
        elif why := full.why_none(fdr):
            warn_user(why)
        return flagged

    def agreement(self, fdr: float = 0.1, *, method: str = "auto") -> NDArray[np.float64]:
        """Compute how sure flags are: how often a row is flagged if chance decides otherwise.

        Parameters
        ----------
        fdr : float, default=0.1
            As of `flag`.
        method : {"auto", "full", "split"}, default="auto"
            As of `flag`. With "full" five separate parts of the trees flag rows, which costs no fit
            and is harder for them than for all trees together. With "split" it is five splits, each
            of which costs a fit on first use.

        Returns
        -------
        ndarray of shape (n_unlabeled,)
            The share of the five that flag each row.
        """
        full = self._full_if(method, n_splits=1)
        return (full or self._calibrated()).agreement(fdr)

    def beyond(self, rank: int = 1, *, method: str = "auto") -> RowsBeyond:
        """Return the rows that are more suspicious than nearly all known-normal rows.

        With few known-normal rows, or for a single outlier, no bound on the share of false alarms
        can be kept. Their expected number can: see `RowsBeyond`.

        Parameters
        ----------
        rank : int, default=1
            A row has to score higher than all but `rank` − 1 of the known-normal rows (of the
            held-out ones, with "split").
        method : {"auto", "full", "split"}, default="auto"
            As of `flag`.

        Returns
        -------
        RowsBeyond
            A tuple (rows, expected_false).

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22Ensemble
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
        >>> S[7] += 9
        >>> detector = QMS22Ensemble(random_state=0).fit(T, unlabeled=S)
        >>> rows, expected_false = detector.beyond()
        >>> rows.tolist(), round(expected_false, 2)
        ([7], 0.25)
        """
        full = self._full_if(method, n_splits=1)
        return (full or self._calibrated()).beyond(rank)

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
            extremes=() if columns is None else columns.extremes,
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

    def _full_if(self, method: str, n_splits: int) -> FullCalibration | None:
        """Return what compares with all known-normal rows, if that is the method to use."""
        check_choice("method", method, ("auto", "full", "split"))
        self._calibrated()
        if method == "split" or (method == "auto" and n_splits > 1):
            return None
        if method == "full" and n_splits > 1:
            raise ValueError("n_splits is for method='split'; method='full' holds out no row")
        if method == "full" and self._full is None:
            raise ValueError(
                "method='full' is for QMS22Ensemble with up to 10,000 known-normal and unlabeled "
                "rows together; choose method='split'"
            )
        return self._full

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
        warn_user(
            f"rows like the known-normal ones are missing in the batch ({lost[0].name}: "
            f"{lost[0].change}): it has drifted as a whole, so that most flags may be due to the "
            "drift, or more than a fifth of it are anomalies; see verdict()",
        )
