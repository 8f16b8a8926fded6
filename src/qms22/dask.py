"""QMS22 on a Dask cluster: rows stay on the workers, results are those of one machine.

``pip install "qms22[cluster]"``. Fit on Dask arrays or data frames, score lazily::

    from distributed import Client
    from qms22.dask import DaskQMS22

    client = Client("scheduler:8786")
    detector = DaskQMS22(random_state=0).fit(normal, unlabeled=batch)
    scores = detector.score_samples(more)  # a Dask collection: nothing is computed yet

`score_samples`, `decision_function` and `predict` do the same with any fitted detector, so that
one fitted in memory, or loaded from a file, scores what fits into no memory.

Notes
-----
**Exactness.** ``A_``, ``b_`` and all scores have the bits of `QMS22` fitted on the same rows in one
memory, whatever the number of workers and the chunks: workers hold whole blocks of
the kernel's rows and send the sums of each block, which are added in the kernel's order. The first
step of a fit therefore brings rows together in blocks; no row goes to the client.

**Round trips.** A sweep has n_members × n_components × (n_features + 1) entries to try, each of
which depends on what became of the one before. Both directions of an entry are one trial, and a
round trip tries several entries along the way that the sweep before makes likely: where that was
wrong, the trials after it are made again. How far to look ahead follows from the times measured.
In ``benchmarks/cluster.py``, with four worker processes on two busy cores, the 770 entries of a
sweep over 20,000 rows took 270 round trips of half a millisecond. From some 50,000 rows per worker
on, trials take about as long as messages, and most round trips try one entry.

**When to use it.** For rows that fit into no single memory. Where they do fit, `QMS22` is the
simpler choice, and has no messages to wait for.

**Lost workers.** A sweep is a function of ``A`` and ``b`` alone. Where a worker is lost, its rows
are computed anew from the Dask graph, on other workers, and the sweep starts again: the result is
the same. What is read from files is read again then, and for each pass over the data: two, or
four with ``scaling="standard"``, one per restart and one for the scores of the batch. ``persist()``
what fits into the workers' memory. A graph that gives other rows each time, such as a shuffle
without a seed, has no such result.

**Limits.** The client and one worker plan with a dozen bytes per row, of which the client keeps
four; it also holds eight per row of the batch, for ``unlabeled_scores_``. A trial sends 16 bytes
per 2,048 rows to the driver. Workers talk to each other on ports of their own, in plain text: to a
driver that has the fit's secret token, and of sums and decisions, not of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any, NoReturn, Protocol, Self, TypeAlias

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, get_client
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from qms22._cpm.checkpoint import parameters_of
from qms22._cpm.fit_log import FitPlan
from qms22._cpm.options import check_range
from qms22._cpm.scaling import FeatureScaler, Mean, RowFunction
from qms22._cpm.sweeps import Fit, Solution, run_sweeps
from qms22._runtime.chunks import draw_rows
from qms22._runtime.validation import check_choice
from qms22.cluster.dask_solver import DaskSolver, DetectionProblem, Part
from qms22.cluster.medians import FirstLook, between, bracket, typical_values
from qms22.cluster.scoring import without_batch
from qms22.estimators.qms22 import QMS22
from qms22.estimators.thresholds import count_flagged, threshold

__all__ = ["DaskQMS22", "decision_function", "predict", "score_samples"]

Collection: TypeAlias = da.Array | dd.DataFrame


class Detector(Protocol):
    """Any fitted detector with the methods of scikit-learn's."""

    def score_samples(self, X: Any) -> Any: ...
    def decision_function(self, X: Any) -> Any: ...
    def predict(self, X: Any) -> Any: ...


def score_samples(detector: Detector, X: Collection) -> da.Array | dd.Series:
    """Compute −η(x) of every row, lazily; higher is more normal.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods.
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)

    Returns
    -------
    dask.array.Array or dask.dataframe.Series
        Chunk by chunk as `X`; a series has the index of `X`.
    """
    return _by_part(detector, "score_samples", X, np.dtype(np.float64))


