"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from qms22 import QMS22, QMS22Ensemble, QMSClassifier

# The checks fit outlier detectors on X alone, about which QMS22 rightly warns.
pytestmark = pytest.mark.filterwarnings("ignore:no unlabeled rows", "ignore::FutureWarning")


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        QMS22(),
        QMSClassifier(),
        QMS22(scaling="standard", dtype="float32", n_restarts=2),
        QMS22Ensemble(),
    ]
)
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
