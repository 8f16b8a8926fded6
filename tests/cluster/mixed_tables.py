"""Tables of several kinds of columns, for detection on clusters."""

from __future__ import annotations

import numpy as np
import pandas as pd


def make_tables(
    n_normal: int = 900, n_batch: int = 300, n_outliers: int = 15, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a normal table and a batch whose first rows are outliers."""
    rng = np.random.default_rng(seed)

    def rows(n_rows: int) -> pd.DataFrame:
        days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, n_rows), "D")
        return pd.DataFrame(
            {
                "id": [f"order {number}" for number in range(n_rows)],
                "amount": rng.normal(100, 10, n_rows),
                "country": rng.choice(["PT", "ES", "FR"], n_rows, p=[0.6, 0.3, 0.1]),
                "is_new": rng.uniform(size=n_rows) < 0.4,
                "day": days.astype("datetime64[us]"),
            }
        )

    normal, batch = rows(n_normal), rows(n_batch)
    batch.loc[: n_outliers - 1, ["amount", "country"]] = [180.0, "XX"]
    return normal, batch


def check_found(found: pd.DataFrame, batch: pd.DataFrame, n_outliers: int = 15) -> None:
    """Check a result with its rows in any order."""
    assert list(found.columns) == [*batch.columns, "score", "p_value", "flagged"]
    number = found["id"].str.removeprefix("order ").astype(int)
    found = found.set_axis(number).sort_index()
    np.testing.assert_array_equal(found["amount"], batch["amount"])
    np.testing.assert_array_equal(found["country"], batch["country"])
    assert pd.api.types.is_bool_dtype(found["flagged"])
    assert found["flagged"][: n_outliers - 1].all()
    assert found["flagged"].sum() < 2 * n_outliers
    assert found["p_value"].between(0, 1, inclusive="right").all()
    assert (
        found.loc[found["flagged"], "p_value"].max() < found.loc[~found["flagged"], "p_value"].min()
    )
    top = found["score"].sort_values(ascending=False).index[:n_outliers]
    assert set(top) == set(range(n_outliers))
