"""QMS22Ensemble: the recommended detector."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from os import PathLike
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from qms22._cpm.backends import BACKENDS, Backend
from qms22._cpm.restarts import solve_restarts
from qms22._cpm.scaling import FeatureScaler, fit_scaler_and_stack
from qms22._cpm.solver_options import SolverOptions
from qms22._runtime import exact
from qms22._runtime.arrays import array_module, as_host
from qms22._runtime.chunks import draw_rows
from qms22._runtime.devices import to_device
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import check_count
from qms22.decisions.ruler import Ruler, is_moved
from qms22.estimators.batch_detector import BatchDetector, FitInputs
from qms22.estimators.cuda.view_kernels import add_weighted
from qms22.estimators.forest import BinnedRows
from qms22.estimators.held_out import MOST_COMPARED, HeldOutScores, hash_rows
from qms22.estimators.learning import (
    distance_scaler,
    forest_agreement,
    learn_covariance,
    learn_distances,
    learn_forest,
    learn_outlier_forest,
    learn_similarity,
    take_parts,
)
from qms22.estimators.marks import Marks
from qms22.estimators.suspicious_normal import SuspiciousNormalsMixin
from qms22.estimators.views import (
    DistanceView,
    ForestView,
    MembersPart,
    MembersView,
    ScoredRows,
    View,
)
from qms22.estimators.weights import (
    excess,
    mean_ranks,
    outlier_forest_weight,
    rank_correlation,
    similarity_weight,
    view_weights,
)

# What max_samples="auto" means: a fit takes about a second. benchmarks/max_samples.py has what more
# rows would bring.
AUTO_SAMPLES = 6_000

# What max_iter="auto" means: so many sweeps; beyond so many features fewer, so that all sweeps
# together make no more steps, but not below the least. On the 15 sets of ADBench with 27 to 166
# features 10, 5 and 3 sweeps have a mean AUC of 0.896, 0.897 and 0.898.
_SWEEPS, _FEATURES_OF_ALL_SWEEPS, _LEAST_SWEEPS = 10, 15, 3

# Known-normal rows that the batch is compared with: so many per row of the batch, between two
# limits. With two for each, a false discovery rate of 0.1 can flag five rows; with the most, 50 of
# a million.
_COMPARED_PER_ROW = 2
_LEAST_COMPARED, _MOST_COMPARED = 20_000, 200_000
# Half of a batch of another time is in the highest twentieth of the known-normal rows: a view tells
# the times apart, and not the rows of the batch, as where a machine goes on where it was.
_OF_ANOTHER_TIME = 0.95


@dataclass(kw_only=True, eq=False, repr=False)
class QMS22Ensemble(SuspiciousNormalsMixin, BatchDetector):
    """The recommended detector: five views of the rows, weighted by how far they can be trusted.

    Each view scores rows in its own way:

    - "members": QMS22 (see there), with standardised features and fewer sweeps. T is cut into
      `n_splits` parts; each in turn is held out and mixed into the batch, and QMS22 learns from
      the rest. It finds what is in the batch and not among normal rows.
    - "distances": the distance to the nearest known-normal rows. It also finds single outliers.
    - "covariance": the distance from the mean of T in units of its covariance (Mahalanobis). It
      finds rows whose values do not fit each other.
    - "forest": randomised trees that tell the batch from T. A row is scored by trees that have
      not learned from it.
    - "self_training": a forest like that, but a row of the batch counts as one to be told from T
      only as far as the other views find it suspicious.

    Rows that someone has looked at teach all views: marked outliers as rows of the batch, rows
    marked as normal as rows of T that are never held out. With marked outliers there are two more:

    - "similarity": how much nearer a row is to a marked outlier than to a normal row.
    - "outlier_forest": trees that tell marked outliers from normal rows.

    The share p of held-out normal rows that score higher puts the views on one scale. A row's score
    is the sum over the views of −log p, each times a weight. Two kinds of evidence make the
    weights of the first five, neither of which needs labels:

    - Agreement. QMS22 gets w, the square of the mean rank correlation between the scores of its
      splits for the batch, and the distance gets 1 − w. The forest and the self-training get the
      rank correlation of forests that have no row in common. Where there is nothing to learn from
      the batch, each fit finds its own noise, these weights are small and the distance decides.
    - Excess. A view in which the batch has clearly more suspicious rows than chance would give gets
      its share of an additional weight of 4. So the view that sees a few obvious outliers decides,
      even where the fits do not agree on the other 99 % of the rows. Five standard deviations are
      clear: less than that may be chance. Where the batch is of another time it counts nothing.

    Where at most a fifth of the batch are outliers (`mostly_normal`) and a view finds more of it
    suspicious, all of the batch has moved. Then there is no excess, and QMS22 and the forests,
    which have learned from the batch what all of it does, get no weight.

    The views of marked outliers get a weight of up to 3 each: the more, the better they separate
    outliers that they have not learned from, and the more outliers there are.

    Parameters
    ----------
    n_splits : int, default=8
        Parts of T, each held out once; at most as many as there are rows.
    n_members : int, default=7
        As of `QMS22`.
    n_components : int, default=10
        As of `QMS22`.
    max_iter : "auto" or int, default="auto"
        Sweeps, at most. More of them fit the noise of the batch. "auto" is 10 for up to 15
        features, and for more so many fewer that the time grows little, but at least 3.
    dtype : {"float32", "float64"}, default="float32"
        Precision of QMS22 and of distances. Scores in float32 are as accurate and take less time.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        As of `QMS22`. Forests are grown on the host; all rows are scored on the device.
    contamination : "auto", float or int, default="auto"
        As of `QMS22`, except that "auto" flags as many rows as ``flag(fdr=0.1)`` does if there are
        enough known-normal rows for that, about 200.
    max_samples : "auto", int or None, default="auto"
        Learn from at most this many rows of T and of the batch, drawn at random, and score all.
        "auto" is 6,000; None takes all rows.
    n_jobs : int or None, default=None
        Splits that run side by side or, with many rows, threads of one; -1 means all cores. It
        does not change the result.
    random_state : int, RandomState or None, default=None
        Cuts and shuffles T; an int makes fits repeatable.
    verbose : int, default=0
        Above 0 a progress bar is shown on standard error.
    log : path or None, default=None
        As of `QMS22`.
    checkpoint : path or None, default=None
        As of `QMS22`.

    Attributes
    ----------
    unlabeled_scores_ : ndarray of shape (n_unlabeled,)
        Scores of the unlabeled rows, in their order; higher is more suspicious.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
    weights_ : dict of str to float
        The weight of each view.
    views_ : dict of str to view
        The fitted views. Those that neither have a weight nor were needed to find it are missing.
    n_iter_ : int
        Sweeps made: the most of any split.
    typical_ : ndarray of shape (n_features,)
        Median of every feature in T; what `explain` compares with.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if T has names.

    Examples
    --------
    >>> import numpy as np
    >>> from qms22 import QMS22Ensemble
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
    >>> S[:5] += 6
    >>> detector = QMS22Ensemble(random_state=0).fit(T, unlabeled=S)
    >>> sorted(detector.top_k(5).tolist())
    [0, 1, 2, 3, 4]
    """

    n_splits: int = 8
    n_members: int = 7
    n_components: int = 10
    max_iter: str | int = "auto"
    dtype: str = "float32"
    device: str = "cpu"
    contamination: str | float | int = "auto"
    max_samples: str | int | None = "auto"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    log: str | PathLike[str] | None = None
    checkpoint: str | PathLike[str] | None = None

    def _check_parameters(self) -> SolverOptions:
        options = super()._check_parameters()
        check_count("n_splits", self.n_splits, least=2)
        return options

    @property
    def _n_drawn(self) -> int | None:
        return AUTO_SAMPLES if self.max_samples == "auto" else self.max_samples  # type: ignore[return-value]

    @property
    def _least_normal(self) -> int:
        # QMS22 also learns without the part that a split holds out.
        return next(
            n_normal
            for n_normal in count(self.n_members)
            if n_normal - math.ceil(n_normal / min(self.n_splits, n_normal)) >= self.n_members - 1
        )

    def _learn(self, inputs: FitInputs) -> None:
        rng, options, marks = inputs.rng, inputs.options, inputs.marks
        n_threads = effective_n_jobs(self.n_jobs)
        # On the host: a GPU sweeps and scores, and would compile all the rest first.
        known, n_unlabeled = as_host(inputs.normal), len(inputs.batch)
        # Marked outliers are rows of the batch with a certain label.
        batch = marks.add_outliers(as_host(inputs.batch))
        # Rows are drawn, held out and summed by their places. In an order that depends on values
        # alone, what is learned does not depend on the order in which rows are given.
        known = known[hash_rows(known).argsort(kind="stable")]
        order = hash_rows(batch).argsort(kind="stable")
        batch, is_marked = batch[order], order >= n_unlabeled
        scaler, rows = fit_scaler_and_stack(known, batch, "standard", "cpu")
        if n_marked := len(marks.normal):
            rows = np.concatenate([rows, scaler.transform(marks.normal)])
        self.views_: dict[str, View] = {}
        self.views_["members"], correlation = self._learn_members(
            scaler, rows, len(batch), rng, options, n_marked
        )
        self._known, self._n_marked = known, n_marked
        near = distance_scaler(scaler, known, inputs.groups)
        self.views_["distances"] = learn_distances(
            near, known, options.dtype, rng, n_threads, marks
        )
        self.views_["covariance"] = learn_covariance(scaler, rows[len(batch) :], rng, n_marked)
        # Both are drawn in any case: later draws must not depend on the rows.
        seeds = rng.randint(2**31 - 1, size=2).tolist()
        binned = with_marks = BinnedRows.of(np.concatenate([known, batch]))
        if n_marked:  # rows marked as normal are rows of the batch that do not differ from T
            with_marks = BinnedRows.of(np.concatenate([known, marks.add_normal(batch)]))

        def forest(labels: NDArray[np.float64], seed: int) -> ForestView:
            return learn_forest(with_marks, np.pad(labels, (0, n_marked)), seed, n_threads)

        self.views_["forest"] = forest(np.ones(len(batch)), seeds[0])
        between_forests = forest_agreement(binned, len(batch), rng, n_threads)
        # Squared, as a correlation is: the share of the variance that two splits have in common.
        weight = max(0.0, correlation) ** 2
        scores = self._scores_by_view(batch, options.device)
        places = {name: 1.0 - float(exact.exp(-np.median(scores[name]))) for name in scores}
        has_moved = any(
            is_moved(places[name], len(batch), view.n_compared)
            if inputs.mostly_normal
            else inputs.is_later and places[name] >= _OF_ANOTHER_TIME
            for name, view in self.views_.items()
        )
        # What these have learned from a batch that has moved is what all of it does.
        between_forests *= not has_moved
        trust = {
            "members": weight * (not has_moved),
            "distances": 1.0 - weight,
            "covariance": 0.0,
            "forest": between_forests,
        }
        excesses = {
            name: 0.0 if inputs.is_later or has_moved else excess(scores[name], view.n_compared)
            for name, view in self.views_.items()
        }
        self.weights_ = view_weights(trust, excesses)
        if len(marks.outliers):
            self._learn_marks(known, marks, rng, n_threads)
            scores = self._scores_by_view(batch, options.device)
        if between_forests > 0.0:
            fused = sum(self.weights_[name] * scores[name] for name in scores)
            # Rounded: the last bits of logarithms of a GPU differ, and must not order rows.
            ranks = mean_ranks(np.round(fused, 6)) / len(batch)
            labels = np.where(is_marked, 1.0, ranks**2)
            self.views_["self_training"] = forest(labels, seeds[1])
            self.weights_["self_training"] = between_forests

    @cached_property
    def _ruler(self) -> Ruler:
        normal, n_compared = self._known_normal(), rows_to_compare(len(self.unlabeled_scores_))
        rng = np.random.RandomState(self._seed_of_ruler)
        places = draw_rows(len(normal), n_compared, rng)
        return Ruler.of(self.score_normal(normal.select(places)))

    def _learn_marks(
        self, normal: NDArray[np.float64], marks: Marks, rng: np.random.RandomState, n_threads: int
    ) -> None:
        """Learn the views that look for rows like the marked outliers."""
        distances, n_outliers = self.views_["distances"], len(marks.outliers)
        assert isinstance(distances, DistanceView)
        seed = rng.randint(2**31 - 1)
        similar, separated = learn_similarity(distances, len(normal), marks, n_threads)
        self.views_["similarity"] = similar
        self.weights_["similarity"] = similarity_weight(separated, n_outliers)
        forest, separated = learn_outlier_forest(normal, marks, seed, n_threads)
        self.views_["outlier_forest"] = forest
        self.weights_["outlier_forest"] = outlier_forest_weight(separated, n_outliers)

    def _learn_members(
        self,
        scaler: FeatureScaler,
        rows: NDArray[np.float64],
        n_unlabeled: int,
        rng: np.random.RandomState,
        options: SolverOptions,
        n_marked: int = 0,
    ) -> tuple[MembersView, float]:
        """Fit QMS22 with each part of T held out; also return how far the fits agree.

        The last rows, those marked as normal, are never held out.
        """
        if self.max_iter == "auto":
            n_sweeps = _SWEEPS * _FEATURES_OF_ALL_SWEEPS // rows.shape[1]
            options = replace(options, max_iter=min(_SWEEPS, max(_LEAST_SWEEPS, n_sweeps)))
        n_normal = len(rows) - n_unlabeled - n_marked
        n_splits = min(self.n_splits, n_normal)
        held_out = np.array_split(rng.permutation(n_normal), n_splits)
        seeds = rng.randint(2**31 - 1, size=n_splits).tolist()
        solutions = solve_restarts(
            rows,
            n_unlabeled,
            self.n_members,
            options,
            seeds,
            taken=take_parts(rows.shape, n_unlabeled, held_out, rng),
            n_jobs=effective_n_jobs(self.n_jobs),
            reporting=self._reporting(),
        )
        self._held_out = held_out
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        backend = BACKENDS[options.device]
        batch = to_device(rows[:n_unlabeled], options.device)
        parts, of_batch = [], []
        for solution, out in zip(solutions, held_out, strict=True):
            members = backend.load(solution.members)
            held = to_device(rows[n_unlabeled + out[:MOST_COMPARED]], options.device)
            compared = exact.log1p(as_host(members.outlier_scores(held)))
            parts.append(MembersPart(solution.members, HeldOutScores.of(compared)))
            of_batch.append(as_host(members.outlier_scores(batch)))
        return MembersView(scaler, tuple(parts)), rank_correlation(np.array(of_batch))

    def _scores_by_view(self, batch: Any, device: str) -> dict[str, NDArray[np.float64]]:
        """Compute −log p of the rows of the batch in each view, on the host."""
        backend, table = BACKENDS[device], LazyRows(batch)

        def scores(view: View) -> NDArray[np.float64]:
            score = view.scorer(backend)
            found = self._score_chunks(lambda rows: score(ScoredRows(rows)), table, backend)
            return as_host(found)  # type: ignore[no-any-return]

        return {name: scores(view) for name, view in self.views_.items()}

    def _scorer(self, backend: Backend) -> Callable[[Any], Any]:
        weighted = [
            (weight, self.views_[name].scorer(backend))
            for name, weight in self.weights_.items()
            if weight > 0.0
        ]

        def score(rows: Any) -> Any:
            shared = ScoredRows(to_device(rows, backend.device))
            total = array_module(shared.rows).zeros(len(rows))
            for weight, score_view in weighted:
                scores = score_view(shared)
                if backend.device == "cuda":
                    add_weighted(total, weight, scores)
                else:
                    total += weight * scores
            return total

        return score


def rows_to_compare(n_batch: int) -> int:
    """Return how many known-normal rows to compare so many rows with, at most."""
    return min(max(_LEAST_COMPARED, _COMPARED_PER_ROW * n_batch), _MOST_COMPARED)
