"""QMSClassifier: multi-class classification by quadratic multiform separation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from qms22._cpm.backends import Backend, solve
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.task import classification_task
from qms22._runtime import exact
from qms22._runtime.arrays import as_host
from qms22._runtime.devices import to_device
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.stages import progress_bar, sweep_words
from qms22._runtime.validation import check_rows
from qms22.estimators.base import QMSEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class QMSClassifier(ClassifierMixin, QMSEstimator):  # type: ignore[misc]
    """Classifier by quadratic multiform separation (QMS).

    Class i has a member function f_i(x) = ‖A_i x − b_i‖²; a row belongs to the class whose member
    function is smallest there. Training minimises

        Φ = Σ_i Σ_{x in class i} Σ_{j≠i} max(α, f_i(x) / f_j(x))

    by the coordinate perturbation method (CPM): sweeps over all entries of all A_i and b_i that
    move one entry at a time by a fixed step wherever that lowers the loss.

    Parameters
    ----------
    n_components, alpha, max_iter, step_a, step_b, init_b, dtype, device
        As of `QMS22`.
    scaling : {"maxabs", "standard", None}, default="maxabs"
        Scaling learned from the training rows: the largest absolute value of a feature becomes 255
        ("maxabs"), or its mean 0 and its standard deviation 85 ("standard"). The default steps
        suit features of this size.
    n_jobs : int or None, default=None
        Threads, if there are enough rows for them; -1 means all cores. They do not change the
        result.
    verbose : int, default=0
        Above 0 a progress bar is shown on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    A_ : ndarray of shape (n_classes, n_components, n_features)
        Matrices of the member functions, for scaled features.
    b_ : ndarray of shape (n_classes, n_components)
        Offsets of the member functions.
    members_ : MemberFunctions
        The same as functions of scaled NumPy rows.
    n_iter_ : int
        Sweeps made. Fewer than `max_iter` if a sweep found nothing to improve.
    loss_ : ndarray of shape (n_iter + 1,)
        Φ at the start and after each sweep, with the largest sample weight as unit.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training rows have names.

    References
    ----------
    K.-H. M. Fan, C.-C. Chang, K.-H.-Y. Kongguoluo, "Semi-Supervised Anomaly Detection Based on
    Quadratic Multiform Separation", 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qms22 import QMSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = QMSClassifier().fit(X, y)
    >>> round(classifier.score(X, y), 2)
    0.97
    """

    n_components: int = 10
    alpha: float = 0.5
    max_iter: int = 60
    step_a: float = 1.0
    step_b: float = 255.0
    init_b: float = 25500.0
    scaling: str | None = "maxabs"
    dtype: str = "float64"
    device: str = "cpu"
    n_jobs: int | None = None
    verbose: int = 0

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> QMSClassifier:
        """Train the member functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels: numbers or strings, of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, not negative.

        Returns
        -------
        QMSClassifier
            The fitted classifier.
        """
        options = self._solver_options(n_threads=effective_n_jobs(self.n_jobs))
        y = validate_data(self, y=None if y is None else as_host(y))
        rows = to_device(check_rows(self, X, reset=True), options.device)
        check_consistent_length(rows, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only, {str(self.classes_[0])!r}; give rows of at least two"
            )
        weights = _check_weights(sample_weight, labels, self.classes_)
        if weights is not None:
            weighty = weights > 0
            rows, labels, weights = rows[weighty], labels[weighty], weights[weighty]
        self._scaler = FeatureScaler.learn(rows, self.scaling, weights)
        task = classification_task(
            self._scaler.transform(rows), labels.astype(np.int32), len(self.classes_), weights
        )
        with progress_bar("sweeps", self.max_iter, enabled=self.verbose > 0) as show:
            solution = solve(
                task,
                options,
                lambda state, seconds: show(
                    state.n_iter, sweep_words(state.loss, len(task.X) / seconds)
                ),
            )
        self.members_ = solution.members
        self.A_, self.b_ = solution.members.A, solution.members.b
        self.n_iter_, self.loss_ = solution.n_iter, np.array(solution.losses)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute scores of the classes; the highest wins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            −log f_i(x); with two classes log f_1(x) − log f_2(x), positive for the second class.
        """
        logs = -exact.log(self._values(X))
        if len(self.classes_) == 2:
            difference: NDArray[np.float64] = logs[:, 1] - logs[:, 0]
            return difference
        return logs

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with the smallest member function; the first one at ties.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        winners = self._values(X).argmin(axis=1)
        labels: NDArray[Any] = self.classes_[as_host(winners)]
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict class probabilities p_i(x) = (1 / f_i(x)) / Σ_j (1 / f_j(x)).

        The ratio f_i(x) / f_j(x) in the loss is then the odds p_j(x) / p_i(x) of class j against
        class i, and the probabilities are the softmax of −log f_i(x). They are not calibrated: use
        scikit-learn's ``CalibratedClassifierCV`` for that.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        values = self._values(X)
        shares = values.min(axis=1, keepdims=True) / values
        probabilities: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
        return probabilities

    def _values(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._scores(LazyRows.of(self, X))

    def _scorer(self, backend: Backend) -> Callable[[Any], Any]:
        members = backend.load(self.members_)
        return lambda rows: members.values(self._scaler.transform(to_device(rows, backend.device)))


def _check_weights(
    sample_weight: ArrayLike | None, labels: NDArray[np.int64], classes: NDArray[Any]
) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != labels.shape:
        raise ValueError(
            f"sample_weight must have one weight for each of the {len(labels)} rows; "
            f"got shape {weights.shape}"
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight holds {weights[bad[0]]} at row {bad[0]}; "
            "weights must be finite and not negative"
        )
    weightless = np.flatnonzero(np.bincount(labels, weights=weights) == 0)
    if weightless.size:
        raise ValueError(
            f"every row of class {str(classes[weightless[0]])!r} has zero sample_weight; "
            "drop the class or give it weight"
        )
    return weights
