"""Two small tables of visits to a hospital, in files of several formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N_NORMAL, N_BATCH = 400, 150
SICK = [*range(20, 26), 130, 132]
# Options for visits as they are, and for those of `write_visits`, which say who is sick.
PLAIN: dict[str, Any] = {"k": 8, "n_jobs": 1, "id": "visit"}
LEFT_OUT: dict[str, Any] = {"id": "visit", "ignore": ["sick"]}
FAST: dict[str, Any] = {**PLAIN, **LEFT_OUT}


def visits(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.RandomState(seed)
    days = pd.Timestamp("2026-01-05") + pd.to_timedelta(rng.randint(0, 60, n_rows), unit="D")
    return pd.DataFrame(
        {
            "visit": [f"V{seed}-{at:05d}" for at in range(n_rows)],
            "day": days.strftime("%Y-%m-%d"),
            "age": rng.randint(18, 90, n_rows),
            "weight": rng.normal(70, 9, n_rows).round(3),
            "pulse": rng.normal(65, 7, n_rows),
            "ward": rng.choice(["A", "B", "C"], n_rows),
            "urgent": rng.choice([True, False], n_rows),
        }
    )


def write_visits(folder: Path) -> Path:
    """Write the known-normal visits and a batch with sick ones as Parquet, Feather and CSV."""
    normal, batch = visits(N_NORMAL, 0), visits(N_BATCH, 1)
    batch.loc[SICK, "weight"] += 90.0
    batch.loc[SICK, "pulse"] += 60.0
    batch.loc[SICK[-1], "ward"] = "Z"
    batch["sick"] = np.isin(np.arange(N_BATCH), SICK).astype(int)
    for name, table in (("normal", normal), ("batch", batch)):
        table.to_parquet(folder / f"{name}.parquet", row_group_size=37)
        table.to_feather(folder / f"{name}.feather", chunksize=41)
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def change(path: Path, row: int, column: str, value: object) -> None:
    """Write another value, and let a column be text if it has to."""
    table = pd.read_parquet(path)
    table[column] = table[column].astype(object)
    table.loc[row, column] = value
    if isinstance(value, str):
        table[column] = table[column].astype(str)
    table.to_parquet(path, row_group_size=37)
    table.to_csv(path.with_suffix(".csv"), index=False)
