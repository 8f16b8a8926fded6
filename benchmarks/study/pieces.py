"""What one fit of the ensemble consists of, so that variants can put it together in other ways."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qms22 import QMS22Ensemble
from qms22._cpm.backends import BACKENDS
from qms22._cpm.scaling import DEVIATION, FeatureScaler, fit_scaler_and_stack
from qms22.estimators.forest import BinnedRows, fit_forest
from qms22.estimators.held_out import MOST_COMPARED, HeldOutScores, LearnedRows, hash_rows, log_mean
from qms22.estimators.learning import (
    distance_scaler,
    forest_agreement,
    learn_covariance,
    learn_distances,
    learn_forest,
)
from qms22.estimators.marks import Marks
from qms22.estimators.nearest import mean_log_distances
from qms22.estimators.views import DistanceView, ForestView, ScoredRows, View
from qms22_bench.rivals.scaling import range_scaler
from study.problems import Problem

Array = NDArray[np.float64]

# As in version 0.1.0.
_EARLIER_SPLITS, _EARLIER_REFERENCES = 8, 512


@dataclass(frozen=True)
class Scored:
    """−log p of the batch in one view, and the number of held-out rows behind each p."""

    scores: Array
    n_compared: int


@dataclass(frozen=True)
class Distances:
    """How distances are computed; the default is what is shipped.

    Parameters
    ----------
    unit : {"capped", "range", "deviation", "quantiles"}
        What a number is divided by: its range or `times` standard deviations, whichever is less;
        the range alone; the standard deviation alone; or the range between the quantiles
        `times` and 1 − `times`.
    times : float
    n_references : int
    grouped : bool
        Whether the columns of one category count as one feature.
    """

    unit: str = "capped"
    times: float = 3.0
    n_references: int = 2048
    grouped: bool = True

    def scaler(self, problem: Problem, standard: FeatureScaler) -> FeatureScaler:
        """Learn to scale rows for distances."""
        groups = problem.groups if self.grouped else ()
        shipped = distance_scaler(standard, problem.normal, groups)
        width = np.ptp(problem.normal / standard.peak, axis=0)
        deviation = DEVIATION / standard.factor
        if self.unit == "range":
            unit = width
        elif self.unit == "deviation":
            unit = deviation
        elif self.unit == "quantiles":
            ends = np.quantile(problem.normal, [self.times, 1.0 - self.times], axis=0)
            unit = np.ptp(ends / standard.peak, axis=0)
        else:
            unit = np.minimum(width, self.times * deviation)
        # Columns without such a unit, and categories, as shipped.
        unit = np.where(unit > 0.0, unit, 1.0 / shipped.factor)
        times = {"capped": self.times, "deviation": 1.0}.get(self.unit, 3.0)
        for columns in map(list, groups):
            if len(columns) > 1 and np.isin(problem.normal[:, columns], (0.0, 1.0)).all():
                seen = [column for column in columns if width[column] > 0.0]
                unit[seen] = times / 3.0 / shipped.factor[seen]
        return FeatureScaler(shipped.peak, shipped.center, 1.0 / unit, shipped.limit)


@dataclass
class Pieces:
    """The views of the ensemble on one problem, learned in the order in which the package does.

    Parameters
    ----------
    problem : Problem
    seed : int

    Attributes
    ----------
    views : dict of str to Scored
        All but "self_training", which depends on the weights of the others.
    correlation : float
        Mean rank correlation between the splits of QMS22, at least 0.
    agreement : float
        That of forests without a row in common.
    """

    problem: Problem
    seed: int
    _distances: dict[Distances, Scored] = field(default_factory=dict)
    _self_training: dict[tuple[bytes, int], Scored] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.RandomState(self.seed)
        known = self.problem.normal
        known = known[hash_rows(known).argsort(kind="stable")]
        self.problem = problem = replace(self.problem, normal=known)
        self._order = hash_rows(problem.batch).argsort(kind="stable")
        self._batch = batch = problem.batch[self._order]
        detector = QMS22Ensemble()
        options = detector._check_parameters()
        self._standard, rows = fit_scaler_and_stack(known, batch, "standard", "cpu")
        members, correlation = detector._learn_members(
            self._standard, rows, len(batch), rng, options
        )
        self._dtype, self._rng_of_distances = options.dtype, deepcopy(rng)
        near = distance_scaler(self._standard, known, problem.groups)
        distances = learn_distances(near, known, options.dtype, rng, 1, Marks())
        covariance = learn_covariance(self._standard, rows[len(batch) :], rng)
        seeds = rng.randint(2**31 - 1, size=2).tolist()
        binned = BinnedRows.of(np.concatenate([known, batch]))
        forest = learn_forest(binned, np.ones(len(batch)), seeds[0], 1)
        self.views = {
            "members": self._score(members),
            "distances": self._score(distances),
            "covariance": self._score(covariance),
            "forest": self._score(forest),
        }
        self.correlation = max(0.0, correlation)
        self.agreement = forest_agreement(binned, len(batch), rng, 1)
        self._forest_seed, self._n_trees = seeds[1], len(forest.forest.first_node) - 1
        self._distances[Distances()] = self.views["distances"]

    @cached_property
    def earlier_members(self) -> tuple[Scored, float]:
        """QMS22 with 20 sweeps in double precision, as in 0.1.0, and the correlation of splits."""
        detector = QMS22Ensemble(max_iter=20, dtype="float64")
        options, rng = detector._check_parameters(), np.random.RandomState(self.seed)
        scaler, rows = fit_scaler_and_stack(self.problem.normal, self._batch, "standard", "cpu")
        view, correlation = detector._learn_members(scaler, rows, len(self._batch), rng, options)
        return self._score(view), max(0.0, correlation)

    def distances(self, settings: Distances) -> Scored:
        """Compute the distance view with other settings and the same draw of references."""
        if settings not in self._distances:
            known, rng = self.problem.normal, deepcopy(self._rng_of_distances)
            scaler = settings.scaler(self.problem, self._standard)
            drawn = rng.permutation(len(known))[: max(settings.n_references, MOST_COMPARED)]
            rows = scaler.transform(known[drawn]).astype(self._dtype)
            references, compared = rows[: settings.n_references].copy(), rows[:MOST_COMPARED]
            places = np.arange(len(compared))
            itself = np.where(places < len(references), places, -1)
            held_out = HeldOutScores.of(mean_log_distances(compared, references, skip=itself))
            view = DistanceView(scaler, references, held_out)
            self._distances[settings] = self._score(view)
        return self._distances[settings]

    def earlier_distances(self) -> Scored:
        """Compute the distance view of version 0.1.0: range scaling, a part of T held out."""
        known, rng = self.problem.normal, deepcopy(self._rng_of_distances)
        scaler = FeatureScaler(**vars(range_scaler(known)))
        rows = scaler.transform(known)
        logarithms, n_compared = [], 0
        for out in np.array_split(rng.permutation(len(rows)), min(_EARLIER_SPLITS, len(rows))):
            others = rng.permutation(np.delete(np.arange(len(rows)), out))
            references = rows[others[:_EARLIER_REFERENCES]]
            held_out = HeldOutScores.of(mean_log_distances(rows[out], references))
            logarithms.append(-self._score(DistanceView(scaler, references, held_out)).scores)
            n_compared += len(out)
        return Scored(-log_mean(logarithms), n_compared)

    def self_training(self, labels: Array, min_leaf: int = 5) -> Scored:
        """Learn a forest from labels of the batch; equal labels give the same forest."""
        key = labels.tobytes(), min_leaf
        if key not in self._self_training:
            known = self.problem.normal
            rows = BinnedRows.of(np.concatenate([known, self._batch]))
            forest = fit_forest(
                rows,
                np.concatenate([np.zeros(len(known)), labels[self._order]]),
                n_trees=self._n_trees,
                min_leaf=min_leaf,
                seed=self._forest_seed,
            )
            held_out = HeldOutScores.of(forest.oob_scores[: len(known)])
            view = ForestView(forest, LearnedRows.of(rows.keys, forest.oob_scores), held_out)
            self._self_training[key] = self._score(view)
        return self._self_training[key]

    def _score(self, view: View) -> Scored:
        score = view.scorer(BACKENDS["cpu"])
        return Scored(score(ScoredRows(self.problem.batch)), view.n_compared)
