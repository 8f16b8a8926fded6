"""Known-normal rows that may not be normal: their scores, and which of them stand out.

A view of the ensemble can score the rows of T as if it had not learned from them. So they get
scores on the scale of the batch, and no further fit is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from qms22._cpm.backends import choose_backend
from qms22._runtime.arrays import as_host
from qms22._runtime.chunks import row_chunks
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import check_top
from qms22.estimators.learned_rows import LearnedRows, hash_rows
from qms22.estimators.learning import leave_one_out
from qms22.estimators.nearest import mean_log_distances
from qms22.estimators.views import (
    CovarianceView,
    DistanceView,
    ForestView,
    MembersView,
    SimilarityView,
    View,
    similarity,
)

# As many rows of the batch count as found as give an estimated false discovery rate of 0.3.
# Known-normal rows stand out that score as high as the first tenth of those, if they are at least
# three: one or two are there by chance too often. Chosen on half of the data sets of
# benchmarks/dirty.py.
_MOST_FALSE = 0.3
_CLEAREST = 0.1
_FEWEST = 3


class SuspiciousNormalsMixin:
    """Scores of the known-normal rows that an ensemble was fitted on."""

    views_: dict[str, View]
    weights_: dict[str, float]
    unlabeled_scores_: NDArray[np.float64]
    _known: NDArray[np.float64]
    _held_out: Sequence[NDArray[np.intp]]
    _n_marked: int
    _batch: LazyRows | None
    _scores: Any

    def score_normals(self) -> NDArray[np.float64]:
        """Score the known-normal rows as if the detector had not learned from them.

        Members score the rows that were held out from them, forests those out of their bags, and
        a row is left out of its own distance and covariance. It takes no fit.

        Returns
        -------
        ndarray of shape (n_normal,)
            In the order of `X`, on the scale of `unlabeled_scores_`; higher is more suspicious.
        """
        return self.score_normal(self._known_normal())

    def score_normal(self, normal: LazyRows) -> NDArray[np.float64]:
        """Score some of the known-normal rows as if the detector had not learned from them.

        A row that the batch has, too, gets the score that it has there: equal rows are equally
        suspicious, and none of them stands above the others by chance.
        """
        learned = LearnedRows.of(self._known, self._of_learned)
        scores: NDArray[np.float64] = as_host(self._scores(normal))
        for part in row_chunks(normal.shape):
            rows = as_host(normal.read(part))
            scores[part] = self._of_batch.replace(learned.replace(scores[part], rows), rows)
        return scores

    def suspicious_normals(self, k: int | None = None) -> NDArray[np.intp]:
        """Return positions of known-normal rows that may not be normal, most suspicious first.

        Outliers among the known-normal rows hide outliers like them: with 5 % of them `flag` finds
        hardly any in the batch. Look at these rows, and fit again without those
        that are outliers. Do not remove a row for its score alone: the batch has normal rows with
        high scores, too, which then have nothing to be compared with, and too many are flagged.

        Parameters
        ----------
        k : int, optional
            How many rows to return. By default those that clearly stand out, most often none: the
            rows that score as high as the clearest outliers of the batch. The scores of normal rows
            thin out towards the top faster than those of outliers do, so few reach these. Of more
            rows than are learned from (`max_samples`), only those learned from are judged.

        Returns
        -------
        ndarray of shape (k,)
            Positions in `X`; at ties the lower position first.

        Notes
        -----
        This is a ranking to look at. T alone cannot tell rare normal rows from outliers, so there
        is no bound on the number of wrong ones. In ``benchmarks/dirty.py`` 1, 2 or 5 % of T are
        outliers like those of the batch. Of as many rows as there are outliers in T, about half are
        right, and the 5 % most suspicious rows have 7, 7 and 5 of 10 outliers. Without `k`, rows
        are returned in 3 % of the cases with a clean T, and in 16, 38 and 20 % of the others; then
        7, 9 and 10 of 10 are right. Outliers unlike any in the batch are mostly missed.

        Outliers in T hardly touch the bound of ``flag(fdr)``. If n₀ of the n known-normal rows are
        normal, these and the normal rows of the batch are exchangeable as before, given all others.
        The other rows of T only add to the counts of the p-values, so that a p-value is at
        least (n₀ + 1) / (n + 1) times what the n₀ rows alone give. In the worst case, where they
        score lower than all normal rows, the expected share of false alarms by the procedure of
        Benjamini and Hochberg is at most ``fdr`` · (n + 1) / (n₀ + 1), that is 5 % more with 5 %
        outliers; the estimated share of normal rows, which counts the p-values from one half on,
        can add about as much again. Outliers that score high only make p-values too large.

        Rows that were looked at and are outliers can leave T: the normal ones all stay, so the
        bound is the same with fewer other rows, up to the effect that the normal rows have on which
        outliers were looked at (Bashari et al. call it Label-Trim). In the benchmark, where the 5 %
        most suspicious rows are looked at, this restores most of what is found with a clean T, and
        the share of false alarms stays below the level. Removing all of the 5 % does not keep it.
        Pass the removed rows to `fit` as `outliers`; `detect` does so with marks on them, see
        `Detection.normal_to_check`.

        References
        ----------
        M. Bashari, M. Sesia, Y. Romano, "Robust conformal outlier detection under contaminated
        reference data", ICML 2025. https://arxiv.org/abs/2502.04807

        Examples
        --------
        >>> import numpy as np
        >>> from qms22 import QMS22Ensemble
        >>> rng = np.random.default_rng(0)
        >>> T, S = rng.normal(size=(400, 4)), rng.normal(size=(100, 4))
        >>> S[:10] += 6
        >>> T[[7, 17, 77]] += 6
        >>> detector = QMS22Ensemble(random_state=0).fit(T, unlabeled=S)
        >>> sorted(detector.suspicious_normals().tolist())
        [7, 17, 77]
        """
        if k is None:
            return self._clearly_suspicious()
        scores = self.score_normals()
        check_top(k, len(scores), "known-normal rows")
        return np.argsort(-scores, kind="stable")[:k]

    def _clearly_suspicious(self) -> NDArray[np.intp]:
        """Return the positions of rows that stand out among those learned from."""
        normal = self._known_normal()
        scores = self._of_learned
        chosen = stand_out(scores, as_host(self.unlabeled_scores_))
        if len(scores) < len(normal) and chosen.size:
            # The places of the rows in T, by their values.
            learned = LearnedRows.of(self._known[chosen], scores[chosen])
            scores = np.full(len(normal), -np.inf)
            for part in row_chunks(normal.shape):
                scores[part] = learned.replace(scores[part], as_host(normal.read(part)))
            chosen = np.flatnonzero(np.isfinite(scores))
        return chosen[np.argsort(-scores[chosen], kind="stable")]

    def _known_normal(self) -> LazyRows:
        check_is_fitted(self)
        normal: LazyRows | None = getattr(self, "_normal", None)
        if normal is None:
            raise ValueError(
                "there are no known-normal rows to score: the detector was fitted without a batch "
                "or comes from a file; fit it with fit(X, unlabeled=batch)"
            )
        return normal

    @cached_property
    def _of_batch(self) -> LearnedRows:
        """Scores of the rows of the batch, by their values."""
        batch = self._batch
        assert batch is not None
        keys = [hash_rows(as_host(batch.read(part))) for part in row_chunks(batch.shape)]
        return LearnedRows.of_equal(np.concatenate(keys), as_host(self.unlabeled_scores_))

    @cached_property
    def _of_learned(self) -> NDArray[np.float64]:
        """Scores of the rows that were learned from, in the order in which they were."""
        return score_held_out(
            self.views_, self.weights_, self._known, self._held_out, self._n_marked
        )


def score_held_out(
    views: Mapping[str, View],
    weights: Mapping[str, float],
    rows: NDArray[np.float64],
    held_out: Sequence[NDArray[np.intp]],
    n_marked: int = 0,
) -> NDArray[np.float64]:
    """Score the known-normal rows that views have learned from, as if they had not.

    Parameters
    ----------
    views : mapping of str to view
    weights : mapping of str to float
    rows : ndarray of shape (n, p)
        The known-normal rows, in the order in which they were learned.
    held_out : sequence of ndarray of int
        The rows that each part of the view "members" has not learned from.
    n_marked : int
        How many rows marked as normal were learned from, too.

    Returns
    -------
    ndarray of shape (n,)
    """
    total = np.zeros(len(rows))
    for name, weight in weights.items():
        if weight > 0.0:
            total += weight * _score_held_out(views[name], rows, held_out, n_marked)
    return total


def _score_held_out(
    view: View, rows: NDArray[np.float64], held_out: Sequence[NDArray[np.intp]], n_marked: int
) -> NDArray[np.float64]:
    """Compute −log p of known-normal rows in one view, as if it had not learned from them."""
    backend = choose_backend("cpu")
    if isinstance(view, MembersView):
        scores, scaled = np.empty(len(rows)), view.scaler.transform(rows)
        for part, out in zip(view.parts, held_out, strict=True):
            values = backend.load(part.members).outlier_scores(scaled[out])
            scores[out] = -part.held_out.log_p_values_of_own(np.log1p(values))
        return scores
    if isinstance(view, DistanceView):
        (near,) = view.parts
        scaled = view.scaler.transform(rows).astype(near.references.dtype)
        itself = _find(scaled, near.references)
        distances = mean_log_distances(scaled, near.references, skip=itself)
        return -near.held_out.log_p_values_of_own(distances)
    if isinstance(view, CovarianceView):
        squares = backend.load(view.members).values(view.scaler.transform(rows))[:, 0]
        alone = leave_one_out(squares, len(rows) + n_marked)
        return -view.held_out.log_p_values_of_own(np.log(alone))
    if isinstance(view, SimilarityView):
        scaled = view.scaler.transform(rows).astype(view.normal.dtype)
        itself = _find(scaled, view.normal)
        compared = similarity(scaled, view.normal, view.outliers, skip_normal=itself)
        return -view.held_out.log_p_values_of_own(compared)
    assert isinstance(view, ForestView)
    out_of_bag = view.learned.replace(np.zeros(len(rows)), rows)
    return -view.held_out.log_p_values_of_own(out_of_bag)


def _find(rows: NDArray[Any], references: NDArray[Any]) -> NDArray[np.intp]:
    """Return for every row the position of an equal one among the references; -1 for none."""
    known, keys = hash_rows(references), hash_rows(rows)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known[order], keys), len(known) - 1)]
    return np.where(known[place] == keys, place, -1)


def stand_out(normal: NDArray[np.float64], batch: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the positions of known-normal rows that score like the clearest outliers.

    Parameters
    ----------
    normal, batch : ndarray
        Scores of the known-normal rows, none of them learned from, and of the batch.
    """
    descending = -np.sort(-batch)
    n_normal = len(normal) - np.searchsorted(np.sort(normal), descending)  # as high or higher
    expected = (1 + n_normal) / (len(normal) + 1) * len(batch)
    found = np.flatnonzero(expected <= _MOST_FALSE * np.arange(1, len(batch) + 1))
    if not found.size:
        return np.arange(0)
    line = descending[math.ceil(_CLEAREST * (found[-1] + 1)) - 1]
    beyond = np.flatnonzero(normal >= line)
    return beyond if len(beyond) >= _FEWEST else np.arange(0)
