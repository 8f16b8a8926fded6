from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from qms22.detectors import (
    BRM,
    DOUST,
    OCKRA,
    DTENonParametric,
    ExtendedIsolationForest,
    KNNDetector,
    OutOfBagForest,
)

# The checks fit outlier detectors on X alone, about which those that need a batch warn.
pytestmark = pytest.mark.filterwarnings("ignore:no unlabeled rows")


@parametrize_with_checks(  # type: ignore[untyped-decorator, unused-ignore]
    [
        BRM(n_members=10),
        BRM(n_members=10, max_samples=5),
        OCKRA(n_members=5),
        KNNDetector(),
        KNNDetector(method="kth", scaling="standard"),
        DTENonParametric(),
        OutOfBagForest(n_estimators=10),
        DOUST(n_epochs=2),
        ExtendedIsolationForest(n_estimators=10),
    ]
)
def test_scikit_learn_accepts_the_detector(estimator: Any, check: Any) -> None:
    check(estimator)
