"""The detectors with PyOD's interface (``pip install "qms22[pyod]"``)."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.packages import need
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import QMS22Ensemble as _QMS22Ensemble
from qms22.estimators.qms22 import QMS22 as _QMS22

BaseDetector: Any = need("pyod.models.base", "qms22.pyod", "pyod").BaseDetector


class _Adapter(BaseDetector):  # type: ignore[misc]
    """A detector of qms22 behind PyOD's interface; `_kind` is its class."""

    _kind: type[BatchDetector]

    def __init_subclass__(cls) -> None:
        # PyOD's contamination first, then the other parameters of the detector.
        own = dict(signature(cls._kind).parameters)
        kind = Parameter.POSITIONAL_OR_KEYWORD
        first = own.pop("contamination").replace(kind=kind, default=0.1, annotation=Any)
        cls.__signature__ = Signature([first, *own.values()])

    def __init__(self, contamination: Any = 0.1, **parameters: Any) -> None:
        super().__init__(contamination=contamination)
        own = self._kind(**parameters).get_params(deep=False)
        self.__dict__.update({**own, "contamination": self.contamination})

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(cls._kind._get_param_names())

    def fit(self, X: ArrayLike, y: object = None, unlabeled: ArrayLike | None = None) -> Self:
        """Learn what distinguishes the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            Known-normal rows.
        y : Ignored
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            The batch to search, mostly normal. Without it, as when a tool of PyOD calls
            ``fit(X)``, X takes its place: a weak novelty detector, with a warning.

        Returns
        -------
        self
        """
        parameters = self.get_params(deep=False)
        del parameters["contamination"]  # PyOD computes the threshold
        self.detector_ = self._kind(**parameters).fit(X, unlabeled=unlabeled)
        self.n_features_in_ = self.detector_.n_features_in_
        self.decision_scores_ = self.detector_.unlabeled_scores_
        self._set_n_classes(None)
        self._process_decision_scores()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score rows by what was learned from the batch; higher is more abnormal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "detector_")
        return -self.detector_.score_samples(X)


class QMS22Ensemble(_Adapter):
    """`qms22.QMS22Ensemble`, the recommended detector, as a detector of PyOD.

    Scores are higher for more abnormal rows; labels are 1 for outliers and 0 for normal rows. The
    training data of PyOD are here the batch: `decision_scores_`, `labels_` and `threshold_` belong
    to the unlabeled rows, in their order, and `contamination` is the share of them to flag. This
    detector can therefore be combined with detectors of PyOD that are fitted on the batch. Flags
    with a bound on false alarms are in ``detector_.flag()``.

    Parameters
    ----------
    contamination : float in (0, 0.5] or thresholder, default=0.1
        Share of outliers in the batch, or one of ``pyod.models.thresholds``.
    n_splits, n_members, n_components, max_iter, dtype, device, max_samples, n_jobs, random_state, \
verbose, log, checkpoint
        See `qms22.QMS22Ensemble`.

    Attributes
    ----------
    decision_scores_ : ndarray of shape (n_unlabeled,)
        Scores of the unlabeled rows.
    threshold_ : float
        Rows with a higher score are outliers.
    labels_ : ndarray of shape (n_unlabeled,)
        1 for outliers, 0 for normal rows.
    detector_ : qms22.QMS22Ensemble
        The fitted detector.

    Examples
    --------
    >>> import numpy as np
    >>> from qms22.pyod import QMS22Ensemble
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(300, 4)), rng.normal(size=(100, 4))
    >>> S[:3] += 6
    >>> detector = QMS22Ensemble(contamination=0.03, random_state=0).fit(T, unlabeled=S)
    >>> np.flatnonzero(detector.labels_).tolist()
    [0, 1, 2]
    """

    _kind = _QMS22Ensemble


class QMS22(_Adapter):
    """`qms22.QMS22` as a detector of PyOD.

    Scores, labels and the attributes are those of `qms22.pyod.QMS22Ensemble`, with η as the score.

    Parameters
    ----------
    contamination : float in (0, 0.5] or thresholder, default=0.1
        Share of outliers in the batch, or one of ``pyod.models.thresholds``.
    n_members, n_components, alpha, max_iter, step_a, step_b, init_b, scaling, dtype, device, \
n_restarts, max_samples, n_jobs, random_state, verbose, log, checkpoint
        See `qms22.QMS22`.
    """

    _kind = _QMS22
