"""What detectors of the anomalies in a batch have in common."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qms22._cpm.cuda.rows import to_device
from qms22._cpm.fit_log import FitReporting
from qms22._cpm.scaling import FeatureScaler
from qms22._runtime.arrays import array_module, as_host
from qms22._runtime.chunks import draw_rows, row_chunks
from qms22._runtime.devices import resolve_device
from qms22._runtime.lazy_rows import LazyRows, SelectedRows, StackedRows
from qms22._runtime.threads import in_threads
from qms22._runtime.validation import check_count, check_path, check_rows, is_count, is_number
from qms22.estimators.base import QMSEstimator, ThresholdMixin
from qms22.estimators.calibration import Calibration, CalibrationSplit
from qms22.estimators.conformal import ContaminationEstimate
from qms22.estimators.explain import (
    Explanation,
    Features,
    Groups,
    TypicalValues,
    check_typical,
    score_drops,
)

# Of the rows that contamination="auto" flags about one in ten may be normal. Where known-normal
# rows are so few that this level flags none or more than a twentieth of the batch, a rule of thumb
# draws the line, and where there is no batch, a twentieth of the known-normal rows is beyond it.
AUTO_FDR = 0.1
_AUTO_SHARE = 0.05


class BatchDetector(ThresholdMixin, QMSEstimator):
    """A detector that learns from known-normal rows and from the batch it is to search.

    A subclass says how to check its parameters, how to learn and how to score.
    """

    # What detectors had that were saved before there were these parameters.
    max_samples: int | None = None
    checkpoint: str | PathLike[str] | None = None
    log: str | PathLike[str] | None = None

    def fit(self, X: ArrayLike, y: object = None, *, unlabeled: ArrayLike | None = None) -> Self:
        """Learn what tells the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            T: known-normal rows, at least `n_members` − 1 of them; `QMS22Ensemble` needs so many
            beside those it holds out.
        y : Ignored
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            S: the batch to search, mostly normal. Without it T stands in for it, which leaves a
            weak novelty detector, and a warning.

        Returns
        -------
        self
            The fitted detector.
        """
        self._check_parameters()
        normal = LazyRows.of(self, X, reset=True)
        self._check_drawn(len(normal))
        if unlabeled is None:
            warnings.warn(
                "no unlabeled rows were given, so the known-normal rows stand in for them: this is "
                "a weak novelty detector; pass the batch to search as fit(X, unlabeled=batch)",
                stacklevel=2,
            )
            batch = normal
        else:
            batch = LazyRows.of(self, unlabeled, name="unlabeled")
        n_flagged = count_flagged(self.contamination, len(batch))

        rng = check_random_state(self.random_state)
        known = normal.draw(self.max_samples, rng)
        searched = known if batch is normal else batch.draw(self.max_samples, rng)
        self._typical = TypicalValues.learn(known)
        self.typical_ = self._typical.medians
        self._learn(known, searched, rng)
        self.unlabeled_scores_ = self._scores(batch)
        self._calibration = None
        self.__dict__.pop("offset_", None)
        if unlabeled is not None:
            splits = _Splits(clone(self), normal, batch)
            self._calibration = Calibration(
                len(normal), len(batch), rng.randint(2**31 - 1), splits.score
            )
        if n_flagged is None and unlabeled is None:
            n_flagged = math.ceil(_AUTO_SHARE * len(batch))
        if n_flagged is not None:
            self.offset_ = -threshold(as_host(self.unlabeled_scores_), n_flagged)
        self._remove_checkpoint()
        return self

    @cached_property
    def offset_(self) -> float:
        """The line of ``contamination="auto"``, drawn when first asked for: it takes a fit."""
        check_is_fitted(self)
        n_unlabeled = len(self.unlabeled_scores_)
        least = self._calibrated().least_to_flag(AUTO_FDR)
        if least > max(1, _AUTO_SHARE * n_unlabeled):
            return -threshold(as_host(self.unlabeled_scores_), None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that none is flagged is an answer here
            n_flagged = int(np.count_nonzero(self.flag(AUTO_FDR)))
        return -threshold(as_host(self.unlabeled_scores_), n_flagged)

    def top_k(self, k: int) -> NDArray[np.intp]:
        """Give the positions of the k most suspicious unlabeled rows.

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
        check_count("k", k, least=0)
        if k > len(self.unlabeled_scores_):
            raise ValueError(
                f"k={k} is more than the {len(self.unlabeled_scores_)} unlabeled rows there are"
            )
        return np.argsort(-as_host(self.unlabeled_scores_), kind="stable")[:k]

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Tell how normal rows are, by what was learned from the batch; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return -self._scores(LazyRows.of(self, X))

    def p_values(self, *, n_splits: int = 1) -> NDArray[np.float64]:
        """Give a conformal p-value for every unlabeled row.

        Of a normal row it is at most u with a probability of at most u, whatever the data. One
        known-normal row in three is held out and mixed into the batch, the detector is fitted
        anew, and the p-value is one plus the number of held-out rows that score as high or
        higher, over one plus the number of held-out rows.

        Parameters
        ----------
        n_splits : int, default=1
            How often to hold out other rows. Several p-values of a row are merged by twice
            their mean. Every split costs one fit, made when first asked for.

        Returns
        -------
        ndarray of shape (n_unlabeled,)
        """
        return self._calibrated().p_values(n_splits=n_splits)

    def flag(self, fdr: float = 0.1, *, n_splits: int = 1) -> NDArray[np.bool_]:
        """Tell which unlabeled rows to look at, with a bound on the share of false alarms.

        The expected share of normal rows among the flagged ones is at most `fdr`, whatever the
        data, the outliers and their number, as long as the normal rows of the batch are drawn as
        the known-normal ones were. It holds on average over batches, not for each.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate, in (0, 1).
        n_splits : int, default=1
            How often to hold out other known-normal rows. One split finds most. With five, merged
            by their e-values, the answer depends less on the split, and about half is found.

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
        >>> np.flatnonzero(detector.flag(fdr=0.1)).tolist()  # one false alarm among eleven
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 27]
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
            As of `p_values`.

        Returns
        -------
        ContaminationEstimate
            A tuple (share, low, high).
        """
        return self._calibrated().estimate_contamination(confidence=confidence, n_splits=n_splits)

    def explain(
        self, X: ArrayLike, *, groups: Groups | None = None, typical: ArrayLike | None = None
    ) -> Explanation:
        """Tell which features make rows suspicious, and by how much.

        Each feature in turn is set to its typical normal value, all others staying as they are;
        the reason is as strong as the score drops.

        Features are changed one at a time. Where several are suspicious only together (a
        combination of values that never occurs in T) or each is enough alone, no single change may
        help: a drop near 0 does not prove a feature innocent, and the drops of a row do not add up
        to its score. They tell what the fitted score reacts to, not what caused the anomaly, and
        the changed row need not be one that could exist.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to explain, most often the flagged ones: the cost is that of scoring every row
            once per feature.
        groups : mapping of str to sequence of int, or sequence of sequence of int, optional
            Columns that are one feature and change together, such as the one-hot columns of one
            category, with or without a name. Columns in no group are features of their own.
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
        rows = check_rows(self, X)
        columns = getattr(self, "feature_names_in_", [f"x{i}" for i in range(rows.shape[1])])
        features = Features.gather([str(column) for column in columns], groups)
        if typical is None:
            usual = self._typical.row(features.groups)
        else:
            usual = check_typical(typical, rows.shape[1])
        scores, drop = score_drops(
            rows, usual, features.groups, lambda changed: self._scores(LazyRows(changed))
        )
        return Explanation(
            drop, scores, rows, usual, features.names, features.columns, features.groups
        )

    def _check_parameters(self) -> None:
        """Complain about parameters that make no sense."""
        self._solver_options(n_threads=1)
        check_count("n_members", self.n_members, least=2)
        if self.max_samples is not None:
            check_count("max_samples", self.max_samples)
        check_path("log", self.log)
        check_path("checkpoint", self.checkpoint)
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "with random_state=None a fit differs each time and cannot go on from a "
                "checkpoint; give an int"
            )

    @abstractmethod
    def _check_enough(self, n_normal: int) -> None:
        """Complain about too few known-normal rows."""

    @abstractmethod
    def _learn(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        rng: np.random.RandomState,
    ) -> None:
        """Learn from the rows; all rows of the batch count alike."""

    @abstractmethod
    def _outlier_scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score rows, each by itself and in one thread; higher is more suspicious."""

    def _scores(self, table: LazyRows) -> NDArray[np.float64]:
        """Score all rows of a table, chunk by chunk."""

        def score(chunk: slice) -> NDArray[np.float64]:
            return self._outlier_scores(table.read(chunk))

        chunks = row_chunks(table.shape)
        if len(chunks) == 1:
            return score(chunks[0])
        # A GPU has one queue, and threads would only wait in it.
        n_jobs = self.n_jobs if resolve_device(self.device) == "cpu" else 1
        parts = in_threads(score, chunks, n_jobs)
        scores: NDArray[np.float64] = array_module(parts[0]).concatenate(parts)
        return scores

    def _check_drawn(self, n_normal: int) -> None:
        """Complain about too few known-normal rows, in all or among those drawn."""
        self._check_enough(n_normal)
        if self.max_samples is None:
            return
        try:
            self._check_enough(min(n_normal, self.max_samples))
        except ValueError as error:
            raise ValueError(
                f"max_samples={self.max_samples} known-normal rows are too few to learn from; "
                "draw more"
            ) from error

    def _reporting(self) -> FitReporting:
        """Who is told of the sweeps of a fit."""
        parameters = self.get_params(deep=False)
        about = {"detector": type(self).__name__, "parameters": parameters}
        return FitReporting(self.verbose > 0, self.log, self.checkpoint, about)

    def _remove_checkpoint(self) -> None:
        if self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)

    def without_rows(self) -> Self:
        """Give a copy that scores and predicts alike but has forgotten the rows it was fitted on.

        Returns
        -------
        detector
            It can no longer flag rows of its batch, as it has none.
        """
        check_is_fitted(self)
        detector = copy(self)
        detector.offset_ = self.offset_
        detector._calibration = None
        detector.checkpoint = detector.log = None
        return detector

    def _calibrated(self) -> Calibration:
        check_is_fitted(self)
        calibration: Calibration | None = getattr(self, "_calibration", None)
        if calibration is None:
            raise ValueError(
                "there is no batch to flag rows of: the detector was fitted without one or comes "
                "from a file; fit it with fit(X, unlabeled=batch)"
            )
        return calibration


