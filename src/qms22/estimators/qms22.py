"""QMS22: semi-supervised anomaly detection by quadratic multiform separation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from qms22._cpm.backends import Backend
from qms22._cpm.restarts import solve_restarts
from qms22._cpm.scaling import fit_scaler_and_stack
from qms22._cpm.solver_options import SolverOptions
from qms22._runtime.arrays import array_module
from qms22._runtime.devices import to_device
from qms22._runtime.validation import check_count
from qms22.estimators.batch_detector import BatchDetector, FitInputs

# Marked outliers weigh like this share of the batch in all. On half of ADBench's sets with 5 % of
# outliers, 30 rows looked at had 0.63 of the outliers that they could have had where each mark
# weighs like a row of the batch, 0.65 with 0.05 or 0.2, 0.67 with 0.5, and 0.59 without marks.
_OUTLIER_SHARE = 0.2


@dataclass(kw_only=True, eq=False, repr=False)
class QMS22(BatchDetector):
    """Semi-supervised anomaly detector by quadratic multiform separation.

    Given known-normal rows T and an unlabeled batch S, it solves one QMS task: the first member
    set is S ∪ T, the others are overlapping subsets of T. Outliers are in the first set only, so
    that the first member function is small on them and the others are not, and the score

        η(x) = Σ_{i≥2} max(0, (f_i(x) − f_1(x)) / f_1(x))

    measures how suspicious a row is. The batch is part of the fit: the method finds the anomalies
    *in a batch*, and works best there. The fitted member functions also score rows that were not
    in the batch. Rows that were marked as outliers count as rows of S, with more weight, and those
    marked as normal as rows of T.

    Parameters
    ----------
    n_members : int, default=7
        Member functions, m in the paper: one for S ∪ T and m − 1 for subsets of T, each of which
        leaves out a different (m − 1)-th of T.
    n_components : int, default=10
        Rows of A_i, q in the paper.
    alpha : float, default=0.5
        Threshold of the loss, in [0, 1): smaller ratios are raised to it, so that rows that are
        separated well do not drive the fit.
    max_iter : int, default=60
        Sweeps of the coordinate perturbation method, at most.
    step_a : float, default=1.0
        Step on the entries of A_i.
    step_b : float, default=255.0
        Step on the entries of b_i.
    init_b : float, default=25500.0
        First entry of every b_i at the start; every other entry of A_i and b_i starts at 0.
    scaling : {"maxabs", "standard", None}, default="maxabs"
        Scaling learned from T: the largest absolute value of a feature becomes 255 ("maxabs", the
        paper's), or its mean 0 and its standard deviation 85 ("standard"). Scaled values are cut
        off at 1,024 × 255. If a feature is 0 in all of T ("maxabs") or constant there
        ("standard"), a difference of 1 becomes 255, so that a level that is not in T counts.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the fit. "float32" takes half the memory and about half the time.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where to fit and to score. "cuda" is an NVIDIA GPU, through CuPy (``qms22[cuda]``). It takes
        NumPy arrays, and CuPy arrays without a copy to the host; scores are arrays of the same
        kind. "auto" is "cuda" if there is a GPU, else "cpu".
    n_restarts : int, default=1
        Independent shuffles of T; scores are averaged over them.
    contamination : "auto", float or int, default="auto"
        Sets the threshold of `predict`. A float in (0, 1) is the share of the unlabeled rows to
        flag, an int their number. "auto" flags scores above the third quartile by more than 1.5
        times the distance between the quartiles; without a batch, one in twenty of the known-normal
        rows. Rows whose scores tie at the threshold are not flagged.
    max_samples : int or None, default=None
        Learn from at most this many rows of T, and of S, drawn at random; every row of S is
        scored. Rows of a memory-mapped file (``numpy.memmap``) are read when they are needed. By
        default the fit uses all rows.
    n_jobs : int or None, default=None
        Restarts that run side by side or, with many rows, threads of one fit; -1 means all cores.
        Rows are scored in as many threads. It does not change the result.
    random_state : int, RandomState or None, default=None
        Shuffles T; an int makes fits repeatable.
    verbose : int, default=0
        Above 0 a progress bar is shown on standard error.
    log : path or None, default=None
        A file to append a line of JSON to when a fit starts, for every sweep and when it ends.
    checkpoint : path or None, default=None
        A file for the state of a long fit. A fit that was killed and is started again with the same
        parameters and rows continues from it, to the same result. The file is removed at the end.

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
        The same as functions of scaled NumPy rows.
    restarts_ : tuple of MemberFunctions
        The member functions of every restart.
    n_iter_ : int
        Sweeps made: the most of any restart.
    typical_ : ndarray of shape (n_features,)
        Median of every feature in T; what `explain` compares with.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if T has names.

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

    n_members: int = 7
    n_components: int = 10
    alpha: float = 0.5
    max_iter: int = 60
    step_a: float = 1.0
    step_b: float = 255.0
    init_b: float = 25500.0
    scaling: str | None = "maxabs"
    dtype: str = "float64"
    device: str = "cpu"
    n_restarts: int = 1
    contamination: str | float | int = "auto"
    max_samples: int | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    log: str | PathLike[str] | None = None
    checkpoint: str | PathLike[str] | None = None

    def _check_parameters(self) -> SolverOptions:
        options = super()._check_parameters()
        check_count("n_restarts", self.n_restarts)
        return options

    @property
    def _least_normal(self) -> int:
        return self.n_members - 1

    def _learn(self, inputs: FitInputs) -> None:
        options, marks, batch = inputs.options, inputs.marks, inputs.batch
        normal = marks.add_normal(inputs.normal)
        n_copies = round(_OUTLIER_SHARE * len(batch) / max(1, len(marks.outliers)))
        batch = marks.add_outliers(batch, max(1, n_copies))
        self._scaler, rows = fit_scaler_and_stack(normal, batch, self.scaling, options.device)
        solutions = solve_restarts(
            rows,
            len(batch),
            self.n_members,
            options,
            inputs.rng.randint(2**31 - 1, size=self.n_restarts).tolist(),
            n_jobs=effective_n_jobs(self.n_jobs),
            reporting=self._reporting(),
        )
        self.restarts_ = tuple(solution.members for solution in solutions)
        self.members_ = self.restarts_[0]
        self.A_, self.b_ = self.members_.A, self.members_.b
        self.n_iter_ = max(solution.n_iter for solution in solutions)

    def _scorer(self, backend: Backend) -> Callable[[Any], Any]:
        restarts = [backend.load(members) for members in self.restarts_]

        def mean_scores(rows: Any) -> Any:
            scaled = self._scaler.transform(to_device(rows, backend.device))
            scores = array_module(scaled).zeros(len(scaled))
            for members in restarts:
                scores += members.outlier_scores(scaled)
            return scores / len(restarts)

        return mean_scores
