from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from normal_rows import Rows, make_rows

from qms22_bench.rivals import OCKRA
from qms22_bench.rivals import ockra as ockra_module


def naive_scores(detector: OCKRA, normal: Rows, query: Rows) -> Rows:
    """Score rows member by member and center by center."""
    # Centers are relative to the medians, where scaled rows have their origin.
    scaled = (query - np.median(normal, axis=0)) / np.ptp(normal, axis=0)
    scores = np.zeros(len(query))
    members = zip(detector.features_, detector.centers_, detector.deltas_, strict=True)
    for features, centers, delta in members:
        for row, x in enumerate(scaled[:, features]):
            nearest = min(np.linalg.norm(x - center) for center in centers)
            scores[row] += np.exp(-0.5 * (nearest / delta) ** 2)
    return scores / len(detector.deltas_)


def test_scores_equal_the_naive_ones() -> None:
    normal, query = make_rows(80), 2 * make_rows(30, seed=1)
    detector = OCKRA(n_members=6, random_state=0).fit(normal)
    expected = naive_scores(detector, normal, query)
    np.testing.assert_allclose(detector.score_samples(query), expected, rtol=1e-10)


def test_delta_is_the_mean_distance_between_normal_rows() -> None:
    normal = make_rows(80)
    detector = OCKRA(n_members=4, random_state=0).fit(normal)
    scaled = normal / np.ptp(normal, axis=0)
    for features, delta in zip(detector.features_, detector.deltas_, strict=True):
        seen = scaled[:, features]
        distances = [np.linalg.norm(seen[i] - seen[j]) for i in range(80) for j in range(i)]
        assert delta == pytest.approx(np.mean(distances), rel=1e-10)


def test_features_are_drawn_with_replacement_and_kept_once() -> None:
    detector = OCKRA(n_members=200, n_clusters=1, random_state=0).fit(make_rows(20, 10))
    for features, centers in zip(detector.features_, detector.centers_, strict=True):
        assert features.tolist() == sorted(set(features.tolist()))
        assert centers.shape == (1, len(features))
    # Of 10 features a draw of 10 sees 10 · (1 − 0.9¹⁰) = 6.5 on average.
    assert np.mean([len(features) for features in detector.features_]) == pytest.approx(
        6.5, abs=0.3
    )


def test_n_jobs_does_not_change_anything() -> None:
    normal, query = make_rows(1500), make_rows(2500, seed=1)
    alone = OCKRA(n_members=10, n_jobs=1, random_state=0).fit(normal)
    together = OCKRA(n_members=10, n_jobs=2, random_state=0).fit(normal)
    np.testing.assert_array_equal(alone.score_samples(query), together.score_samples(query))


def test_many_rows_are_learned_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ockra_module, "_MANY_ROWS", 100)
    detector = OCKRA(n_members=10, random_state=0).fit(make_rows(2000))
    inside, outside = make_rows(100, seed=1), make_rows(100, seed=2) + 6
    assert detector.score_samples(inside).min() > detector.score_samples(outside).max()


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"n_members": 1.5}, "n_members must be a whole number of at least 1; got 1.5"),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1; got 0"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        OCKRA(**parameters).fit(make_rows())