def decision_function(detector: Detector, X: Collection) -> da.Array | dd.Series:
    """Compute ``score_samples(X) - offset_``, lazily; negative values are outliers.

    Parameters
    ----------
    detector : fitted detector
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)

    Returns
    -------
    dask.array.Array or dask.dataframe.Series
    """
    return _by_part(detector, "decision_function", X, np.dtype(np.float64))


def predict(detector: Detector, X: Collection) -> da.Array | dd.Series:
    """Tell outliers (-1) from normal rows (1), lazily.

    Parameters
    ----------
    detector : fitted detector
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)

    Returns
    -------
    dask.array.Array or dask.dataframe.Series
    """
    return _by_part(detector, "predict", X, np.dtype(np.int64))


class DaskQMS22(QMS22):
    """`QMS22` for Dask arrays and data frames, fitted by all workers of a cluster.

    The result is that of `QMS22` to the bit; see the notes of `qms22.dask`. But no rows are kept to
    calibrate with: there are no p-values and what rests on them, and ``contamination="auto"`` flags
    scores above the third quartile of the batch by more than 1.5 times the distance between the
    quartiles.

    Parameters
    ----------
    **parameters
        Those of `QMS22`. `max_samples` is the fast road: rows are drawn and learned from in the
        client's memory. `n_jobs` counts for it alone: otherwise every thread of the workers takes
        part. `device` has to be "cpu" and `solver` "native".

    Attributes
    ----------
    n_round_trips_ : int
        Round trips between driver and workers, of all restarts together; 0 with `max_samples`.

    See Also
    --------
    QMS22 : For rows in memory; has all other parameters and attributes.

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

    def fit(self, X: Collection, y: object = None, *, unlabeled: Collection | None = None) -> Self:
        """Learn what tells the unlabeled batch from the known-normal rows.

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
        self._check_parameters()
        _check_columns(self, X, "X", reset=True)
        _check_columns(self, unlabeled, "unlabeled")
        normal, batch = _parts(X, "X"), _parts(unlabeled, "unlabeled")
        if self.max_samples is None:
            self._fit_all(normal, batch)
        else:
            self._fit_draw(normal, batch)
        self.unlabeled_scores_ = -np.asarray(score_samples(self, unlabeled).compute())
        n_flagged = count_flagged(self.contamination, len(self.unlabeled_scores_))
        self.offset_ = -threshold(self.unlabeled_scores_, n_flagged)
        self._remove_checkpoint()
        return self

    def score_samples(self, X: ArrayLike | Collection) -> Any:
        """Compute −η(x), averaged over the restarts; higher is more normal.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy collection where `X` is one
        """
        if isinstance(X, da.Array | dd.DataFrame):
            return score_samples(self, X)
        return super().score_samples(X)

    def predict(self, X: ArrayLike | Collection) -> Any:
        """Tell outliers (-1) from normal rows (1).

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy collection where `X` is one
        """
        if isinstance(X, da.Array | dd.DataFrame):
            return predict(self, X)
        return super().predict(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("device", self.device, ("cpu",))
        check_choice("solver", self.solver, ("native",))

    def _calibrated(self) -> NoReturn:
        raise NotImplementedError(
            "p-values and what rests on them need the rows in one memory: fit qms22.QMS22 there"
        )

    def _fit_all(self, normal: Sequence[Part], batch: Sequence[Part]) -> None:
        """Learn from all rows, on the workers."""
        options = self._solver_options(n_threads=1)
        client = _client()
        looks = _compute(client, [part.apply(_look) for part in [*batch, *normal]])
        sizes = [look.n_rows if look else 0 for look in looks]
        n_unlabeled, n_normal = sum(sizes[: len(batch)]), sum(sizes[len(batch) :])
        self._check_sizes(n_normal, n_unlabeled)
        reach = reduce(add, [look.extent for look in looks if look])
        of_normal = zip(looks[len(batch) :], normal, strict=True)
        full = [(look, part) for look, part in of_normal if look]
        looks, parts = [look for look, _ in full], [part for _, part in full]
        extent = reduce(add, [look.extent for look in looks])
        low, high = bracket(looks)
        seconds = _compute(client, [part.apply(between, low, high) for part in parts])
        self._typical = typical_values(looks, low, high, seconds)
        self.typical_ = self._typical.medians

        def mean(values: RowFunction) -> Mean:
            means: list[Mean] = _compute(client, [part.apply(Mean.over, values) for part in parts])
            return reduce(add, means)

        self._scaler = FeatureScaler.learn_from(extent, self.scaling, mean)
        ends = self._scaler.transform(np.stack([reach.low, reach.high]))
        check_range(float(np.maximum(ends[1], -ends[0]).sum()), options)

        self.n_round_trips_ = 0
        solutions: list[Solution] = []
        rng = check_random_state(self.random_state)
        seeds = rng.randint(2**31 - 1, size=self.n_restarts).tolist()
        n_features = len(extent.low)

        def fingerprint() -> dict[str, Any]:
            digests = _compute(client, [part.apply(_digest) for part in [*batch, *normal]])
            about = {"random_state": seeds, "scaling": self.scaling, "chunks and rows": digests}
            return {**parameters_of(self.n_members, options), **about}

        plan = FitPlan(
            n_fits=len(seeds),
            max_iter=self.max_iter,
            n_rows=sum(sizes),
            n_trials=self.n_members * self.n_components * (n_features + 1),
            facts={
                "unlabeled": n_unlabeled,
                "features": n_features,
                "device": "cluster",
                "threads_per_fit": sum(client.nthreads().values()),
            },
            fingerprint=fingerprint,
        )
        with self._reporting().start(plan) as reporter:
            for number, seed in enumerate(seeds):
                problem = DetectionProblem(sizes, n_unlabeled, self.n_members, n_features, seed)
                state = reporter.states[number]
                solver = DaskSolver(
                    client, problem, [*batch, *normal], self._scaler, options, state
                )
                fit = Fit.of(solver.task, options, reporter.listener(number), state)
                solutions.append(run_sweeps(solver, fit, options))
                self.n_round_trips_ += solver.n_round_trips
        self.restarts_ = tuple(solution.members for solution in solutions)
        self.members_ = self.restarts_[0]
        self.A_, self.b_ = self.members_.A, self.members_.b
        self.n_iter_ = max(solution.n_iter for solution in solutions)

    def _fit_draw(self, normal: Sequence[Part], batch: Sequence[Part]) -> None:
        """Learn from rows drawn from T, then S, in memory."""
        sizes = dask.compute(*(part.apply(len) for part in [*normal, *batch]))
        of_normal, of_batch = sizes[: len(normal)], sizes[len(normal) :]
        self._check_sizes(sum(of_normal), sum(of_batch))
        rng = check_random_state(self.random_state)
        drawn = [
            _draw(parts, of_parts, self.max_samples, rng)
            for parts, of_parts in ((normal, of_normal), (batch, of_batch))
        ]
        parameters = self.get_params()
        parameters.update(random_state=rng, contamination="auto", max_samples=None)
        local = QMS22(**parameters).fit(drawn[0], unlabeled=drawn[1])
        for name in ("typical_", "members_", "restarts_", "A_", "b_", "n_iter_"):
            setattr(self, name, getattr(local, name))
        self._scaler, self._typical = local._scaler, local._typical
        self.n_round_trips_ = 0

    def _check_sizes(self, n_normal: int, n_unlabeled: int) -> None:
        for name, n_rows in (("X", n_normal), ("unlabeled", n_unlabeled)):
            if not n_rows:
                raise ValueError(f"{name} has no rows; give at least one")
        self._check_drawn(n_normal)
        count_flagged(self.contamination, n_unlabeled)


def _check_columns(estimator: BaseEstimator, X: Any, name: str, *, reset: bool = False) -> None:
    """Compare a collection's columns with those of the fit, without looking at its rows."""
    if isinstance(X, dd.DataFrame):
        for column, dtype in X.dtypes.items():
            if not pd.api.types.is_numeric_dtype(dtype):
                raise ValueError(
                    f"column {column!r} of {name} is not numeric but {dtype}; encode it, for "
                    "example with dask.dataframe.get_dummies, or drop it"
                )
        validate_data(estimator, X._meta, skip_check_array=True, reset=reset)
        return
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} must be a Dask array or data frame; got {type(X).__name__}, for which there "
            "is qms22.QMS22"
        )
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, rows and columns; it has {X.ndim}")
    if np.isnan(X.shape[1]) or (X.numblocks[1] > 1 and np.isnan(X.shape[0])):
        raise ValueError(
            f"{name} has chunks of unknown size; call {name}.compute_chunk_sizes() first"
        )
    # An array of no rows, for the number of its columns.
    validate_data(estimator, np.empty((0, X.shape[1])), skip_check_array=True, reset=reset)


