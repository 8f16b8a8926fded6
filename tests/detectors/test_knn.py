from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from normal_rows import Rows, make_rows

from qms22.detectors import KNNDetector
from qms22.detectors import neighbors as neighbors_module


def scale(rows: Rows, normal: Rows, scaling: str | None) -> Rows:
    units = {"minmax": np.ptp(normal, axis=0), "standard": normal.std(axis=0), None: 1.0}
    scaled: Rows = rows / units[scaling]
    return scaled


@pytest.mark.parametrize("algorithm", ["scan", "tree"])
@pytest.mark.parametrize("method", ["mean", "kth"])
@pytest.mark.parametrize("scaling", ["minmax", "standard", None])
def test_scores_equal_the_naive_ones(
    monkeypatch: pytest.MonkeyPatch, scaling: str | None, method: str, algorithm: str
) -> None:
    monkeypatch.setattr(neighbors_module, "_SCAN_LIMIT", 0 if algorithm == "tree" else 1000)
    normal, query = make_rows(), 2 * make_rows(40, seed=1)
    detector = KNNDetector(n_neighbors=3, method=method, scaling=scaling).fit(normal)
    rows, asked = scale(normal, normal, scaling), scale(query, normal, scaling)
    nearest = np.array([sorted(np.linalg.norm(x - a) for a in rows)[:3] for x in asked])
    expected = -nearest.mean(axis=1) if method == "mean" else -nearest[:, 2]
    np.testing.assert_allclose(detector.score_samples(query), expected, rtol=1e-10)


def test_a_normal_row_is_its_own_neighbor_only_when_scored_again() -> None:
    normal = make_rows()
    detector = KNNDetector(n_neighbors=1).fit(normal)
    assert detector.score_samples(normal).tolist() == [0.0] * len(normal)
    assert detector.offset_ < 0


def test_auto_flags_one_new_normal_row_in_twenty() -> None:
    detector = KNNDetector().fit(make_rows(500))
    assert (detector.predict(make_rows(2000, seed=1)) == -1).mean() == pytest.approx(0.05, abs=0.03)


def test_n_jobs_does_not_change_anything() -> None:
    normal, query = make_rows(1500), make_rows(2500, seed=1)
    alone, together = (KNNDetector(n_jobs=n_jobs).fit(normal) for n_jobs in (1, 2))
    assert alone.offset_ == together.offset_
    np.testing.assert_array_equal(alone.score_samples(query), together.score_samples(query))


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1; got 0"),
        ({"method": "max"}, "method must be one of 'mean', 'kth'; got 'max'"),
        ({"scaling": "maxabs"}, "scaling must be one of 'minmax', 'standard', None; got 'maxabs'"),
        ({"contamination": 1}, "contamination must be 'auto' or a share .* got 1"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KNNDetector(**parameters).fit(make_rows())
