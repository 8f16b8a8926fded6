"""Decisions of a detector about its batch: p-values, flags, the share of outliers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from qms22.estimators.calibration import Calibration
from qms22.estimators.conformal import ContaminationEstimate


class CalibratedMixin:
    """The decisions of a detector that keeps a `Calibration` of its batch."""

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
        return self._calibrated().flag(fdr, n_splits=n_splits)

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
