"""The compiled kernel under several Python threads, with and without a global interpreter lock."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tasks import random_task

from qms22 import _core
from qms22._cpm.backends import solve
from qms22._cpm.solver_options import SolverOptions
from qms22.estimators.forest import BinnedRows, fit_forest
from qms22.estimators.nearest import mean_log_distances

# All threads read these arrays.
ROWS = np.random.RandomState(0).normal(size=(2_000, 4))
LABELS = (np.arange(len(ROWS)) % 2).astype(float)
TASK = random_task("detection", 4, n_features=3, seed=1, n_rows=2_000)


def fit(number: int) -> bytes:
    solution = solve(TASK, SolverOptions(n_components=1 + number % 3, max_iter=2, n_threads=2))
    return solution.members.A.tobytes() + solution.members.b.tobytes()


def member_values(number: int) -> bytes:
    A, b = np.full((2, 3, 4), 0.1 * number), np.ones((2, 3))
    return _core.member_values(ROWS, A, b, floor=1e-9).tobytes()


def forest(number: int) -> bytes:
    rows = BinnedRows.of(ROWS)
    grown = fit_forest(rows, LABELS, n_trees=10, seed=number, n_threads=2)
    return grown.value.tobytes() + grown.score_bins(rows.bins, n_threads=2).tobytes()


def nearest(number: int) -> bytes:
    return mean_log_distances(ROWS[:200], ROWS[number:], n_threads=2).tobytes()


@pytest.mark.parametrize("work", [fit, member_values, forest, nearest])
def test_python_threads_compute_the_bits_of_one(work: Callable[[int], bytes]) -> None:
    numbers = range(6)
    expected = [work(number) for number in numbers]
    assert len(set(expected[:3])) == 3
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, [*numbers] * 4)) == expected * 4


def test_the_interpreter_goes_on_while_the_kernel_works() -> None:
    rows = np.random.RandomState(0).normal(size=(20_000, 8))
    worker = threading.Thread(target=mean_log_distances, args=(rows, rows))
    worker.start()
    turns = 0
    while worker.is_alive():
        worker.join(timeout=0.001)
        turns += 1
    assert turns > 10


def test_the_kernel_does_not_turn_on_the_lock_of_a_free_threaded_interpreter() -> None:
    code = "import sys, qms22._core; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    has_lock = not sysconfig.get_config_var("Py_GIL_DISABLED")
    assert result.stdout.strip() == str(has_lock)
