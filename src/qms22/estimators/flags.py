"""What a detector decides about its batch: p-values, flags, bounds on false alarms, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.arrays import as_host
from qms22._runtime.validation import check_share, check_top
from qms22._runtime.warn import warn_user
from qms22.decisions.comparison import Comparison
from qms22.decisions.curve import bound_false
from qms22.decisions.moved_columns import MOST_COMPARED, ColumnPair, MovedColumn, compare_columns
from qms22.decisions.ruler import Ruler, why_none
from qms22.decisions.verdict import Verdict, judge_batch, lost_columns, outlier_confidence


class FlagsMixin:
    """The decisions of a detector that has scored its known-normal rows and its batch alike."""

    _normal: Any  # LazyRows, or None where there is no batch
    _batch: Any
    _column_names: Callable[[], list[str]]
    unlabeled_scores_: NDArray[np.float64]

    def p_values(self) -> NDArray[np.float64]:
        """Compute a conformal p-value for every unlabeled row.

        It is one plus the number of known-normal rows that score as high or higher, divided by one
        plus the number of known-normal rows. These are scored as if the detector had not learned
        from them, so that a normal row takes every place among them with the same probability. The
        order of p-values is that of the scores.

        Returns
        -------
        ndarray of shape (n_unlabeled,)
        """
        return self._compared.p_values

    def flag(self, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Flag unlabeled rows with a bound on the expected share of false alarms.

        The expected share of normal rows among the flagged ones is at most `fdr`, as long as the
        normal rows of the batch are drawn as the known-normal ones were. The flagged rows are those
        with the highest scores. The bound holds on average over batches, not for each batch; the
        page "What is promised" of the documentation has the proof and its conditions.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate, in (0, 1).

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
        check_share("fdr", fdr)
        flagged = self._compared.flag(fdr)
        if not flagged.any():
            if why := why_none(len(flagged), self._compared.ruler.n_known, fdr):
                warn_user(why)
        elif lost := lost_columns(self._moved):
            warn_user(
                f"rows like the known-normal ones are missing in the batch ({lost[0].name}: "
                f"{lost[0].change}): it has drifted as a whole, so that most flags may be due to "
                "the drift, or more than a fifth of it are anomalies; see verdict()"
            )
        return flagged

    def false_at_most(
        self, k: int | None = None, *, confidence: float = 0.9
    ) -> int | NDArray[np.int64]:
        """Return how many of the k most suspicious rows are normal at most.

        The bounds for all k hold at once with the confidence asked for: look at the rows first, and
        choose k afterwards.

        Parameters
        ----------
        k : int, optional
            A number of rows, as of `top_k`. By default the bounds for all k are returned.
        confidence : float, default=0.9
            In (0, 1).

        Returns
        -------
        int, or ndarray of shape (n_unlabeled,)
            For k, or for k = 1, 2, ….

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22Ensemble
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
        >>> S[:10] += 6
        >>> detector = QMS22Ensemble(random_state=0).fit(T, unlabeled=S)
        >>> detector.false_at_most(10)
        1
        """
        counts = self._compared.counts
        if k is not None:
            check_top(k, len(self.unlabeled_scores_), "unlabeled rows")
        curve = bound_false(counts, confidence)
        if k is None:
            return curve.of_first(np.arange(1, curve.n_rows + 1))
        return int(curve.of_first(np.array([k]))[0])

    def verdict(self, *, confidence: float = 0.95) -> Verdict:
        """Decide whether the batch is fine, contains anomalies, or has drifted as a whole.

        The scores of the batch are compared with those of the known-normal rows, as in `flag`. This
        gives a test of the hypothesis that the batch is drawn as the known-normal rows were, and
        the number of outliers that there are at least. The columns of both are compared as well.
        A batch with anomalies still has its normal rows. It has drifted if normal rows are missing
        in some range of a column, or if more than a fifth of all rows are unlike the known-normal
        ones. Of large tables 20,000 rows are drawn to compare columns. `QMS22` compares
        columns only.

        Parameters
        ----------
        confidence : float, default=0.95
            If the batch is drawn as the known-normal rows were, it is found to be fine with at
            least this probability, in (0, 1).

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
        self._check_batch()
        bound = None if self._ruler is None else self._compared.bound(level)
        n_rows = len(self.unlabeled_scores_)
        return judge_batch(self._moved, n_rows, bound=bound, confidence=confidence)

    @property
    def _ruler(self) -> Ruler | None:
        """Scores of known-normal rows as if not learned from; None if that takes a fit."""
        return None

    @cached_property
    def _compared(self) -> Comparison:
        """The batch next to the known-normal rows."""
        self._check_batch()
        if self._ruler is None:
            raise ValueError(
                f"{type(self).__name__} ranks rows and has neither p-values nor flags; "
                "use QMS22Ensemble"
            )
        return Comparison.of(self._ruler, as_host(self.unlabeled_scores_))

    @cached_property
    def _moved(self) -> tuple[MovedColumn, ...]:
        """The columns of the batch, compared with those of the known-normal rows."""
        rng = np.random.RandomState(0)
        drawn = (as_host(rows.draw(MOST_COMPARED, rng)).T for rows in (self._normal, self._batch))
        columns = zip(self._column_names(), *drawn, strict=True)
        return compare_columns([ColumnPair(*column) for column in columns])

    def _check_batch(self) -> None:
        check_is_fitted(self)
        if self._batch is None:
            raise ValueError(
                "there is no batch to flag rows of: the detector was fitted without one or comes "
                "from a file; fit it with fit(X, unlabeled=batch)"
            )
