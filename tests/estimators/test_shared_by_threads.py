"""One detector in many threads: the answers of one thread."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

from qms22 import QMS22, QMS22Ensemble
from qms22.estimators.batch_detector import BatchDetector

N_THREADS = 8

# Rounded, so that scores tie and chance breaks the ties.
RNG = np.random.default_rng(0)
T, S = (np.round(RNG.normal(size=(n_rows, 3)), 1) for n_rows in (200, 40))
S[:4] += 5


def fitted(detector_type: type[BatchDetector]) -> BatchDetector:
    return detector_type(max_iter=3, random_state=0).fit(T, unlabeled=S)


def in_many_threads(call: Callable[[], Any]) -> list[Any]:
    """Return the results of calls that begin at the same time."""
    start = threading.Barrier(N_THREADS)

    def wait_and_call(_: int) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(wait_and_call, range(N_THREADS)))


@pytest.mark.parametrize("detector_type", [QMS22, QMS22Ensemble])
@pytest.mark.parametrize(
    "ask",
    [
        lambda detector: detector.p_values(n_splits=3),
        lambda detector: detector.flag(0.2),
        lambda detector: detector.agreement(0.2, method="split"),
        lambda detector: detector.estimate_contamination(n_splits=2),
        lambda detector: detector.predict(S),
    ],
    ids=["p_values", "flag", "agreement", "estimate_contamination", "predict"],
)
def test_same_answers(detector_type: type[BatchDetector], ask: Callable[[Any], Any]) -> None:
    expected = ask(fitted(detector_type))
    detector = fitted(detector_type)
    for answer in in_many_threads(lambda: ask(detector)):
        np.testing.assert_array_equal(answer, expected)


def test_the_fit_of_a_split_is_made_once() -> None:
    detector = fitted(QMS22)
    calibration: Any = detector._calibration
    score, splits = calibration._score_split, []

    def count_and_score(split: Any) -> Any:
        splits.append(split)
        return score(split)

    calibration._score_split = count_and_score
    in_many_threads(lambda: detector.p_values(n_splits=3))
    assert len(splits) == 3


def test_the_order_of_a_split_is_the_same_at_every_call() -> None:
    detector: Any = fitted(QMS22)
    detector.p_values()
    split = detector._calibration._splits[0].split
    np.testing.assert_array_equal(split.make_order(), split.make_order())


def test_is_fitted_while_another_thread_computes_an_attribute() -> None:
    detector: Any = fitted(QMS22)
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


def test_copies_of_a_detector_compute_on_their_own() -> None:
    detector: Any = fitted(QMS22Ensemble)
    expected = detector.p_values(n_splits=2)
    for copied in (deepcopy(detector), pickle.loads(pickle.dumps(detector))):
        assert copied._calibration._lock is not detector._calibration._lock
        np.testing.assert_array_equal(copied.p_values(n_splits=2), expected)
        np.testing.assert_array_equal(copied.flag(0.2), detector.flag(0.2))
