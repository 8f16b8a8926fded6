"""How the views of the ensemble learn from known-normal rows and from the batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.members import MemberFunctions
from qms22._cpm.restarts import Taken
from qms22._cpm.scaling import DEVIATION, LARGEST, FeatureScaler
from qms22._runtime import exact
from qms22.estimators.forest import BinnedRows, fit_forest
from qms22.estimators.held_out import MOST_COMPARED, HeldOutScores, LearnedRows
from qms22.estimators.marks import Marks
from qms22.estimators.nearest import mean_log_distances
from qms22.estimators.views import (
    LEAST_SQUARE,
    SHRINKAGE,
    CovarianceView,
    DistanceView,
    ForestView,
    SimilarityView,
    leave_one_out,
    similarity,
)
from qms22.estimators.weights import rank_correlation, separation

# Known-normal rows to compute distances to, on which the time to score a row depends. `make study`
# compares with 512.
MOST_REFERENCES = 2048

# A number is divided by its range or by this many standard deviations, whichever is less: one
# extreme value must not shrink a column against the others.
_DEVIATIONS = LARGEST / DEVIATION

# Of many rows of T, and of the batch, each split of QMS22 learns from a half of its own, but from
# so many at least. Of many features it learns from so many, or from its share if that is more: all
# splits together learn from every feature. docs/scale.md has what both cost.
_LEAST_ROWS = 4_000
_LEAST_COLUMNS = 64

# Features whose covariance is learned.
_MOST_CORRELATED = 1_000

# Scaled values beyond this are as far away as can be: as in `LIMIT` of the scaling.
_FARTHEST = 1024.0

# Trees of a forest: as many as make this number of rows in all, between the two limits. With many
# rows fewer trees are as good, and the time of a fit stays bounded. With 600 trees, and not 200,
# two seeds agree on 80 % of the flags of 65 small sets, and not on 78 %.
_ROWS_OF_ALL_TREES = 800_000
_FEWEST_TREES, _MOST_TREES = 100, 600

# Forests that are only compared with each other have half as many, and no more than this.
_MOST_TREES_COMPARED = 100


def take_parts(
    shape: tuple[int, int],
    n_unlabeled: int,
    held_out: Sequence[NDArray[np.intp]],
    rng: np.random.RandomState,
) -> list[Taken]:
    """Choose what each split of QMS22 learns from, of rows of the batch, then of T.

    Rows of T that are held out, by their positions in T, are treated as rows of the batch.
    """
    n_rows, n_features = shape
    n_taken = min(n_features, max(_LEAST_COLUMNS, math.ceil(n_features / len(held_out))))
    order = np.arange(n_features)
    if n_taken < n_features:
        rng.shuffle(order)
    taken = []
    for number, out in enumerate(held_out):
        is_known = np.arange(n_rows) >= n_unlabeled
        is_known[n_unlabeled + out] = False
        columns = np.roll(order, -number * n_features // len(held_out))[:n_taken]
        unlabeled = _take_half(np.flatnonzero(~is_known), rng)
        known = _take_half(np.flatnonzero(is_known), rng)
        taken.append(Taken(unlabeled, known, np.sort(columns)))
    return taken


def _take_half(places: NDArray[np.intp], rng: np.random.RandomState) -> NDArray[np.intp]:
    n_taken = max(_LEAST_ROWS, len(places) // 2)
    return places if n_taken >= len(places) else np.sort(rng.permutation(places)[:n_taken])


def distance_scaler(
    standard: FeatureScaler, normal: Any, groups: Sequence[Sequence[int]]
) -> FeatureScaler:
    """Learn to scale rows for distances.

    A column is divided by its range, or by three standard deviations if that is less; a constant
    column keeps its unit. The columns of 0 and 1 that stand for the levels of a category are one
    feature: all of them are divided by three times the root of the sum of their variances, except
    those of levels that no known-normal row has. A level never seen is farther than the others.
    `standard` standardises the rows; groups with other values than 0 and 1 are ignored.
    """
    peak = standard.peak
    width = normal.max(axis=0) / peak - normal.min(axis=0) / peak
    deviation = DEVIATION / standard.factor
    unit = _DEVIATIONS * deviation
    unit = np.where(width > 0.0, np.minimum(unit, width), unit)
    for columns in map(list, groups):
        levels = normal[:, columns]
        if len(columns) > 1 and bool(((levels == 0.0) | (levels == 1.0)).all()):
            varies = width[columns] > 0.0
            total = float(np.sqrt(np.sum(deviation[columns][varies] ** 2)))
            unit[np.array(columns)[varies]] = _DEVIATIONS * total
    return FeatureScaler(peak, standard.center, 1.0 / unit, _FARTHEST)


def learn_distances(
    scaler: FeatureScaler,
    normal: Any,
    dtype: str,
    rng: np.random.RandomState,
    n_threads: int,
    marks: Marks,
) -> DistanceView:
    """Draw references from T, and compute the distances of rows of T to the others.

    The last rows marked as normal are references as well.
    """
    drawn = rng.permutation(len(normal))[: max(MOST_REFERENCES, MOST_COMPARED)]
    rows = scaler.transform(normal[drawn]).astype(dtype)
    references, compared = rows[:MOST_REFERENCES].copy(), rows[:MOST_COMPARED]
    places = np.arange(len(compared))
    itself = np.where(places < len(references), places, -1)
    if len(marks.normal):
        marked = scaler.transform(marks.normal[-MOST_REFERENCES:]).astype(dtype)
        references = np.concatenate([references, marked])
    distances = mean_log_distances(compared, references, skip=itself, n_threads=n_threads)
    return DistanceView(scaler, references, HeldOutScores.of(distances))


def learn_similarity(
    distances: DistanceView, n_normal: int, marks: Marks, n_threads: int
) -> tuple[SimilarityView, float]:
    """Compare distances to the last marked outliers with those to the references of a view.

    The first references are of T, which has `n_normal` rows, the others marked as normal. Also
    return how far the similarity to the other outliers separates each from T, from 0 to 1; 1 for a
    single outlier, about which nothing is known.
    """
    scaler, normal = distances.scaler, distances.references
    outliers = scaler.transform(marks.outliers[-MOST_REFERENCES:]).astype(normal.dtype)
    of_t = normal[: min(n_normal, MOST_REFERENCES)]
    itself = np.arange(len(of_t))
    compared = similarity(of_t, normal, outliers, skip_normal=itself, n_threads=n_threads)
    view = SimilarityView(scaler, normal, outliers, HeldOutScores.of(compared))
    if len(outliers) == 1:
        return view, 1.0
    others = np.arange(len(outliers))
    alone = similarity(outliers, normal, outliers, skip_outlier=others, n_threads=n_threads)
    return view, separation(alone, view.held_out.ascending)


def learn_covariance(
    scaler: FeatureScaler,
    scaled: NDArray[np.float64],
    rng: np.random.RandomState,
    n_marked: int = 0,
) -> CovarianceView:
    """Learn mean and covariance of standardised rows of T, the last of them marked as normal.

    Of many features it knows some, drawn at random: its cost grows with the square of their number.
    The distance of a row of T is computed as if the row had not been learned from.
    """
    n, n_features = scaled.shape
    known, columns = scaled, np.arange(n_features)
    if n_features > _MOST_CORRELATED:
        columns = np.sort(rng.permutation(n_features)[:_MOST_CORRELATED])
        known = scaled[:, columns]
    center = known.mean(axis=0)
    away = known - center
    covariance = (1.0 - SHRINKAGE) * exact.moments(away) / n
    mean_variance = np.trace(covariance) / len(columns) or DEVIATION**2
    covariance[np.diag_indices(len(columns))] += SHRINKAGE * mean_variance
    whitened = exact.inverse_root(covariance)
    b = exact.product(whitened, center[:, np.newaxis])[:, 0]
    A = np.zeros((len(columns), n_features))
    A[:, columns] = whitened
    members = MemberFunctions(A[None], b[None], LEAST_SQUARE)
    compared = rng.permutation(n - n_marked)[:MOST_COMPARED]
    squares = members.values(scaled[compared])[:, 0]
    return CovarianceView(scaler, members, HeldOutScores.of(exact.log(leave_one_out(squares, n))))


def learn_forest(
    rows: BinnedRows, labels: NDArray[np.float64], seed: int, n_threads: int
) -> ForestView:
    """Grow a forest that tells rows of the batch, as far as their labels say, from T.

    The last rows are the batch, all before them T. `labels`, of the batch, are in [0, 1]: how far a
    row counts as one to be told from T. The rest of it counts as one of T.
    """
    n_rows = len(rows.keys)
    n_normal = n_rows - len(labels)
    labels = np.concatenate([np.zeros(n_normal), labels])
    n_trees = _count_trees(n_rows)
    forest = fit_forest(rows, labels, n_trees=n_trees, seed=seed, n_threads=n_threads)
    learned = LearnedRows.of(rows.keys, forest.oob_scores)
    return ForestView(forest, learned, HeldOutScores.of(forest.oob_scores[:n_normal]))


def learn_outlier_forest(
    normal: NDArray[np.float64], marks: Marks, seed: int, n_threads: int
) -> tuple[ForestView, float]:
    """Grow a forest that tells marked outliers from normal rows.

    Also return how far trees that have not learned from them separate outliers from T, 0 to 1.
    """
    n_outliers = len(marks.outliers)
    labels = np.repeat([1.0, 0.0], [n_outliers, len(marks.normal)])
    rows = BinnedRows.of(np.concatenate([normal, marks.add_normal(marks.outliers)]))
    view = learn_forest(rows, labels, seed, n_threads)
    of_outliers = view.forest.oob_scores[len(normal) : len(normal) + n_outliers]
    return view, separation(of_outliers, view.held_out.ascending)


def forest_agreement(
    rows: BinnedRows, n_batch: int, rng: np.random.RandomState, n_threads: int
) -> float:
    """Compute how far forests agree that have no row in common, at least 0.

    The last rows are the batch, all before them T.

    T is cut into halves and the batch into thirds. One forest learns from a half and a third, one
    from the other half and another third, and both score the last third: their rank correlation,
    averaged over the three choices of it. What is only noise differs between the two.
    """
    n_rows = len(rows.keys)
    halves = np.array_split(rng.permutation(n_rows - n_batch), 2)
    thirds = np.array_split(n_rows - n_batch + rng.permutation(n_batch), 3)
    if len(thirds[2]) < 2:
        return 0.0
    n_trees = min(_count_trees(n_rows) // 2, _MOST_TREES_COMPARED)
    correlations = []
    for last in range(3):
        scores = []
        for half, third in zip(halves, (thirds[last - 1], thirds[last - 2]), strict=True):
            forest = fit_forest(
                rows.take(np.concatenate([half, third])),
                np.repeat([0.0, 1.0], [len(half), len(third)]),
                n_trees=n_trees,
                seed=rng.randint(2**31 - 1),
                n_threads=n_threads,
            )
            scores.append(forest.score_bins(rows.take(thirds[last]).bins, n_threads))
        correlations.append(rank_correlation(np.array(scores)))
    return max(0.0, float(np.mean(correlations)))


def _count_trees(n_rows: int) -> int:
    return min(max(_ROWS_OF_ALL_TREES // n_rows, _FEWEST_TREES), _MOST_TREES)
