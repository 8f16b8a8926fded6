"""The base of the estimators: parameters of CPM, and scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from qms22._cpm.backends import BACKENDS, Backend
from qms22._cpm.solver_options import SolverOptions
from qms22._runtime.arrays import array_module, as_host
from qms22._runtime.devices import resolve_device
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import check_choice

# What a fitted detector computes from its rows on first use.
COMPUTED = ("_ruler", "_compared", "_moved", "_of_learned", "_of_batch")

# What it keeps of its rows: T, the batch, the rows of T that were learned from, and which of those
# each part of an ensemble has held out.
ROWS_OF_FIT = ("_normal", "_batch", "_known", "_held_out", *COMPUTED)

EstimatorT = TypeVar("EstimatorT", bound=BaseEstimator)


class QMSEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that solves QMS tasks, with parameters named as those of `SolverOptions`."""

    def _solver_options(self, n_threads: int) -> SolverOptions:
        """Check the parameters and return those of the solver, with its defaults for "auto"."""
        parameters = self.get_params(deep=False)
        parameters["device"] = resolve_device(self.device)
        check_choice("scaling", parameters.get("scaling"), ("maxabs", "standard", None))
        names = parameters.keys() & {field.name for field in fields(SolverOptions)}
        given = {name: parameters[name] for name in names if parameters[name] != "auto"}
        return SolverOptions(**given, n_threads=n_threads)

    @abstractmethod
    def _scorer(self, backend: Backend) -> Callable[[Any], Any]:
        """Load the fitted model on a device; return a function from rows to their scores."""

    def _scores(self, table: LazyRows, device: str | None = None) -> NDArray[np.float64]:
        """Score all rows of a table; scores are where the rows are.

        `device` is the resolved one, where the caller knows it. Workers of a cluster score their
        own rows, on their own devices.
        """
        if table.is_distributed:
            light = for_workers(self)
            return np.concatenate(table.map(lambda rows: light._scores(LazyRows(rows))))
        backend = BACKENDS[device or resolve_device(self.device)]
        scores: NDArray[np.float64] = self._score_chunks(self._scorer(backend), table, backend)
        return scores if table.is_on_gpu else as_host(scores)

    def _score_chunks(self, score: Callable[[Any], Any], table: LazyRows, backend: Backend) -> Any:
        """Call a scorer with the rows of a table, chunk by chunk; scores stay on the device."""

        def score_chunk(chunk: slice) -> Any:
            return score(table.read(chunk, backend.device))

        chunks = backend.row_chunks(table.shape, table.is_on_gpu)
        if len(chunks) == 1:
            return score_chunk(chunks[0])
        n_threads = effective_n_jobs(self.n_jobs) if backend.uses_threads else 1
        parallel = Parallel(min(n_threads, len(chunks)), require="sharedmem")
        parts = parallel(delayed(score_chunk)(chunk) for chunk in chunks)
        return array_module(parts[0]).concatenate(parts)


def for_workers(detector: EstimatorT) -> EstimatorT:
    """Copy a fitted detector, to be sent to workers that score the parts of a table.

    The copy has no rows and scores of the fit, and the cluster decides about threads.
    """
    light = copy(detector)
    for name in ("unlabeled_scores_", *ROWS_OF_FIT):
        vars(light).pop(name, None)
    if hasattr(light, "n_jobs"):
        light.n_jobs = None
    return light
