"""One detector in many threads: the answers of one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

from qms22 import QMS22Ensemble

N_THREADS = 8

# Rounded, so that scores tie.
RNG = np.random.default_rng(0)
T, S = (np.round(RNG.normal(size=(n_rows, 3)), 1) for n_rows in (200, 40))
S[:4] += 5


def fitted(**options: Any) -> QMS22Ensemble:
    return QMS22Ensemble(max_iter=3, random_state=0, **options).fit(T, unlabeled=S)


def in_many_threads(call: Callable[[], Any]) -> list[Any]:
    """Return the results of calls that begin at the same time."""
    start = threading.Barrier(N_THREADS)

    def wait_and_call(_: int) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(wait_and_call, range(N_THREADS)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda detector: detector.p_values(),
        lambda detector: detector.flag(0.2),
        lambda detector: detector.false_at_most(),
        lambda detector: detector.score_normals(),
        lambda detector: detector.verdict(),
    ],
    ids=["p_values", "flag", "false_at_most", "score_normals", "verdict"],
)
def test_same_answers(ask: Callable[[Any], Any]) -> None:
    expected = ask(fitted())
    detector = fitted(contamination=5)  # nothing is asked in the fit
    for answer in in_many_threads(lambda: ask(detector)):
        np.testing.assert_array_equal(answer, expected)


def test_is_fitted_while_another_thread_computes_an_attribute() -> None:
    detector: Any = fitted()
    is_done = threading.Event()

    def add_and_remove() -> None:
        while not is_done.is_set():
            detector.__dict__["offset_"] = 0.0
            del detector.__dict__["offset_"]

    other = threading.Thread(target=add_and_remove)
    other.start()
    try:
        for _ in range(2_000):
            check_is_fitted(detector)
    finally:
        is_done.set()
        other.join()
