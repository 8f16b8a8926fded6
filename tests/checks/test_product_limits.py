"""Products of two numbers that have a limit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from looking import Looked, look

from qms22.checks.sequences.limits import ProductLimitCheck


def make_loads(n_rows: int, seed: int, least: float = 0.0, most: float = np.inf) -> pd.DataFrame:
    """Return loads of a crane: weights and distances, whose product keeps two limits."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(10, 90, 4 * n_rows).round(1)
    distance = rng.normal(20, 4, 4 * n_rows).round(2)
    is_kept = (weight * distance >= least) & (weight * distance <= most)
    loads = pd.DataFrame({"weight": weight, "distance": distance, "crew": rng.integers(9, 30)})
    return loads[is_kept].iloc[:n_rows].reset_index(drop=True)


def look_at_loads(**limits: float) -> Looked:
    """Look at a batch whose first two rows are high and low, each number usual by itself."""
    batch = make_loads(200, 1, **limits)
    batch.loc[:1, ["weight", "distance"]] = [[85.0, 24.0], [14.0, 15.0]]
    return look(make_loads(2000, 0, **limits), batch)


@pytest.mark.parametrize(
    ("limits", "odd"),
    [({"most": 1700.0}, [0]), ({"least": 300.0}, [1]), ({"least": 300.0, "most": 1700.0}, [0, 1])],
)
def test_a_product_beyond_a_limit(limits: dict[str, float], odd: list[int]) -> None:
    found = look_at_loads(**limits).by(ProductLimitCheck)
    assert (found[odd] > 8).all()
    assert (np.delete(found, odd) < 8).all()


def test_a_product_without_a_limit() -> None:
    checks = look_at_loads().checks.checks
    assert not [check for check in checks if isinstance(check, ProductLimitCheck)]


def test_the_sentence() -> None:
    said = look_at_loads(most=1700.0).says(0, ProductLimitCheck)
    assert said.startswith("distance 24 × weight 85 is 2040; in 2,000 normal rows it is ")
    assert 1690 < float(said.rpartition(" to ")[2]) <= 1700
