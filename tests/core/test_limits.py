"""What the compiled core refuses, and what it does where the system gives it too little."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from qms22 import _core

RULES: dict[str, Any] = {"alpha": 0.5, "floor": 1e-12, "step_a": 1e-3, "step_b": 1e-2}


def solver(group: np.ndarray, n_members: int = 2, n_components: int = 2) -> _core.Solver:
    a = np.zeros((n_members, n_components, 3))
    rows, weights = np.ones((len(group), 3)), np.ones((n_members, 1))
    return _core.Solver(rows, group, weights, None, a, np.ones(a.shape[:2]), tolerance=0.0, **RULES)


def test_solver_needs_members_and_components() -> None:
    group = np.zeros(10, dtype=np.int32)
    with pytest.raises(ValueError, match="group_weight has no members"):
        solver(group, n_members=0)
    with pytest.raises(ValueError, match="n_components must be at least 1"):
        solver(group, n_components=0)


@pytest.mark.parametrize(("shape", "n_members"), [((2**59, 1), 32), ((5, 2**56), 0)])
def test_values_of_more_rows_than_memory(shape: tuple[int, int], n_members: int) -> None:
    rows = np.broadcast_to(np.zeros(1), shape)
    a = np.zeros((n_members, 1, shape[1]))
    with pytest.raises(MemoryError):
        _core.member_values(rows, a, np.zeros((n_members, 1)), floor=1e-12)


def test_groups_that_another_thread_changes() -> None:
    """Groups read beyond their weights end the process: no assertion would see it."""
    group = np.zeros(300_000, dtype=np.int32)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for number in (2**30, 0):
                group.fill(number)
                time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            with suppress(ValueError):  # the copy may have numbers without a weight
                solver(group).sweep()
    finally:
        done.set()
        writer.join()


FEW_THREADS = """
import resource
import numpy as np
from qms22 import _core

rng = np.random.RandomState(0)
rows = rng.normal(size=(40 * _core.BLOCK_ROWS, 2))
group = np.zeros(len(rows), dtype=np.int32)
bins = rng.randint(0, 256, size=(3, 5000)).astype(np.uint8)
labels = (rng.randint(0, 2, size=5000) * _core.LABEL_ONE).astype(np.uint16)

def results(n_threads):
    solver = _core.Solver(rows, group, np.ones((2, 1)), None, np.zeros((2, 1, 2)), np.ones((2, 1)),
                          alpha=0.5, floor=1e-12, tolerance=0.0, step_a=1e-3, step_b=1e-2,
                          n_threads=n_threads)
    solver.sweep()
    forest = _core.grow_forest(bins, labels, n_trees=40, max_features=1, min_leaf=200, seed=0,
                               n_threads=n_threads)
    products = _core.nearest_products(rows[:4000], rows[:50], skip=None, floor=0.0,
                                      n_threads=n_threads)
    return [array.tobytes() for array in (solver.coefficients, *forest, products)]

expected = results(1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
# Enough for four threads, with stacks of 64 MiB, and for all else.
resource.setrlimit(resource.RLIMIT_AS, (used + 9 * 2**25, used + 9 * 2**25))
assert results(40) == expected
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory differ between systems")
def test_fewer_threads_than_asked_for() -> None:
    limit = f"ulimit -s 65536 && exec {sys.executable} -c '{FEW_THREADS}'"
    done = subprocess.run(["sh", "-c", limit], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
