"""`DaskQMS22Ensemble`: a `QMS22Ensemble` for batches on the workers of a Dask cluster."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.chunks import draw_rows
from qms22._runtime.validation import check_count, check_share
from qms22._runtime.warn import warn_user
from qms22.cluster.dask_ranking import order_statistics, top_positions
from qms22.cluster.dask_scoring import Collection, check_columns, score_by_part, share
from qms22.cluster.dask_table import DaskTable, add_up, fit_on_draw
from qms22.decisions.curve import bound_false
from qms22.decisions.ruler import Ruler, highest_flagged_rank
from qms22.estimators.batch_detector import count_auto
from qms22.estimators.decisions import why_none
from qms22.estimators.ensemble import QMS22Ensemble, rows_to_compare
from qms22.estimators.explain import Explanation, Groups, group_columns
from qms22.estimators.learned_rows import LearnedRows
from qms22.estimators.thresholds import count_flagged, threshold

# The client keeps the scores of the known-normal rows that the batch is compared with, and workers
# count as many ranks.
MOST_COMPARED = 1_000_000

# What is computed on first use, from the rows of a fit.
_OF_FIT = ("offset_", "_scores", "_ruler", "_counts")


class DaskQMS22Ensemble(BaseEstimator):  # type: ignore[misc]
    """`QMS22Ensemble` for Dask arrays and data frames: it learns from a draw, and scores lazily.

    Rows drawn at random are brought to the client, which learns from them. All other rows stay on
    their workers, which score them in parallel. Scores are to the bit those of `QMS22Ensemble`
    with the same parameters and rows.

    Work is done by the default client of Dask, as for all its collections: the last
    ``distributed.Client`` made, the one chosen by ``with client.as_current():``, or the threads of
    this process if there is none.

    Parameters
    ----------
    **parameters
        Those of `QMS22Ensemble`. With ``max_samples=None`` all rows are brought to the client.

    Attributes
    ----------
    unlabeled_scores_ : dask.array.Array of shape (n_unlabeled,)
        Scores of the unlabeled rows, in their order, lazily; higher is more suspicious.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this. Computed on first use, by a pass over
        the batch, and for ``contamination="auto"`` what `flag` needs.
    detector_ : QMS22Ensemble
        The fitted detector, with its threshold and without the scores of the batch;
        `qms22.models.save_model` takes it.
    weights_, views_, n_iter_, typical_
        Those of `detector_`, as are `n_features_in_` and `feature_names_in_`.

    See Also
    --------
    qms22.QMS22Ensemble : For rows in memory; describes the parameters and attributes.

    Notes
    -----
    `flag`, `p_values` and `false_at_most` compare the batch with known-normal rows as
    `QMS22Ensemble` does, and give the same answers: with up to 20,000 rows or two per row of the
    batch, drawn at random, but here with no more than 1,000,000. Their scores come to the client;
    the rows do not. This costs a pass over the known-normal rows and two over the batch, whose
    scores stay with the workers, eight bytes per row. The workers count how many rows have each
    rank, and the counts decide.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from qms22.dask import DaskQMS22Ensemble
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(900, 4)), rng.normal(size=(200, 4))
    >>> S[:10] += 6
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     detector = DaskQMS22Ensemble(max_samples=500, random_state=0)
    ...     detector = detector.fit(da.from_array(T, 300), unlabeled=da.from_array(S, 50))
    ...     flagged = detector.flag(fdr=0.1).compute()
    >>> np.flatnonzero(flagged)[:10].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    __init__ = QMS22Ensemble.__init__  # the same parameters, stored the same way

    def fit(
        self,
        X: Collection,
        y: object = None,
        *,
        unlabeled: Collection | None = None,
        groups: Groups | None = None,
    ) -> Self:
        """Learn what distinguishes the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_normal, n_features)
            T: known-normal rows.
        y : Ignored
        unlabeled : dask.array.Array or dask.dataframe.DataFrame of shape (n_unlabeled, n_features)
            S: the batch to search, mostly normal.
        groups : mapping of str to sequence of int, or sequence of sequence of int, optional
            Columns that are one feature; see `QMS22Ensemble.fit`.

        Returns
        -------
        self
            The fitted detector.
        """
        if unlabeled is None:
            raise ValueError("pass the batch to search as fit(X, unlabeled=batch)")
        detector = QMS22Ensemble(**self.get_params())
        options = detector._check_parameters()
        check_columns(detector, X, "X", reset=True)
        check_columns(detector, unlabeled, "unlabeled")
        normal, batch = DaskTable.of(X, "X"), DaskTable.of(unlabeled, "unlabeled")
        columns = group_columns(groups, detector.n_features_in_)
        detector._groups = groups
        rng = fit_on_draw(detector, options, normal, batch, columns)
        detector._remove_checkpoint()
        detector.unlabeled_scores_ = np.empty(0)  # those of the batch stay with the workers
        for name in _OF_FIT:
            self.__dict__.pop(name, None)
        self._detector = detector
        self._normal, self._batch = normal, batch
        self._seed_of_ruler = rng.randint(2**31 - 1)
        self.unlabeled_scores_ = batch.scores(detector)
        return self

    def __getattr__(self, name: str) -> Any:
        # All other fitted attributes are those of the detector.
        if name.endswith("_") and not name.startswith("_") and "_detector" in vars(self):
            return getattr(self._detector, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @cached_property
    def offset_(self) -> float:
        """The threshold of `predict`; computed on first use."""
        check_is_fitted(self)
        n_flagged = count_flagged(self.contamination, len(self.unlabeled_scores_))
        if n_flagged is None:
            n_flagged = count_auto(self._counts)
        return -_threshold(self._scores, n_flagged)

    @property
    def detector_(self) -> QMS22Ensemble:
        """The fitted detector, with its threshold."""
        self._detector.offset_ = self.offset_
        return self._detector

    def flag(self, fdr: float = 0.1) -> da.Array:
        """Flag unlabeled rows with a bound on the expected share of false alarms.

        The rows are counted now, the flags are lazy. See `QMS22Ensemble.flag`.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate, in (0, 1).

        Returns
        -------
        dask.array.Array of bool of shape (n_unlabeled,)
        """
        check_is_fitted(self)
        check_share("fdr", fdr)
        highest = highest_flagged_rank(self._counts, fdr)
        if highest < 0 and (why := why_none(len(self._scores), self._ruler.n_known, fdr)):
            warn_user(why)
        return self._scores.map_blocks(
            _are_flagged, share(self._ruler), highest, meta=np.empty(0, dtype=bool)
        )

    def p_values(self) -> da.Array:
        """Compute a conformal p-value for every unlabeled row; see `QMS22Ensemble.p_values`.

        Returns
        -------
        dask.array.Array of shape (n_unlabeled,)
        """
        check_is_fitted(self)
        return self._scores.map_blocks(_p_values, share(self._ruler), meta=np.empty(0))

    def false_at_most(self, k: int, *, confidence: float = 0.9) -> int:
        """Return how many of the k most suspicious rows are normal at most.

        The bounds for all k hold at once; see `QMS22Ensemble.false_at_most`.

        Parameters
        ----------
        k : int
            A number of rows, as of `top_k`.
        confidence : float, default=0.9
            In (0, 1).

        Returns
        -------
        int
        """
        check_is_fitted(self)
        check_count("k", k, least=0)
        return int(bound_false(self._counts, confidence).of_first(np.array([k]))[0])

    def top_k(self, k: int) -> NDArray[np.intp]:
        """Return the positions of the k most suspicious unlabeled rows; see `QMS22Ensemble.top_k`.

        It takes a pass over the batch.
        """
        check_is_fitted(self)
        check_count("k", k, least=0)
        n_rows = len(self.unlabeled_scores_)
        if k > n_rows:
            raise ValueError(f"k={k} is more than the {n_rows} unlabeled rows there are")
        return top_positions(self.unlabeled_scores_, k)

    def score_samples(self, X: ArrayLike | Collection) -> Any:
        """Score rows by what was learned from the batch; higher is more normal.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy collection where `X` is one
        """
        check_is_fitted(self)
        return _call(self._detector, "score_samples", X)

    def decision_function(self, X: ArrayLike | Collection) -> Any:
        """Compute ``score_samples(X) - offset_``; negative values are outliers."""
        check_is_fitted(self)
        return _call(self.detector_, "decision_function", X)

    def predict(self, X: ArrayLike | Collection) -> Any:
        """Compute -1 for outliers and 1 for normal rows, of what `score_samples` takes."""
        check_is_fitted(self)
        return _call(self.detector_, "predict", X)

    def explain(
        self, X: ArrayLike, *, groups: Groups | None = None, typical: ArrayLike | None = None
    ) -> Explanation:
        """Compute which features make rows in memory suspicious; see `QMS22Ensemble.explain`."""
        check_is_fitted(self)
        return self._detector.explain(X, groups=groups, typical=typical)

    def __sklearn_is_fitted__(self) -> bool:
        return "_detector" in vars(self)

    @cached_property
    def _scores(self) -> da.Array:
        """The scores of the batch, in the memory of the workers: rows are scored only once."""
        return self.unlabeled_scores_.persist()

    @cached_property
    def _ruler(self) -> Ruler:
        """The scores of known-normal rows, as `QMS22Ensemble.score_normal` computes them."""
        detector = self._detector
        learned = LearnedRows.of(detector._known, detector._of_learned)
        # A row that the batch has, too, gets the score that it has there.
        own = np.where(self._batch.has(learned.keys), np.nan, learned.scores)
        n_compared = min(rows_to_compare(len(self.unlabeled_scores_)), MOST_COMPARED)
        rng = np.random.RandomState(self._seed_of_ruler)
        positions = draw_rows(self._normal.n_rows, n_compared, rng)
        learned = LearnedRows(learned.keys, own)
        return Ruler.of(self._normal.score_normal(detector, positions, learned))

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many rows of the batch have each rank."""
        shared = share(self._ruler)
        blocks = self._scores.to_delayed()
        counts: NDArray[np.int64] = add_up([delayed(_count)(block, shared) for block in blocks])
        return counts


def _call(detector: QMS22Ensemble, method: str, X: ArrayLike | Collection) -> Any:
    if isinstance(X, da.Array | dd.DataFrame):
        return score_by_part(detector, method, X)
    return getattr(detector, method)(X)


def _threshold(scores: da.Array, n_flagged: int | None) -> float:
    """Return what `thresholds.threshold` does, of scores on the workers."""
    n_rows = len(scores)
    if n_flagged is None:
        places = (n_rows - 1) * np.array([0.25, 0.75])
        ranks = [*np.floor(places).astype(int), *np.ceil(places).astype(int)]
        ordered = np.array(order_statistics(scores, ranks)).reshape(2, 2)
        first, third = ordered[0] + (places % 1) * (ordered[1] - ordered[0])
        return float(third + 1.5 * (third - first))
    # The lowest flagged score and the highest other one, where there is one.
    first, last = n_rows - n_flagged, n_rows - n_flagged - 1
    ranks = [rank for rank in (first, last) if 0 <= rank < n_rows]
    return threshold(np.array(order_statistics(scores, ranks)), min(n_flagged, 1))


def _p_values(scores: NDArray[np.float64], ruler: Ruler) -> NDArray[np.float64]:
    return ruler.p_values(scores)


def _are_flagged(scores: NDArray[np.float64], ruler: Ruler, highest: int) -> NDArray[np.bool_]:
    return ruler.ranks(scores) <= highest


def _count(scores: NDArray[np.float64], ruler: Ruler) -> NDArray[np.int64]:
    return ruler.count(scores)
