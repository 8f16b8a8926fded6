"""Compilation of what an ensemble needs on a GPU, side by side, before its first fit there.

CuPy compiles a kernel for every operation when it is first called, one after the other: more than
fifty, which takes ten seconds on a new machine. Here small tables are scored by one view in each
thread, so that as many kernels are compiled at the same time as there are threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np

from qms22._cpm.backends import choose_backend
from qms22._cpm.members import MemberFunctions
from qms22._cpm.scaling import fit_scaler_and_stack
from qms22._runtime.arrays import as_host
from qms22._runtime.devices import need_cupy, to_device
from qms22._runtime.lazy_rows import LazyRows
from qms22.estimators.held_out import HeldOutScores
from qms22.estimators.learning import learn_covariance, learn_distances, learn_forest
from qms22.estimators.views import MembersPart, MembersView, View

_N_ROWS, _N_FEATURES = 64, 3


@cache
def warm_up(dtype: str, of_rows: str) -> None:
    """Compile the kernels of scaling and of all views, once in a process.

    Parameters
    ----------
    dtype : {"float32", "float64"}
        Of the detector.
    of_rows : str
        The type of the rows that will be scored.
    """
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(_N_ROWS, _N_FEATURES))
    scaler, scaled = fit_scaler_and_stack(rows, rows, "standard", "cpu")
    members = MemberFunctions(rng.normal(size=(3, 2, _N_FEATURES)), rng.normal(size=(3, 2)), 1e-12)
    part = MembersPart(members, HeldOutScores.of(rng.normal(size=_N_ROWS)))
    views: list[View] = [
        MembersView(scaler, (part, part)),
        learn_distances(scaler, rows, dtype, rng, 1),
        learn_covariance(scaler, scaled[:_N_ROWS], rng),
        learn_forest(rows, rows + 1.0, np.ones(_N_ROWS), 0, 1),
    ]
    table = LazyRows(rows.astype(of_rows))
    device = need_cupy().cuda.Device()
    works: list[Callable[[], object]] = [partial(_score, view, table, device) for view in views]
    works.append(partial(_learn, rows, device))
    with ThreadPoolExecutor(len(works)) as threads:
        for work in [threads.submit(work) for work in works]:
            work.result()


def _score(view: View, table: LazyRows, device: object) -> None:
    with device:  # type: ignore[attr-defined]
        backend = choose_backend("cuda")
        as_host(2.0 * view.scorer(backend)(table.read(slice(None), "cuda")))


def _learn(rows: np.ndarray, device: object) -> None:
    with device:  # type: ignore[attr-defined]
        on_device = to_device(rows, "cuda")
        scaler, scaled = fit_scaler_and_stack(on_device, on_device, "standard", "cuda")
        learn_covariance(scaler, scaled[len(rows) :], np.random.RandomState(0))
