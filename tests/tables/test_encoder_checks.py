"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from qms22.tables import TabularEncoder

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [TabularEncoder(), TabularEncoder(missing="impute", min_frequency=2)]
)
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
