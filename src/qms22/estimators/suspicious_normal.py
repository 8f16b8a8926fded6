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

from qms22._runtime.arrays import as_host
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import check_top
from qms22.estimators.held_out import LearnedRows, hash_rows
from qms22.estimators.views import KnownRows, View

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
        learned = LearnedRows.of(hash_rows(self._known), self._of_learned)
        keys = _keys(normal)
        unknown = np.full(len(keys), np.nan)
        scores: NDArray[np.float64] = self._of_batch.replace(learned.replace(unknown, keys), keys)
        others = np.flatnonzero(np.isnan(scores))
        if normal.is_distributed:
            scores[others] = as_host(self._scores(normal))[others]
        elif others.size:
            scores[others] = as_host(self._scores(normal.select(others)))
        return scores

    def suspicious_normal(self, k: int | None = None) -> NDArray[np.intp]:
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

        The page "What is promised" of the documentation says what outliers in T do to the bound of
        `flag`, and which rows may leave T. Pass rows that were looked at and are outliers to `fit`
        as `outliers`; `detect` does so with marks on them, see `Detection.normal_to_check`.

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
        >>> sorted(detector.suspicious_normal(3).tolist())
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
        if not chosen.size:
            return chosen
        # The places of the rows in T, by their values.
        learned = LearnedRows.of(hash_rows(self._known[chosen]), scores[chosen])
        scores = learned.replace(np.full(len(normal), -np.inf), _keys(normal))
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
        return LearnedRows.of_equal(_keys(batch), as_host(self.unlabeled_scores_))

    @cached_property
    def _of_learned(self) -> NDArray[np.float64]:
        """Scores of the rows that were learned from, in the order of `_known`."""
        known = KnownRows(self._known, self._held_out, self._n_marked)
        return score_known(self.views_, self.weights_, known)


def _keys(rows: LazyRows) -> NDArray[np.uint64]:
    """Compute the hashes of rows, where they are."""
    return np.concatenate(rows.map(hash_rows))


def score_known(
    views: Mapping[str, View], weights: Mapping[str, float], known: KnownRows
) -> NDArray[np.float64]:
    """Score the known-normal rows that views have learned from, as if they had not."""
    total = np.zeros(len(known.rows))
    for name, weight in weights.items():
        if weight > 0.0:
            total += weight * views[name].score_known(known)
    return total


def stand_out(normal: NDArray[np.float64], batch: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the positions of known-normal rows that score like the clearest outliers.

    Scores of the known-normal rows are as if not learned from.
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
