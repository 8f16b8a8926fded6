"""BatchDetector: the common base of detectors that search a batch."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qms22._cpm.fit_log import FitReporting
from qms22._cpm.solver_options import SolverOptions
from qms22._runtime.arrays import as_host
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import (
    check_count,
    check_path,
    check_rows,
    check_seed,
    check_top,
    is_count,
    is_number,
)
from qms22._runtime.warn import warn_user
from qms22.decisions.ruler import highest_flagged_rank, least_to_flag
from qms22.estimators.base import COMPUTED, ROWS_OF_FIT, QMSEstimator
from qms22.estimators.explain import Explanation, Groups, TypicalValues, explain_rows, group_columns
from qms22.estimators.flags import FlagsMixin
from qms22.estimators.marks import Marks

# contamination="auto" flags as many rows as this false discovery rate does. Where known-normal rows
# are so few that it could only flag more than this share of the batch at once, or where they are
# not scored like the batch, Tukey's rule sets the threshold. Without a batch, this share of the
# known-normal rows is beyond the threshold.
AUTO_FDR = 0.1
AUTO_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class FitInputs:
    """What a detector learns from."""

    normal: NDArray[np.float64]
    batch: NDArray[np.float64]
    rng: np.random.RandomState
    options: SolverOptions
    groups: Sequence[Sequence[int]]  # the columns of features with several
    marks: Marks  # the rows someone has looked at
    is_later: bool  # whether the batch is of another time
    mostly_normal: bool  # whether at most a fifth of the batch are outliers


class BatchDetector(FlagsMixin, OutlierMixin, QMSEstimator):  # type: ignore[misc]
    """A detector that learns from known-normal rows and from the batch it searches.

    A subclass implements `_least_normal`, `_learn` and `_scorer`.
    """

    max_samples: Any
    checkpoint: str | PathLike[str] | None
    log: str | PathLike[str] | None

    _groups: Groups | None
    _normal: LazyRows | None
    _batch: LazyRows | None

    def fit(
        self,
        X: ArrayLike | LazyRows,
        y: object = None,
        *,
        unlabeled: ArrayLike | None = None,
        outliers: ArrayLike | None = None,
        marked_normal: ArrayLike | None = None,
        groups: Groups | None = None,
        is_later: bool = False,
        mostly_normal: bool = False,
    ) -> Self:
        """Learn what distinguishes the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            T: known-normal rows. `QMS22` needs at least `n_members` − 1 of them, `QMS22Ensemble` as
            many in addition to those it holds out.
        y : Ignored
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            S: the batch to search, mostly normal. Without it T takes its place, with a warning:
            the result is a weak novelty detector.
        outliers : array-like of shape (n_outliers, n_features), optional
            L: rows that someone has looked at and found to be outliers, of this batch or of earlier
            ones. Rows like them become more suspicious. Take them out of `unlabeled`.
        marked_normal : array-like of shape (n_marked, n_features), optional
            Rows that someone has looked at and found to be normal. Rows like them become less
            suspicious. Take them out of `unlabeled`, and do not add them to `X`: `flag` compares
            the batch with rows of `X` as a random draw from the normal rows, and rows that were
            looked at because they are suspicious are no such draw.
        groups : mapping of str to sequence of int, or sequence of sequence of int, optional
            Columns that are one feature, such as the one-hot columns of one category (a
            `TabularEncoder` has them in `groups_`). They count as one in distances, and `explain`
            changes them together.
        is_later : bool, default=False
            Whether the batch is of another time than `X`. All of its rows may have moved then: that
            more of them are suspicious in a view of `QMS22Ensemble` than chance would give says
            nothing, and does not add to the weight of the view.
        mostly_normal : bool, default=False
            Whether at most a fifth of the batch are outliers, as in everyday tables. If a view of
            `QMS22Ensemble` finds more of it suspicious, the batch has moved as a whole: what it has
            learned from the batch says nothing about single rows, and gets no weight.

        Returns
        -------
        self
            The fitted detector.

        Notes
        -----
        The promise of `flag` is proved for marks that neither the batch nor `X` had a part in, such
        as those of an earlier batch that was searched with other known-normal rows. Where rows were
        looked at because they are suspicious next to the same `X`, in an earlier batch or in this
        one, it is only checked, by simulation (``benchmarks/marks_promise.py``).
        """
        options = self._check_parameters()
        normal = LazyRows.of(self, X, reset=True)
        self._check_drawn(len(normal))
        marks = Marks.of(self, outliers, marked_normal, has_batch=unlabeled is not None)
        if unlabeled is None:
            warn_user(
                "no unlabeled rows were given, so the known-normal rows stand in for them: this is "
                "a weak novelty detector; pass the batch to search as fit(X, unlabeled=batch)"
            )
            batch = normal
        else:
            batch = LazyRows.of(self, unlabeled, name="unlabeled")
        n_flagged = count_flagged(self.contamination, len(batch))
        columns = group_columns(groups, normal.shape[1])

        rng = check_random_state(self.random_state)
        known = normal.draw(self._n_drawn, rng)
        searched = known if batch is normal else batch.draw(self._n_drawn, rng)
        self._typical = TypicalValues.learn(known)
        self.typical_ = self._typical.medians
        self._groups = groups
        self._learn(
            FitInputs(known, searched, rng, options, columns, marks, is_later, mostly_normal)
        )
        self.unlabeled_scores_ = self._scores(batch, options.device)
        self._normal = self._batch = None
        for computed in COMPUTED:
            self.__dict__.pop(computed, None)
        self._seed_of_ruler = rng.randint(2**31 - 1)
        if unlabeled is not None:
            self._normal, self._batch = normal, batch
        if n_flagged is None:
            n_flagged = self._count_auto()
        self.offset_ = -threshold(as_host(self.unlabeled_scores_), n_flagged)
        if self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)
        return self

    def _count_auto(self) -> int | None:
        """Return how many rows ``contamination="auto"`` flags; None for Tukey's rule."""
        if self._batch is None:
            return math.ceil(AUTO_SHARE * len(self.unlabeled_scores_))
        if self._ruler is None:
            return None
        counts = self._compared.counts
        n_rows = int(counts.sum())
        if least_to_flag(n_rows, len(counts) - 1, AUTO_FDR) > max(1, AUTO_SHARE * n_rows):
            return None
        return int(counts[: highest_flagged_rank(counts, AUTO_FDR) + 1].sum())

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the detector has learned."""
        return "n_iter_" in vars(self)

    def top_k(self, k: int) -> NDArray[np.intp]:
        """Return the positions of the k most suspicious unlabeled rows.

        Parameters
        ----------
        k : int
            How many, at most the number of unlabeled rows.

        Returns
        -------
        ndarray of shape (k,)
            Positions in `unlabeled`, most suspicious first; at ties the lower position first.
        """
        check_is_fitted(self)
        check_top(k, len(self.unlabeled_scores_), "unlabeled rows")
        if k == 0:
            return np.arange(0)
        scores = as_host(self.unlabeled_scores_)
        # Rows below the k-th highest score need not be sorted.
        candidates = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[-k])
        return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score rows by what was learned from the batch; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return -self._scores(LazyRows.of(self, X))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute ``score_samples(X) - offset_``; negative values are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision: NDArray[np.float64] = self.score_samples(X) - self.offset_
        return decision

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict outliers (-1) and normal rows (1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def explain(
        self, X: ArrayLike, *, groups: Groups | None = None, typical: ArrayLike | None = None
    ) -> Explanation:
        """Compute which features make rows suspicious, and by how much.

        Each feature in turn is set to its typical normal value while the others stay unchanged.
        The more the score drops, the stronger the reason.

        Features are changed one at a time. Where several are suspicious only together (a
        combination of values that never occurs in T) or each is enough alone, no single change may
        help: a feature with a drop near 0 may still matter, and the drops of a row do not add up to
        its score. They show what the fitted score reacts to, not what caused the anomaly, and the
        changed row need not be one that could exist.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to explain, most often the flagged ones: the cost is that of scoring every row
            once per feature.
        groups : mapping of str to sequence of int, or sequence of sequence of int, optional
            Columns that are one feature and change together, such as the one-hot columns of one
            category, with or without a name. Columns in no group are features of their own. By
            default those given to `fit`.
        typical : array-like of shape (n_features,), optional
            A typical normal row. By default the medians of T (`typical_`), and the most frequent
            level of T in a group of one-hot columns.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(300, 4)), rng.normal(size=(100, 4))
        >>> S[0, 2] = 9.0
        >>> detector = QMS22(random_state=0).fit(T, unlabeled=S)
        >>> reason = detector.explain(S[:1]).top(0, k=1)[0]
        >>> reason.name, reason.value
        ('x2', 9.0)
        """
        check_is_fitted(self)
        rows = as_host(check_rows(self, X))
        return explain_rows(
            rows,
            self._column_names(),
            self._groups if groups is None else groups,
            self._typical if typical is None else typical,
            lambda changed: self._scores(LazyRows(changed)),
        )

    def _column_names(self) -> list[str]:
        """Return the names of the columns; x0, x1, … if they have none."""
        unnamed = [f"x{column}" for column in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", unnamed)]

    def _check_parameters(self) -> SolverOptions:
        """Return the options of the solver; raise ValueError if a parameter is not valid."""
        options = self._solver_options(n_threads=1)
        check_count("n_members", self.n_members, least=2)
        if self._n_drawn is not None:
            check_count("max_samples", self._n_drawn)
        check_seed("random_state", self.random_state)
        check_path("log", self.log)
        check_path("checkpoint", self.checkpoint)
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "a checkpoint needs the same random numbers each time; give random_state an int"
            )
        return options

    @property
    @abstractmethod
    def _least_normal(self) -> int:
        """How many known-normal rows there must be."""

    @abstractmethod
    def _learn(self, inputs: FitInputs) -> None:
        """Learn from the rows; the order of the rows of the batch carries no meaning."""

    @property
    def _n_drawn(self) -> int | None:
        """How many rows of T and of the batch to learn from at most; None for all."""
        drawn: int | None = self.max_samples
        return drawn

    def _check_drawn(self, n_normal: int) -> None:
        """Raise ValueError if there are too few known-normal rows, in all or in a draw."""
        least = self._least_normal
        if n_normal < least:
            raise ValueError(
                f"X has n_samples={n_normal} known-normal rows, fewer than the {least} that "
                f"n_members={self.n_members} needs; give more rows or a smaller n_members"
            )
        if self._n_drawn is not None and self._n_drawn < least:
            raise ValueError(
                f"max_samples={self._n_drawn} known-normal rows are too few to learn from; draw "
                f"at least {least}"
            )

    def _reporting(self) -> FitReporting:
        """Return where the progress of a fit is reported to."""
        parameters = self.get_params(deep=False)
        about = {"detector": type(self).__name__, "parameters": parameters}
        return FitReporting(
            verbose=self.verbose > 0, log=self.log, checkpoint=self.checkpoint, about=about
        )

    def without_rows(self) -> Self:
        """Return a copy that scores and predicts alike, without the rows it was fitted on.

        Returns
        -------
        detector
            It has no batch, so it cannot flag rows of it.
        """
        check_is_fitted(self)
        detector = copy(self)
        detector.checkpoint = detector.log = None
        for name in ROWS_OF_FIT:
            detector.__dict__.pop(name, None)
        detector._normal = detector._batch = None
        return detector


def count_flagged(contamination: object, n_unlabeled: int) -> int | None:
    """Return the number of rows that `contamination` asks for; None for "auto"."""
    if isinstance(contamination, str) and contamination == "auto":
        return None
    if is_count(contamination) and 1 <= contamination <= n_unlabeled:  # type: ignore[operator]
        return int(contamination)  # type: ignore[call-overload, no-any-return]
    if is_number(contamination) and 0 < contamination < 1:  # type: ignore[operator]
        return round(contamination * n_unlabeled)  # type: ignore[operator]
    raise ValueError(
        "contamination must be 'auto', a share in (0, 1) or a number of rows from 1 to "
        f"{n_unlabeled}, the number of unlabeled rows; got {contamination!r}"
    )


def threshold(scores: NDArray[np.float64], n_flagged: int | None) -> float:
    """Return the midpoint between flagged and other scores, or Tukey's upper fence for None."""
    if n_flagged is None:
        first, third = np.percentile(scores, [25, 75])
        return float(third + 1.5 * (third - first))
    if n_flagged == 0:
        return float(scores.max())
    if n_flagged == len(scores):
        return float(np.nextafter(scores.min(), -np.inf))
    place = len(scores) - n_flagged
    ascending = np.partition(scores, [place - 1, place])
    return float(ascending[place - 1] + ascending[place]) / 2
