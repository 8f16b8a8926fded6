"""Results of fits on real data, compared with those in golden.json; `make golden` rewrites it.

All hashes are exact: the compiled kernel computes the same bits everywhere, and so do the functions
and products of `qms22._runtime.exact`, through which scores and p-values of the ensemble pass.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from qms22 import QMS22, QMS22Ensemble
from qms22.metrics import roc

GOLDEN = Path(__file__).parent / "golden.json"
DTYPES = ("float64", "float32")


def breast_cancer() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return half of the benign rows, all other rows, and which of those are malignant."""
    X, y = load_breast_cancer(return_X_y=True)
    benign = np.random.RandomState(0).permutation(np.flatnonzero(y == 1))
    n_known = len(benign) // 2
    rows = np.concatenate([benign[n_known:], np.flatnonzero(y == 0)])
    return X[benign[:n_known]], X[rows], y[rows] == 0


def exact_hash(*arrays: NDArray[Any]) -> str:
    values = np.concatenate([array.ravel() for array in arrays])
    return hashlib.sha256(values.tobytes()).hexdigest()


def qms22_results(dtype: str) -> dict[str, object]:
    normal, unlabeled, is_outlier = breast_cancer()
    detector = QMS22(dtype=dtype, random_state=0).fit(normal, unlabeled=unlabeled)
    return {
        "members": exact_hash(detector.A_, detector.b_),
        "top_20": detector.top_k(20).tolist(),
        "auc": round(roc(is_outlier, detector.unlabeled_scores_).auc, 10),
    }


def ensemble_results(dtype: str) -> dict[str, object]:
    normal, unlabeled, is_outlier = breast_cancer()
    detector = QMS22Ensemble(dtype=dtype, random_state=0).fit(normal, unlabeled=unlabeled)
    with pytest.warns(UserWarning, match="drifted as a whole"):
        flagged = detector.flag(0.2)  # more than half of the batch is malignant
    view: Any = detector.views_["members"]
    members = [array for part in view.parts for array in (part.members.A, part.members.b)]
    return {
        "members": exact_hash(*members),
        "scores": exact_hash(detector.unlabeled_scores_),
        "weights": {name: round(weight, 10) for name, weight in detector.weights_.items()},
        "p_values": exact_hash(detector.p_values()),
        "n_flagged": int(flagged.sum()),
        "flagged": exact_hash(flagged),
        "top_20": detector.top_k(20).tolist(),
        "auc": round(roc(is_outlier, detector.unlabeled_scores_).auc, 10),
    }


MEASURES = {"QMS22": qms22_results, "QMS22Ensemble": ensemble_results}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("detector", MEASURES)
def test_golden_results(detector: str, dtype: str) -> None:
    assert MEASURES[detector](dtype) == json.loads(GOLDEN.read_text())[detector][dtype]


if __name__ == "__main__":
    results = {
        detector: {dtype: measure(dtype) for dtype in DTYPES}
        for detector, measure in MEASURES.items()
    }
    GOLDEN.write_text(json.dumps(results, indent=2) + "\n")
