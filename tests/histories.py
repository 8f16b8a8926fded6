"""Histories for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from qms22 import BatchHistory, HistoryEntry
from qms22.decisions.batch_profile import profile_batch
from qms22.decisions.moved_columns import ColumnPair
from qms22.detection.history.history_rows import to_parquet

FAST: dict[str, Any] = {"n_jobs": 1}

ENTRY = HistoryEntry(
    time="2026-03-05 14:02:11",
    normal="normal.csv",
    batch="today.csv",
    decision="drift",
    sentence="The batch has drifted.",
    p_value=0.001,
    n_normal=400,
    n_rows=200,
    n_flagged=3,
    moved=(("month", "1 to 2 → 3"),),
    settings={"fdr": 0.1, "ignore": ["a"], "k": None, "fewest_outliers": 2},
    version="0.2",
)
ROWS = to_parquet(pd.DataFrame({"x": [1.0]}))


def readings(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.normal(10, 2, n_rows),
            "y": rng.normal(0, 1, n_rows),
            "mode": rng.choice(["run", "idle"], n_rows),
        }
    )


def filled(path: Path, n_batches: int) -> BatchHistory:
    """A history of some batches, without a search."""
    batches = BatchHistory(path)
    for at in range(n_batches):
        time = f"2026-03-05 14:02:{at:02d}"
        batches.remember(replace(ENTRY, batch=f"{at}.csv", time=time), f"digest {at}", ROWS, 1)
    return batches


def accepted(path: Path, n_batches: int) -> BatchHistory:
    """A history of accepted batches of `readings`, without a search; their rows are not kept."""
    batches = BatchHistory(path)
    for at in range(n_batches):
        frame = readings(150, 100 + at)
        codes = (frame["mode"] == "run").to_numpy().astype(int)
        columns = [
            ColumnPair(name, frame[name].to_numpy(), frame[name].to_numpy()) for name in "xy"
        ]
        columns.append(ColumnPair("mode", codes, codes, ("idle", "run")))
        evidence = float(np.random.default_rng(at).exponential())
        entry = replace(
            ENTRY,
            decision="fine",
            moved=(),
            batch=f"{at}.csv",
            settings={"profile": profile_batch(columns, evidence, None)},
        )
        batches.remember(entry, f"digest {at}", ROWS, 1)
        batches.accept(at + 1)
    return batches
