"""Rows of both tables in other orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from mixed.tables import ORDERS

from qms22 import detect


def numbers() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(500, 4)), columns=list("abcd"))


def repeated() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).poisson(1.0, size=(500, 4)), columns=list("abcd"))


def orders() -> pd.DataFrame:
    frame: pd.DataFrame = ORDERS.draw(500, np.random.default_rng(0))
    frame["ordered_at"] = pd.date_range("2026-01-01", periods=500, freq="7h")
    return frame


@pytest.mark.parametrize("draw", [numbers, repeated, orders])
@pytest.mark.parametrize("seed", [1, 2])
def test_orders(draw: Callable[[], pd.DataFrame], seed: int) -> None:
    """Rows of both tables in another order: the same scores, flags and verdict, to the bit"""
    rows = draw()
    normal, batch = rows.iloc[:380], rows.iloc[380:].copy()
    batch.iloc[:5, -1] += 40
    rng = np.random.default_rng(seed)
    found = detect(normal, batch, n_jobs=1)
    places = rng.permutation(len(batch))
    again = detect(normal.sample(frac=1, random_state=seed), batch.iloc[places], n_jobs=1)
    assert np.array_equal(found.scores[places], again.scores)
    assert np.array_equal(found.flagged[places], again.flagged)
    assert found.p_values is not None
    assert again.p_values is not None
    assert np.array_equal(found.p_values[places], again.p_values)
    assert str(found.verdict) == str(again.verdict)
