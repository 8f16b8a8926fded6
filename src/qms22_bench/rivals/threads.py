"""Work in threads, with `n_jobs` as the only limit on the cores in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

_ROWS_PER_BATCH = 1024

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@cache
def _threadpools() -> ThreadpoolController:
    """Find the thread pools of the loaded libraries; too slow to do for every item."""
    return ThreadpoolController()


def in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], n_jobs: int | None
) -> list[_Result]:
    """Call a function for every item, in `n_jobs` threads, and return the results in order.

    OpenMP and BLAS are limited to one thread each meanwhile. They would ignore `n_jobs`, and with
    several threads k-means sums its centers in an order that changes from run to run.
    """

    def call(item: _Item) -> _Result:
        # OpenMP has a limit for every thread, BLAS one for the whole process.
        with _threadpools().limit(limits=1, user_api="openmp"):
            return function(item)

    tasks = list(items)
    n_threads = min(effective_n_jobs(n_jobs), len(tasks))
    with _threadpools().limit(limits=1, user_api="blas"):
        if n_threads == 1:
            return [call(task) for task in tasks]
        parallel = Parallel(n_jobs=n_threads, require="sharedmem")
        results: list[_Result] = parallel(delayed(call)(task) for task in tasks)
    return results


def in_batches(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    rows: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Call a function for batches of rows, in `n_jobs` threads and bounded memory."""
    batches = gen_batches(len(rows), _ROWS_PER_BATCH)
    return np.concatenate(in_threads(lambda batch: function(rows[batch]), batches, n_jobs))
