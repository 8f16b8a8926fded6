"""A forest that tells the batch from the known-normal rows."""

from __future__ import annotations

from typing import Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.validation import check_count, check_rows
from qms22._runtime.warn import warn_user
from qms22.estimators.base import ThresholdMixin
from qms22.estimators.forest import fit_forest

# The share of known-normal rows beyond the threshold: the usual 5 %.
_FALSE_ALARMS = 0.05


class OutOfBagForest(ThresholdMixin, BaseEstimator):  # type: ignore[misc]
    """Randomised trees that tell the unlabeled batch S from the known-normal rows T.

    Every tree learns from a bootstrap sample of both, T as class 0 and S as class 1 with equal
    weight, as in the forest of `QMS22Ensemble`. A row's score is the share of S in its leaves,
    averaged over the trees that did not learn from the row. It is high where the batch has rows and
    T has few.

    Parameters
    ----------
    n_estimators : int, default=200
        Trees.
    min_samples_leaf : int, default=5
        Rows in a leaf, at least.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the bootstrap samples and the trees.

    Attributes
    ----------
    unlabeled_scores_ : ndarray of shape (n_unlabeled,)
        Scores of the unlabeled rows, in their order; higher is more suspicious.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this. One known-normal row in twenty is
        beyond it.
    forest_ : Forest
        The fitted trees, as arrays.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if T has names.

    Notes
    -----
    `score_samples` is for new rows: it averages over all trees. The rows of the batch have their
    scores in `unlabeled_scores_`; trees that learned from them as rows of S would score them too
    high.

    Examples
    --------
    >>> import numpy as np
    >>> from qms22 import OutOfBagForest
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
    >>> S[:8] += 4
    >>> detector = OutOfBagForest(random_state=0).fit(T, unlabeled=S)
    >>> sorted(np.argsort(-detector.unlabeled_scores_)[:8].tolist())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """

    def __init__(
        self,
        *,
        n_estimators: int = 200,
        min_samples_leaf: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None, *, unlabeled: ArrayLike | None = None) -> Self:
        """Learn what distinguishes the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            T: known-normal rows.
        y : Ignored
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            S: the batch to search. Without it T takes its place, with a warning: then there is
            nothing to learn.

        Returns
        -------
        self
            The fitted detector.
        """
        check_count("n_estimators", self.n_estimators)
        check_count("min_samples_leaf", self.min_samples_leaf)
        normal = check_rows(self, X, reset=True)
        if unlabeled is None:
            warn_user(
                "no unlabeled rows were given, so there is nothing to tell from the known-normal "
                "rows; pass the batch to search as fit(X, unlabeled=batch)"
            )
            batch = normal
        else:
            batch = check_rows(self, unlabeled, name="unlabeled")
        self.forest_ = fit_forest(
            np.concatenate([normal, batch]),
            np.repeat([0.0, 1.0], [len(normal), len(batch)]),
            n_trees=self.n_estimators,
            min_leaf=self.min_samples_leaf,
            seed=check_random_state(self.random_state).randint(2**31 - 1),
            n_threads=effective_n_jobs(self.n_jobs),
        )
        of_normal, self.unlabeled_scores_ = np.split(self.forest_.oob_scores, [len(normal)])
        # A row that is in T and in S is known to every tree; compare it with its like.
        if batch is normal:
            of_normal = self._shares(normal)
        self.offset_ = -float(np.percentile(of_normal, 100 * (1 - _FALSE_ALARMS)))
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score new rows by all trees; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return -self._shares(check_rows(self, X))

    def _shares(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.forest_.score(rows, n_threads=effective_n_jobs(self.n_jobs))
