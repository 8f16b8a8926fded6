"""QMS22: semi-supervised anomaly detection by quadratic multiform separation."""

from __future__ import annotations

import warnings

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qms22._estimator import QMSEstimator, ThresholdMixin
from qms22._explain import (
    Explanation,
    Features,
    Groups,
    TypicalValues,
    check_typical,
    falls_of_score,
)
from qms22._restarts import solve_restarts
from qms22._scaling import FeatureScaler
from qms22._validation import check_count, check_rows, is_count, is_number


class QMS22(ThresholdMixin, QMSEstimator):
    """Semi-supervised anomaly detector by quadratic multiform separation.

    Given known-normal rows T and an unlabeled batch S, it solves one QMS task: the first member
    set is S ∪ T, the others are overlapping subsets of T. Outliers occur in the first set only, so
    the first member function gets small on them and the others do not, and the score

        η(x) = Σ_{i≥2} max(0, (f_i(x) − f_1(x)) / f_1(x))

    tells how suspicious a row is. The batch itself takes part in the fit: this is a method for
    finding the anomalies *in a batch*, and it is at its best there. The fitted member functions
    also score rows that were not in the batch.

    Parameters
    ----------
    n_members : int, default=7
        Member functions, m in the paper: one for S ∪ T and m − 1 for subsets of T, each of which
        leaves out another (m − 1)-th of T.
    n_components : int, default=10
        Rows of A_i, q in the paper.
    alpha : float, default=0.5
        Threshold of the loss, in [0, 1).
    max_iter : int, default=60
        Sweeps of the coordinate perturbation method, at most.
    step_a : float, default=1.0
        Step on the entries of A_i.
    step_b : float, default=255.0
        Step on the entries of b_i.
    init_b : float, default=25500.0
        First entry of every b_i at the start; every other entry of A_i and b_i starts at 0.
    scaling : {"maxabs", "standard", None}, default="maxabs"
        Scaling learned on T alone: the largest absolute value of a feature becomes 255 ("maxabs",
        the paper's), or its mean 0 and its standard deviation 85 ("standard"). Scaled values are
        cut off at 1,024 × 255. Where a feature is 0 in all of T ("maxabs") or constant
        there ("standard"), a difference of 1 becomes 255, so that a level never seen in T counts.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the fit. "float32" takes half the memory and about half the time.
    device : {"cpu"}, default="cpu"
        Where to fit.
    solver : {"native", "reference"}, default="native"
        The compiled kernel, or the slow NumPy reference it is tested against.
    n_restarts : int, default=1
        Independent shuffles of T; scores are averaged over them.
    contamination : "auto", float or int, default="auto"
        Where to draw the line for `predict`. A float in (0, 1) is the share of the unlabeled rows
        to flag, an int their number. "auto" flags what stands out of the batch by Tukey's rule:
        scores above the third quartile of the unlabeled scores by more than 1.5 times the
        distance between the quartiles. It needs no labels and no guess, but an outlier share
        well below a quarter. Where scores are tied at the line, the tied rows are not flagged.
    n_jobs : int or None, default=None
        Restarts that run side by side or, where there are many rows, threads of one fit; -1 means
        all cores. It does not change the result.
    random_state : int, RandomState or None, default=None
        Shuffles T; an int makes fits repeatable.
    verbose : int, default=0
        Above 0 a progress bar is shown on standard error.

    Attributes
    ----------
    unlabeled_scores_ : ndarray of shape (n_unlabeled,)
        η of every unlabeled row, in their order; higher is more suspicious.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
    A_ : ndarray of shape (n_members, n_components, n_features)
        Matrices of the member functions of the first restart, for scaled features.
    b_ : ndarray of shape (n_members, n_components)
        Offsets of the member functions of the first restart.
    members_ : MemberFunctions
        The same as functions of scaled rows.
    restarts_ : tuple of MemberFunctions
        The member functions of every restart.
    n_iter_ : int
        Sweeps made, at most over the restarts.
    typical_ : ndarray of shape (n_features,)
        Median of every feature in T; what `explain` compares with.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where T had names.

    References
    ----------
    K.-H. M. Fan, C.-C. Chang, K.-H.-Y. Kongguoluo, "Semi-Supervised Anomaly Detection Based on
    Quadratic Multiform Separation", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from qms22 import QMS22
    >>> rng = np.random.default_rng(0)
    >>> T = rng.normal(size=(300, 4))
    >>> S = rng.normal(size=(100, 4))
    >>> S[:3] += 6
    >>> detector = QMS22(random_state=0).fit(T, unlabeled=S)
    >>> sorted(detector.top_k(3).tolist())
    [0, 1, 2]
    """

    def __init__(
        self,
        *,
        n_members: int = 7,
        n_components: int = 10,
        alpha: float = 0.5,
        max_iter: int = 60,
        step_a: float = 1.0,
        step_b: float = 255.0,
        init_b: float = 25500.0,
        scaling: str | None = "maxabs",
        dtype: str = "float64",
        device: str = "cpu",
        solver: str = "native",
        n_restarts: int = 1,
        contamination: str | float | int = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_members = n_members
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.step_a = step_a
        self.step_b = step_b
        self.init_b = init_b
        self.scaling = scaling
        self.dtype = dtype
        self.device = device
        self.solver = solver
        self.n_restarts = n_restarts
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: object = None, *, unlabeled: ArrayLike | None = None) -> QMS22:
        """Learn what tells the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            T: known-normal rows, at least `n_members` − 1 of them.
        y : Ignored
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            S: the batch to search, mostly normal. Without it T stands in for it, which leaves a
            weak novelty detector, and a warning.

        Returns
        -------
        QMS22
            The fitted detector.
        """
        options = self._solver_options(n_threads=1)
        check_count("n_members", self.n_members, least=2)
        check_count("n_restarts", self.n_restarts)
        normal = check_rows(self, X, reset=True)
        if len(normal) < self.n_members - 1:
            raise ValueError(
                f"X has n_samples={len(normal)} known-normal rows, fewer than n_members − 1 = "
                f"{self.n_members - 1}; give more rows or a smaller n_members"
            )
        if unlabeled is None:
            warnings.warn(
                "no unlabeled rows were given, so the known-normal rows stand in for them: this is "
                "a weak novelty detector; pass the batch to search as fit(X, unlabeled=batch)",
                stacklevel=2,
            )
            batch = normal
        else:
            batch = check_rows(self, unlabeled, name="unlabeled")
        n_flagged = _count_flagged(self.contamination, len(batch))

        self._scaler = FeatureScaler.learn(normal, self.scaling)
        self._typical = TypicalValues.learn(normal)
        self.typical_ = self._typical.medians
        rows = np.empty((len(batch) + len(normal), normal.shape[1]))
        self._scaler.transform(batch, out=rows[: len(batch)])
        self._scaler.transform(normal, out=rows[len(batch) :])
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_restarts)
        solutions = solve_restarts(
            rows,
            len(batch),
            self.n_members,
            options,
            seeds.tolist(),
            n_jobs=effective_n_jobs(self.n_jobs),
            verbose=self.verbose > 0,
        )

        self.restarts_ = tuple(solution.members for solution in solutions)
        self.members_ = self.restarts_[0]
        self.A_, self.b_ = self.members_.A, self.members_.b
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self.unlabeled_scores_ = self._mean_scores(rows[: len(batch)])
        self.offset_ = -_threshold(self.unlabeled_scores_, n_flagged)
        return self

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
        return np.argsort(-self.unlabeled_scores_, kind="stable")[:k]

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute −η(x), averaged over the restarts; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return -self._mean_scores(self._scaler.transform(check_rows(self, X)))

    def explain(
        self, X: ArrayLike, *, groups: Groups | None = None, typical: ArrayLike | None = None
    ) -> Explanation:
        """Tell which features make rows suspicious, and by how much.

        Each feature in turn is set to its typical normal value, all others staying as they are;
        the reason is as strong as η falls.

        Features are changed one at a time. Where several are suspicious only together (a
        combination of values that never occurs in T) or each is enough alone, no single change may
        help: a fall near 0 does not prove a feature innocent, and the falls of a row do not add up
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
        scores, fall = falls_of_score(
            self._scaler.transform(rows),
            self._scaler.transform(usual),
            features.groups,
            self._mean_scores,
        )
        return Explanation(
            fall, scores, rows, usual, features.names, features.columns, features.groups
        )

    def _mean_scores(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.zeros(len(scaled))
        for members in self.restarts_:
            scores += members.outlier_scores(scaled)
        return scores / len(self.restarts_)


def _count_flagged(contamination: object, n_unlabeled: int) -> int | None:
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


def _threshold(scores: NDArray[np.float64], n_flagged: int | None) -> float:
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
