"""What a result says about missing cells and columns that are left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
from frames import encode_frames

from qms22.detection.column_notes import column_notes


def table(n_rows: int, share_missing: float) -> pd.DataFrame:
    rng = np.random.default_rng(n_rows)
    rows = pd.DataFrame(
        {
            "order": np.arange(n_rows),
            "x": rng.normal(size=n_rows),
            "rating": rng.random(n_rows),
            "memo": [f"some words {at}" for at in range(n_rows)],
            "unit": "mm",
        }
    )
    rows.loc[: share_missing * n_rows - 1, "rating"] = np.nan
    return rows


def test_notes() -> None:
    normal, batch = table(200, 0.3), table(60, 0.5)
    batch.loc[0, "x"] = np.nan
    encoded = encode_frames(normal, batch)
    missing, left_out = column_notes(encoded, 200, ())
    assert missing == "missing: rating 30 % (batch 50 %), x 0 % (batch 1.7 %)"
    assert left_out == (
        "left out: memo (text: 200 different texts in 260 rows), order (identifier: a running "
        "number: it rises from row to row)"
    )
    assert column_notes(encoded, 200, ["memo", "order"]) == (missing,)


def test_columns_left_out_for_one_reason_are_named_together() -> None:
    normal, batch = (table(n_rows, 0).drop(columns="order") for n_rows in (200, 60))
    normal["remark"], batch["remark"] = normal["memo"] + "!", batch["memo"] + "!"
    notes = column_notes(encode_frames(normal, batch), 200, ())
    assert notes == ("left out: memo, remark (text: 200 different texts in 260 rows)",)


def test_dropped_rows_are_told() -> None:
    encoded = encode_frames(table(200, 0.3), table(60, 0), missing="drop", ignore=["memo", "order"])
    assert column_notes(encoded, 200, ["memo", "order"]) == (
        "60 of 200 normal rows with missing values were dropped",
    )


def test_nothing_to_tell() -> None:
    normal, batch = (table(n_rows, 0)[["x", "rating", "unit"]] for n_rows in (200, 60))
    assert column_notes(encode_frames(normal, batch), 200, ()) == ()


def test_shares_close_to_a_limit() -> None:
    normal, batch = (table(3000, 0)[["x", "rating"]] for _ in range(2))
    normal.loc[:298, "rating"] = np.nan
    batch.loc[0, "rating"] = batch.loc[1:, "x"] = np.nan
    assert column_notes(encode_frames(normal, batch), 3000, ()) == (
        "missing: x 0 % (batch 100.0 %), rating 10.0 % (batch <0.1 %)",
    )
