"""What all novelty detectors have in common."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from normal_rows import Rows, make_rows
from sklearn.base import clone

from qms22_bench.rivals import BRM, OCKRA, DTENonParametric, ExtendedIsolationForest, KNNDetector

DETECTORS = {
    "BRM": BRM(n_members=10, random_state=0),
    "BRM, small bags": BRM(n_members=10, max_samples=1, random_state=0),
    "OCKRA": OCKRA(n_members=10, random_state=0),
    "OCKRA, two threads": OCKRA(n_members=10, random_state=0, n_jobs=2),
    "kNN": KNNDetector(),
    "DTE-NP": DTENonParametric(),
    "extended forest": ExtendedIsolationForest(n_estimators=20, random_state=0),
}
EXTREMES = {
    "constant": np.ones((30, 3)),
    "one row": np.zeros((1, 2)),
    "two rows": np.array([[0.0, 1.0], [1.0, 1.0]]),
    "duplicates": np.repeat(np.eye(3), 20, axis=0),
    "extremes": np.array([[1e300, 1e-300], [-1e300, 3e-300], [0.0, 2e-300]]),
    "largest": np.array([[1.7e308], [-1.7e308]]),
    "smallest": np.array([[5e-324], [0.0], [5e-324]]),
}


@pytest.fixture(params=["BRM", "OCKRA", "kNN", "DTE-NP", "extended forest"])
def detector(request: pytest.FixtureRequest) -> Any:
    """One detector of every kind."""
    return clone(DETECTORS[request.param])


def test_pickling_keeps_scores(detector: Any) -> None:
    copy = pickle.loads(pickle.dumps(detector.fit(make_rows())))
    query = make_rows(seed=1)
    np.testing.assert_array_equal(detector.score_samples(query), copy.score_samples(query))


@pytest.mark.parametrize(
    "detector",
    [
        BRM(random_state=0),
        OCKRA(random_state=0),
        KNNDetector(),
        DTENonParametric(),
        ExtendedIsolationForest(random_state=0),
    ],
)
def test_scores_tell_normal_rows_from_others(detector: Any) -> None:
    detector.fit(make_rows(300))
    inside, outside = make_rows(200, seed=1), make_rows(200, seed=2) + 6
    assert detector.score_samples(inside).min() > detector.score_samples(outside).max()


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("normal", EXTREMES.values(), ids=EXTREMES)
def test_scores_are_numbers_for_any_data(name: str, normal: Rows) -> None:
    detector: Any = clone(DETECTORS[name]).fit(normal)
    far = np.full((1, normal.shape[1]), 1e308)
    scores = detector.score_samples(np.vstack([normal, far, -far]))
    assert np.isfinite(scores).all()
    if name.startswith(("BRM", "OCKRA")):
        assert ((scores >= 0) & (scores <= 1)).all()
        assert scores[0] > 0


def test_units_do_not_matter(detector: Any) -> None:
    normal, query = make_rows(), make_rows(seed=1)
    units = np.array([1e-300, 1e-5, 1.0, 1e300])
    plain = clone(detector).fit(normal).score_samples(query)
    scaled = clone(detector).fit(normal * units).score_samples(query * units)
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)


def test_dataframes_are_checked_for_names(detector: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_rows(30, 2), columns=["age", "height"])
    detector.fit(frame)
    assert detector.feature_names_in_.tolist() == ["age", "height"]
    with pytest.raises(ValueError, match="feature names"):
        detector.score_samples(frame.rename(columns={"age": "weight"}))


def test_missing_values_are_named(detector: Any) -> None:
    rows = make_rows()
    rows[17, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 17 holds NaN .* in column 2; drop or"):
        detector.fit(rows)