@dataclass(frozen=True, eq=False)
class _Splits:
    """The rows that calibrate a detector; not the detector itself, which holds this."""

    unfitted: BatchDetector
    normal: LazyRows
    batch: LazyRows

    def score(self, split: CalibrationSplit) -> NDArray[np.float64]:
        """Learn from the rows of a split and score its mixture."""
        known = SelectedRows(self.normal, split.known)
        held_out = SelectedRows(self.normal, split.held_out)
        return score_mixture(self.unfitted, known, StackedRows(self.batch, held_out), split)


def score_mixture(
    detector: BatchDetector, known: LazyRows, mixture: LazyRows, split: CalibrationSplit
) -> NDArray[np.float64]:
    """Fit a clone of a detector on the rows of a split, and score its mixture.

    Parameters
    ----------
    detector : BatchDetector
        Its parameters count, not what it has learned.
    known : LazyRows
        The known-normal rows to learn from.
    mixture : LazyRows
        The rows of the batch, then the held-out ones.
    split : CalibrationSplit
    """
    fresh: BatchDetector = clone(detector).set_params(checkpoint=None, log=None)
    try:
        fresh._check_drawn(len(known))
    except ValueError as error:
        n_held_out = len(split.held_out)
        raise ValueError(
            f"of {len(known) + n_held_out} known-normal rows {n_held_out} are held out to compare "
            "the batch with, which leaves too few to learn from; give more of them"
        ) from error
    normal = known.draw(fresh.max_samples, split.rng)
    drawn = draw_rows(len(mixture), fresh.max_samples, split.rng)
    # In random order, so that nothing distinguishes the held-out rows from the others.
    fresh._learn(normal, mixture.read(split.order[drawn]), split.rng)
    return fresh._scores(mixture)


def fit_scaler_and_stack(
    normal: NDArray[np.float64], batch: NDArray[np.float64], scaling: str | None, device: str
) -> tuple[FeatureScaler, NDArray[np.float64]]:
    """Learn the scaling of T, and give the scaled rows of S and of T, where a device has them."""
    known, sought = to_device(normal, device), to_device(batch, device)
    scaler = FeatureScaler.learn(known, scaling)
    rows = array_module(known).empty((len(sought) + len(known), known.shape[1]))
    scaler.transform(sought, out=rows[: len(sought)])
    scaler.transform(known, out=rows[len(sought) :])
    return scaler, rows


def count_flagged(contamination: object, n_unlabeled: int) -> int | None:
    """Turn `contamination` into a number of rows; None for "auto"."""
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
    """Draw the line half-way between the flagged and the other scores, or by Tukey's rule."""
    if n_flagged is None:
        first, third = np.percentile(scores, [25, 75])
        return float(third + 1.5 * (third - first))
    descending = -np.sort(-scores)
    if n_flagged == 0:
        return float(descending[0])
    if n_flagged == len(scores):
        return float(np.nextafter(descending[-1], -np.inf))
    return float(descending[n_flagged - 1] + descending[n_flagged]) / 2