def _whole_rows(X: da.Array) -> da.Array:
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _by_part(
    detector: Any, method: str, X: Collection, dtype: np.dtype[Any]
) -> da.Array | dd.Series:
    light = without_batch(detector, method)
    _check_columns(detector, X, "X")
    shared = dask.delayed(light)  # one node of the graph for all parts
    if isinstance(X, da.Array):
        return _whole_rows(X).map_blocks(
            _score_block, shared, method, dtype, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype)
        )
    meta = pd.Series(np.empty(0, dtype), index=X._meta.index, name=method)
    return X.map_partitions(_score_partition, shared, method, dtype, meta=meta)


def _score_block(
    block: NDArray[Any], detector: Any, method: str, dtype: np.dtype[Any]
) -> NDArray[Any]:
    scores: NDArray[Any] = getattr(detector, method)(block) if len(block) else np.empty(0, dtype)
    return scores


def _score_partition(partition: Any, detector: Any, method: str, dtype: np.dtype[Any]) -> pd.Series:
    scores = _score_block(partition, detector, method, dtype)
    return pd.Series(scores, index=partition.index, name=method)


def _client() -> Client:
    try:
        return get_client()
    except ValueError as error:
        raise RuntimeError(
            "there is no Dask cluster to fit on; make a distributed.Client first, or set "
            "max_samples to learn from a draw"
        ) from error


