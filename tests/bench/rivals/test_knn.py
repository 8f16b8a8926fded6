from __future__ import annotations

import numpy as np
import pytest
from normal_rows import make_rows

from qms22_bench.rivals import KNNDetector
from qms22_bench.rivals import neighbors as neighbors_module


@pytest.mark.parametrize("algorithm", ["scan", "tree"])
def test_scores_equal_the_naive_ones(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    monkeypatch.setattr(neighbors_module, "_SCAN_LIMIT", 0 if algorithm == "tree" else 1000)
    normal, query = make_rows(), 2 * make_rows(40, seed=1)
    detector = KNNDetector(n_neighbors=3).fit(normal)
    rows, asked = normal / np.ptp(normal, axis=0), query / np.ptp(normal, axis=0)
    nearest = np.array([sorted(np.linalg.norm(x - a) for a in rows)[:3] for x in asked])
    np.testing.assert_allclose(detector.score_samples(query), -nearest.mean(axis=1), rtol=1e-10)


def test_a_normal_row_is_its_own_neighbor_when_scored_again() -> None:
    normal = make_rows()
    detector = KNNDetector(n_neighbors=1).fit(normal)
    assert detector.score_samples(normal).tolist() == [0.0] * len(normal)


def test_n_jobs_does_not_change_anything() -> None:
    normal, query = make_rows(1500), make_rows(2500, seed=1)
    alone, together = (KNNDetector(n_jobs=n_jobs).fit(normal) for n_jobs in (1, 2))
    np.testing.assert_array_equal(alone.score_samples(query), together.score_samples(query))


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ValueError, match="n_neighbors must be a whole number of at least 1; got 0"):
        KNNDetector(n_neighbors=0).fit(make_rows())
