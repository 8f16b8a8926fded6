"""Tables of several kinds of columns, and what detections on clusters have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd

from qms22.cluster.search import ClusterDetection
from qms22.detection import Detection


def make_tables(
    n_normal: int = 900, n_batch: int = 300, n_outliers: int = 30, seed: int = 0
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
    # No two of them are equal: on a cluster nobody knows which rows come after each other.
    batch.loc[: n_outliers - 1, "amount"] = 180.0 + rng.permutation(n_outliers)
    batch.loc[: n_outliers - 1, "country"] = "XX"
    return normal, batch


def make_numbers() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make tables of numbers; the first rows of the batch are outliers."""
    rng = np.random.RandomState(0)
    normal, batch = (pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"]) for n in (3003, 1501))
    batch[:40] += 5
    return normal, batch


def check_same(found: ClusterDetection, scored: pd.DataFrame, expected: Detection) -> None:
    """Check a detection on a cluster, and its table, against the one in memory."""
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.flagged, expected.flagged)
    assert repr(found) == repr(expected)
    assert found.reasons == expected.reasons
    assert repr(found.findings) == repr(expected.findings)
    assert found.verdict == expected.verdict
    assert found.notes == expected.notes
    assert found.facts() == expected.facts()
    assert list(scored.columns) == [*found.source.names, "score", "p_value", "flagged"]
    assert pd.api.types.is_bool_dtype(scored["flagged"])
    np.testing.assert_array_equal(scored["score"], expected.scores)
    np.testing.assert_array_equal(scored["flagged"], expected.flagged)
    if expected.p_values is not None:
        np.testing.assert_array_equal(found.p_values, expected.p_values)
        np.testing.assert_array_equal(scored["p_value"], expected.p_values)
