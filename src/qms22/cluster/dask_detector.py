"""`DaskQMS22`: a `QMS22` that is fitted by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any, Self

import dask.array as da
import dask.dataframe as dd
import numpy as np
from distributed import Client, get_client
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qms22._cpm.checkpoint import parameters_of
from qms22._cpm.fit_log import FitPlan
from qms22._cpm.options import SolverOptions, check_range
from qms22._cpm.scaling import FeatureScaler, Mean, RowFunction
from qms22._cpm.sweeps import Fit, Solution, run_sweeps
from qms22._runtime.validation import check_choice
from qms22.cluster.dask_scoring import (
    Collection,
    check_columns,
    score_by_part,
    score_samples,
)
from qms22.cluster.dask_solver import DaskSolver, DistributedTask
from qms22.cluster.dask_table import DaskTable, TablePart, check_sizes, fit_on_draw
from qms22.cluster.medians import FirstLook, between, bracket, typical_values
from qms22.estimators.explain import Explanation, Groups, TypicalValues
from qms22.estimators.qms22 import QMS22
from qms22.estimators.thresholds import count_flagged, threshold


class DaskQMS22(BaseEstimator):  # type: ignore[misc]
    """`QMS22` for Dask arrays and data frames, fitted by all workers of a cluster.

    The result is that of `QMS22` to the bit; see the notes of `qms22.dask`. Like `QMS22` it
    ranks rows and has no p-values.

    Parameters
    ----------
    **parameters
        Those of `QMS22`. With `max_samples`, rows are drawn and learned from in the client's
        memory, which is fast; only then does `n_jobs` count: otherwise every thread of the workers
        takes part. `device` has to be "cpu" and `solver` "native".

    Attributes
    ----------
    detector_ : QMS22
        The fitted detector, without the rows of its fit; `qms22.models.save_model` takes it.
    n_round_trips_ : int
        Round trips between driver and workers, of all restarts together; 0 with `max_samples`.
    unlabeled_scores_, offset_, A_, b_, members_, restarts_, n_iter_, typical_
        Those of `detector_`, as are `n_features_in_` and `feature_names_in_`.

    See Also
    --------
    qms22.QMS22 : For rows in memory; describes the parameters and attributes.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from qms22.dask import DaskQMS22
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(300, 4)), rng.normal(size=(100, 4))
    >>> S[:3] += 6
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     detector = DaskQMS22(random_state=0)
    ...     detector = detector.fit(da.from_array(T, 100), unlabeled=da.from_array(S, 50))
    >>> sorted(detector.top_k(3).tolist())
    [0, 1, 2]
    """

    __init__ = QMS22.__init__  # the same parameters, stored the same way

    def fit(self, X: Collection, y: object = None, *, unlabeled: Collection | None = None) -> Self:
        """Learn the difference between the unlabeled batch and the known-normal rows.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_normal, n_features)
            T: known-normal rows, at least `n_members` − 1 of them.
        y : Ignored
        unlabeled : dask.array.Array or dask.dataframe.DataFrame of shape (n_unlabeled, n_features)
            S: the batch to search, mostly normal.

        Returns
        -------
        self
            The fitted detector.
        """
        if unlabeled is None:
            raise ValueError("pass the batch to search as fit(X, unlabeled=batch)")
        detector = QMS22(**self.get_params())
        options = detector._check_parameters()
        check_choice("device", self.device, ("cpu",))
        check_choice("solver", self.solver, ("native",))
        check_columns(detector, X, "X", reset=True)
        check_columns(detector, unlabeled, "unlabeled")
        normal, batch = DaskTable.of(X, "X"), DaskTable.of(unlabeled, "unlabeled")
        n_round_trips = 0
        if self.max_samples is None:
            n_round_trips = _fit_on_workers(detector, options, normal.parts, batch.parts)
        else:
            fit_on_draw(detector, options, normal, batch)
        scores = -np.asarray(score_samples(detector, unlabeled).compute())
        detector.unlabeled_scores_ = scores
        detector.offset_ = -threshold(scores, count_flagged(self.contamination, len(scores)))
        detector._remove_checkpoint()
        self.detector_ = detector.without_rows()
        self.n_round_trips_ = n_round_trips
        return self

    def __getattr__(self, name: str) -> Any:
        # All other fitted attributes are those of detector_.
        if name.endswith("_") and not name.startswith("_") and "detector_" in vars(self):
            return getattr(self.detector_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def top_k(self, k: int) -> NDArray[np.intp]:
        """Return the positions of the k most suspicious unlabeled rows; see `QMS22.top_k`."""
        check_is_fitted(self)
        return self.detector_.top_k(k)

    def score_samples(self, X: ArrayLike | Collection) -> Any:
        """Compute −η(x), averaged over the restarts; higher is more normal.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy collection where `X` is one
        """
        return self._call("score_samples", X)

    def decision_function(self, X: ArrayLike | Collection) -> Any:
        """Compute ``score_samples(X) - offset_``; negative values are outliers."""
        return self._call("decision_function", X)

    def predict(self, X: ArrayLike | Collection) -> Any:
        """Compute -1 for outliers and 1 for normal rows, of what `score_samples` takes."""
        return self._call("predict", X)

    def explain(
        self, X: ArrayLike, *, groups: Groups | None = None, typical: ArrayLike | None = None
    ) -> Explanation:
        """Compute which features make rows in memory suspicious; see `QMS22.explain`."""
        check_is_fitted(self)
        return self.detector_.explain(X, groups=groups, typical=typical)

    def _call(self, method: str, X: ArrayLike | Collection) -> Any:
        check_is_fitted(self)
        if isinstance(X, da.Array | dd.DataFrame):
            return score_by_part(self.detector_, method, X)
        return getattr(self.detector_, method)(X)


def _fit_on_workers(
    detector: QMS22,
    options: SolverOptions,
    normal: Sequence[TablePart],
    batch: Sequence[TablePart],
) -> int:
    """Fit a detector to all rows, where they are; return the number of round trips."""
    client = _client()
    looks = _compute(client, [part.apply(_look) for part in [*batch, *normal]])
    sizes = [look.n_rows if look else 0 for look in looks]
    n_unlabeled = sum(sizes[: len(batch)])
    check_sizes(detector, sum(sizes) - n_unlabeled, n_unlabeled)
    known = [(look, part) for look, part in zip(looks[len(batch) :], normal, strict=True) if look]
    detector._typical = _typical_values(client, known)
    detector.typical_ = detector._typical.medians

    def mean(values: RowFunction) -> Mean:
        means: list[Mean] = _compute(client, [part.apply(Mean.over, values) for _, part in known])
        return reduce(add, means)

    extent = reduce(add, [look.extent for look, _ in known])
    scaler = FeatureScaler.learn_from(extent, detector.scaling, mean)
    reach = reduce(add, [look.extent for look in looks if look])
    ends = scaler.transform(np.stack([reach.low, reach.high]))
    check_range(float(np.maximum(ends[1], -ends[0]).sum()), options)
    detector._scaler = scaler
    return _solve_restarts(detector, client, options, [*batch, *normal], sizes, n_unlabeled)


def _typical_values(client: Client, known: Sequence[tuple[FirstLook, TablePart]]) -> TypicalValues:
    """Compute the typical values of T by a second look at its parts."""
    looks = [look for look, _ in known]
    low, high = bracket(looks)
    seconds = _compute(client, [part.apply(between, low, high) for _, part in known])
    return typical_values(looks, low, high, seconds)


def _solve_restarts(
    detector: QMS22,
    client: Client,
    options: SolverOptions,
    parts: Sequence[TablePart],
    sizes: list[int],
    n_unlabeled: int,
) -> int:
    """Solve the tasks of all restarts on the workers; return the number of round trips."""
    rng = check_random_state(detector.random_state)
    seeds = rng.randint(2**31 - 1, size=detector.n_restarts).tolist()
    n_features = detector.n_features_in_

    def fingerprint() -> dict[str, Any]:
        digests = _compute(client, [part.apply(_digest) for part in parts])
        about = {"random_state": seeds, "scaling": detector.scaling, "chunks and rows": digests}
        return {**parameters_of(detector.n_members, options), **about}

    plan = FitPlan(
        n_fits=len(seeds),
        max_iter=detector.max_iter,
        n_rows=sum(sizes),
        n_trials=detector.n_members * detector.n_components * (n_features + 1),
        facts={
            "unlabeled": n_unlabeled,
            "features": n_features,
            "device": "cluster",
            "threads_per_fit": sum(client.nthreads().values()),
        },
        fingerprint=fingerprint,
    )
    n_round_trips = 0
    solutions: list[Solution] = []
    with detector._reporting().start(plan) as reporter:
        for number, seed in enumerate(seeds):
            task = DistributedTask(sizes, n_unlabeled, detector.n_members, n_features, seed)
            state = reporter.states[number]
            solver = DaskSolver(client, task, parts, detector._scaler, options, state)
            fit = Fit.of(solver.task, options, reporter.listener(number), state)
            solutions.append(run_sweeps(solver, fit, options))
            n_round_trips += solver.n_round_trips
    detector._keep_solutions(solutions)
    return n_round_trips


def _client() -> Client:
    try:
        return get_client()
    except ValueError as error:
        raise RuntimeError(
            "there is no Dask cluster to fit on; make a distributed.Client first, or set "
            "max_samples to learn from a draw"
        ) from error


def _compute(client: Client, tasks: Sequence[Any]) -> list[Any]:
    results: list[Any] = client.gather(client.compute(list(tasks)))
    return results


def _look(rows: NDArray[np.float64]) -> FirstLook | None:
    return FirstLook.at(rows) if len(rows) else None


def _digest(rows: NDArray[np.float64]) -> str:
    return blake2b(rows.tobytes()).hexdigest()
