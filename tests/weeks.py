"""A week of a small shop: known-normal orders of four weeks, and seven exports of a day."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

A_DAY = 200
BAD = [10, 40, 70, 100, 130, 160]


def orders(first: str, n_days: int, seed: int, number: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n_rows = n_days * A_DAY
    minutes = np.repeat(np.arange(n_days), A_DAY) * 24 * 60 + rng.integers(480, 1200, n_rows)
    quantity, price = rng.integers(1, 6, n_rows), rng.lognormal(3, 0.4, n_rows).round(2)
    return pd.DataFrame(
        {
            "order": np.arange(number, number + n_rows),
            "time": pd.Timestamp(first) + pd.to_timedelta(np.sort(minutes), unit="min"),
            "country": rng.choice(["DE", "FR", "NL"], n_rows, p=[0.5, 0.3, 0.2]),
            "quantity": quantity,
            "price": price,
            "total": (quantity * price).round(2),
        }
    )


def day(number: int) -> pd.DataFrame:
    """Return the export of a day: 3 is cut short, 4 has a new column, 5 drifted, 6 is spoilt."""
    batch = orders(f"2026-03-{number + 1:02d}", 1, number, 20_000 + 1000 * number)
    if number == 3:
        batch = batch[:60]
    if number == 4:
        batch["channel"] = "web"
    if number == 5:
        batch["price"] = (1.6 * batch["price"]).round(2)
        batch["total"] = (batch["quantity"] * batch["price"]).round(2)
    if number == 6:
        batch.loc[BAD, "total"] = (25 * batch.loc[BAD, "total"]).round(2)
    return batch


def write_week(folder: Path) -> None:
    orders("2026-02-02", 28, 0, 10_000).to_csv(folder / "normal.csv", index=False)
    for number in range(1, 8):
        day(number).to_csv(folder / f"day-{number}.csv", index=False)


if __name__ == "__main__":
    write_week(Path(sys.argv[1]))