def _parts(X: Collection, name: str) -> list[Part]:
    tables = _whole_rows(X) if isinstance(X, da.Array) else X
    delayed_parts = np.ravel(tables.to_delayed())
    return [Part(table, f"part {number} of {name}") for number, table in enumerate(delayed_parts)]


def _compute(client: Client, tasks: Sequence[Any]) -> list[Any]:
    results: list[Any] = client.gather(client.compute(list(tasks)))
    return results


def _look(rows: NDArray[np.float64]) -> FirstLook | None:
    return FirstLook.at(rows) if len(rows) else None


def _digest(rows: NDArray[np.float64]) -> str:
    return blake2b(rows.tobytes()).hexdigest()


def _draw(
    parts: Sequence[Part], sizes: Sequence[int], max_samples: int | None, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Draw rows of a table and bring them into memory."""
    ends = np.cumsum(sizes)
    positions = draw_rows(int(ends[-1]), max_samples, rng)
    of_parts = np.split(positions, np.searchsorted(positions, ends[:-1]))
    drawn = dask.compute(
        *(
            part.apply(np.take, own - (end - size), 0)
            for part, size, end, own in zip(parts, sizes, ends, of_parts, strict=True)
            if own.size
        )
    )
    rows: NDArray[np.float64] = np.concatenate(drawn)
    return rows
