"""Work shared out to threads, so that `n_jobs` alone decides how many cores are busy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from threadpoolctl import (  # type: ignore[import-untyped, unused-ignore]
    ThreadpoolController,
)

_ROWS_PER_BATCH = 1024

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _threadpools() -> ThreadpoolController:
    """Find the thread pools of the loaded libraries; too slow to do for every task."""
    return ThreadpoolController()


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> list[Result]:
    """Call a function for every item, in `n_jobs` threads, and give the results in order.

    The threads of OpenMP and BLAS are held at one each meanwhile. They would ignore `n_jobs`, and
    with several of them k-means adds up its centers in an order that changes from run to run.
    """

    def call(item: Item) -> Result:
        # OpenMP keeps this number for every thread of ours, BLAS for the whole process.
        with _threadpools().limit(limits=1, user_api="openmp"):
            return function(item)

    tasks = list(items)
    n_threads = min(effective_n_jobs(n_jobs), len(tasks))
    with _threadpools().limit(limits=1, user_api="blas"):
        if n_threads == 1:
            return [call(task) for task in tasks]
        parallel = Parallel(n_jobs=n_threads, require="sharedmem")
        results: list[Result] = parallel(delayed(call)(task) for task in tasks)
    return results


def in_batches(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    rows: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Compute something of every row, batch by batch, in `n_jobs` threads and bounded memory."""
    batches = gen_batches(len(rows), _ROWS_PER_BATCH)
    return np.concatenate(in_threads(lambda batch: function(rows[batch]), batches, n_jobs))
