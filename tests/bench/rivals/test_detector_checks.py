from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from qms22_bench.rivals import (
    BRM,
    DOUST,
    OCKRA,
    DTENonParametric,
    ExtendedIsolationForest,
    KNNDetector,
)


@parametrize_with_checks(  # type: ignore[untyped-decorator, unused-ignore]
    [
        BRM(n_members=10),
        BRM(n_members=10, max_samples=5),
        OCKRA(n_members=5),
        KNNDetector(),
        DTENonParametric(),
        DOUST(n_epochs=2),
        ExtendedIsolationForest(n_estimators=10),
    ]
)
def test_scikit_learn_accepts_the_detector(estimator: Any, check: Any) -> None:
    check(estimator)
