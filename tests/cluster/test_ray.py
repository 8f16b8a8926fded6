"""Ray: restarts of a fit through joblib."""

from __future__ import annotations

import sys

import joblib
import numpy as np
import pytest
from engines import start
from mixed_tables import make_numbers

from qms22 import QMS22

# Ray's own threads and files are none of ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(sys.platform == "win32", reason="Ray is tested where it is at home"),
]


@pytest.mark.slow
def test_restarts() -> None:
    pytest.importorskip("ray.data", reason="Ray Data is not installed; pip install 'ray[data]'")
    from ray.util.joblib import register_ray

    normal, batch = make_numbers()
    expected = QMS22(max_iter=3, n_restarts=3, random_state=0).fit(normal, unlabeled=batch)
    register_ray()
    with start("ray"), joblib.parallel_config(backend="ray"):
        found = QMS22(max_iter=3, n_restarts=3, random_state=0, n_jobs=2, verbose=1).fit(
            normal, unlabeled=batch
        )
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)
