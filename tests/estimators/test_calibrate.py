"""`qms22.calibrate`: the bound on false discoveries for a user's own pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from promise import CASES
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from qms22 import QMS22, QMS22Ensemble, TabularEncoder, calibrate

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 2, "random_state": 0}


@pytest.fixture(autouse=True)
def routing() -> Iterator[None]:
    """Let pipelines hand the batch on, and transform it on the way."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def pipeline(first: Any, detector: QMS22 | QMS22Ensemble) -> Pipeline:
    steps = [("first", first), ("detect", detector.set_fit_request(unlabeled=True))]
    return Pipeline(steps, transform_input=["unlabeled"])


def test_a_pipeline_is_fitted_as_one_in_each_split() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(300, 3)), rng.normal(size=(60, 3))
    batch[:6] += 6
    seen: list[tuple[int, int]] = []

    class Noted(StandardScaler):  # type: ignore[misc]
        def fit(self, X: Any, y: object = None) -> Any:
            seen.append((len(X), len({*map(tuple, X)} & {*map(tuple, normal)})))
            return super().fit(X)

    steps = pipeline(Noted(), QMS22(**QUICK))
    calibration = calibrate(steps, normal, unlabeled=batch, random_state=0)
    assert not seen  # nothing is fitted before it is needed
    flagged = calibration.flag(fdr=0.2)
    assert flagged[:6].all()
    assert flagged.sum() <= 9
    assert calibration.n_held_out == 100
    assert seen == [(200, 200)]  # the normal rows that are not held out, and no other row
    p_values = calibration.p_values(n_splits=2)
    assert len(seen) == 2
    assert p_values[:6].max() < p_values[6:].mean()
    again = calibrate(steps, normal, unlabeled=batch, random_state=0)
    np.testing.assert_array_equal(again.p_values(n_splits=2), p_values)
    share, low, high = calibration.estimate_contamination()
    assert 0 <= low <= share <= high < 1
    assert high > 6 / 60


def test_frames_of_two_libraries_get_the_same_answer() -> None:
    rng = np.random.default_rng(0)

    def table(n_rows: int) -> pd.DataFrame:
        return pd.DataFrame(
            {"size": rng.normal(size=n_rows), "colour": rng.choice(["red", "blue"], size=n_rows)}
        )

    normal, batch = table(200), table(40)
    steps = pipeline(TabularEncoder(), QMS22(**QUICK))
    expected = calibrate(steps, normal, unlabeled=batch, random_state=0).p_values()
    others = (pl.from_pandas(frame) for frame in (normal, batch))
    found = calibrate(steps, next(others), unlabeled=next(others), random_state=0).p_values()
    np.testing.assert_array_equal(found, expected)


def test_the_bound_holds_for_an_encoder_of_scikit_learn() -> None:
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=False
    )
    detector = QMS22Ensemble(n_splits=2, **QUICK)
    n_flagged = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        normal, batch = (CASES[0].draw(n, rng)[["category 0"]] for n in (600, 100))
        steps = pipeline(encoder, detector)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calibration = calibrate(steps, normal, unlabeled=batch, random_state=seed)
            n_flagged.append(calibration.flag(0.1).sum())
    assert np.count_nonzero(n_flagged) <= 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"fdr": 0.0}, "fdr must be a share"),
        ({"fdr": 0.1, "n_splits": 0}, "n_splits must be a whole number"),
    ],
)
def test_refusals(call: dict[str, Any], words: str) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=words):
        calibrate(QMS22(**QUICK), rows, unlabeled=rows).flag(**call)
