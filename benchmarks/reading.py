"""Count how often a search reads its files, and time how long they take to become columns.

python benchmarks/reading.py --output benchmarks/results
"""

from __future__ import annotations

import functools
import importlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from pyarrow import csv
from reporting import console, output_option, write_csv

from qms22 import detect
from qms22.tables import open_table

# What is counted, by the function that does it.
COUNTED = {
    "conversions": ("qms22.tables.columns.arrow_columns", ("arrow_cells", "frame_cells")),
    "inferences": ("qms22.tables.columns.kinds", ("infer_kind",)),
}


def draw_orders(n_rows: int, seed: int, share: float = 0.0) -> pd.DataFrame:
    """Draw orders of 15 columns of any kind; in a share of them the total is wrong."""
    rng = np.random.default_rng(seed)
    when = np.datetime64("2024-01-01") + rng.integers(0, 120 * 86400, n_rows).astype("m8[s]")
    price, quantity = np.round(rng.lognormal(4, 1, n_rows), 2), rng.integers(1, 20, n_rows)
    factor = np.where(rng.random(n_rows) < share, 7, 1)
    return pd.DataFrame(
        {
            "order": np.arange(n_rows) + 1_000_000 * seed,
            "when": np.datetime_as_string(when, unit="s"),
            "day": pd.Series(when).dt.strftime("%d.%m.%Y"),
            "country": rng.choice(["US", "DE", "FR", "IN", "BR"], n_rows),
            "channel": rng.choice(["web", "shop", "phone"], n_rows),
            "customer": [f"C{at:05d}" for at in rng.integers(0, 3000, n_rows)],
            "price": [f"${each:,.2f}" for each in price],
            "quantity": quantity,
            "total": np.round(price * quantity * factor, 2),
            "weight": [f"{each:.1f} kg" for each in rng.gamma(3, 2, n_rows)],
            "paid": rng.choice(["true", "false"], n_rows, p=[0.9, 0.1]),
            "score": rng.normal(size=n_rows).round(6),
            "rate": [f"{each:.1f} %" for each in rng.uniform(0, 30, n_rows)],
            "zip": rng.integers(10000, 99999, n_rows),
            "note": rng.choice(["ok", "late", "gift", ""], n_rows),
        }
    )


def write_orders(folder: Path, n_normal: int, n_batch: int) -> tuple[Path, Path]:
    """Write two tables of orders."""
    paths = folder / f"normal-{n_normal}.csv", folder / f"batch-{n_batch}.csv"
    draw_orders(n_normal, 1).to_csv(paths[0], index=False)
    draw_orders(n_batch, 2, 0.01).to_csv(paths[1], index=False)
    return paths


@contextmanager
def counted(counts: Counter[str]) -> Iterator[None]:
    """Count calls of some functions of the package in a block."""
    replaced: list[tuple[Any, str, Any]] = []
    for what, (home, names) in COUNTED.items():
        for name in names:
            function = getattr(importlib.import_module(home), name)
            counting = functools.wraps(function)(_counting(function, what, counts))
            for module in [each for key, each in sys.modules.items() if key.startswith("qms22")]:
                if getattr(module, name, None) is function:
                    setattr(module, name, counting)
                    replaced.append((module, name, function))
    try:
        yield
    finally:
        for module, name, function in replaced:
            setattr(module, name, function)


def _counting(function: Callable[..., Any], what: str, counts: Counter[str]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        counts[what] += 1
        return function(*args, **options)

    return call


def count_search(paths: tuple[Path, Path], page: Path) -> Counter[str]:
    """Search one table with a page; count opens of the files, conversions and inferences."""
    counts: Counter[str] = Counter()
    names = {str(path) for path in paths}

    def listen(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]) in names:
            counts["opens"] += 1

    detect(*paths).report(page)  # imports all that is needed
    sys.addaudithook(listen)
    with counted(counts):
        detect(*paths).report(page)
    return counts


def seconds(work: Callable[[], object], n_runs: int) -> float:
    """Return the least CPU seconds of several runs."""
    found = []
    for _ in range(n_runs):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Known-normal rows.")
@click.option("--runs", default=3, show_default=True, help="How often each reader runs.")
@output_option("reading.csv")
def main(rows: int, runs: int, output: Path) -> None:
    """Count the opens of a small search, and compare reading large files with pyarrow.csv."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = count_search(write_orders(folder, 300, 80), folder / "page.html")
        paths = write_orders(folder, rows, rows // 10)
        plain = seconds(lambda: [csv.read_csv(path) for path in paths], runs)
        columns = seconds(lambda: [open_table(path).columns() for path in paths], runs)
    console.print(
        f"a search opens its two files {counts['opens']} times, converts {counts['conversions']} "
        f"columns and infers {counts['inferences']} kinds; {columns:.1f} s of CPU from files to "
        f"columns, {columns / plain:.1f} times pyarrow.csv"
    )
    numbers = {
        "rows": rows + rows // 10,
        **{what: counts[what] for what in ("opens", "conversions", "inferences")},
        "pyarrow_seconds": f"{plain:.2f}",
        "columns_seconds": f"{columns:.2f}",
        "ratio": f"{columns / plain:.2f}",
    }
    write_csv(output / "reading.csv", numbers, [numbers.values()])


if __name__ == "__main__":
    main()
