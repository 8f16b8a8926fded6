"""Time `qms22 detect` on everyday CSV files: from files to answer, reasons, findings and page.

The tables have 15 columns to learn from: numbers, categories, dates, missing cells and a memo.
Besides seconds there are CPU seconds, which tell more on a machine that others use; its load is
written, too.

python benchmarks/everyday.py --output benchmarks/results
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
import numpy as np
from detect import Run, run_detect
from mixed.tables import ORDERS
from reporting import console, output_option, write_csv

_MEMOS = ("call before", "gift wrap", "fragile", "ring twice", "leave at the door", "with care")

# Of the batch, one row in so many has one of the anomalies.
_ROWS_PER_ANOMALY = 200
_ANOMALIES = ("wrong sign", "new level", "spike")

_HEADINGS = ("normal", "batch", "stage", "seconds", "cpu_seconds", "peak_megabytes", "load")


def write_tables(directory: Path, n_normal: int, n_batch: int) -> None:
    """Write orders with a number and a memo; some of the batch are anomalies."""
    rng = np.random.default_rng(0)
    first = 1
    for name, n_rows in (("normal", n_normal), ("batch", n_batch)):
        table = ORDERS.draw(n_rows, rng)
        if name == "batch":
            n_each = n_rows // (_ROWS_PER_ANOMALY * len(_ANOMALIES))
            for at, kind in enumerate(_ANOMALIES):
                chosen = slice(at * n_each, (at + 1) * n_each)
                table.iloc[chosen] = ORDERS.changes[kind](table.iloc[chosen].copy(), rng)
        table.insert(0, "order_id", np.arange(first, first + n_rows))
        numbers = rng.integers(10_000, size=n_rows).astype(str)
        table["memo"] = rng.choice(_MEMOS, n_rows) + np.char.add(", no. ", numbers)
        table.to_csv(directory / f"{name}.csv", index=False)
        first += n_rows


def lines_of(run: Run, n_normal: int, n_batch: int) -> list[list[object]]:
    """Return the lines of the result: one for each stage, and the total."""
    size = [n_normal, n_batch]
    lines: list[list[object]] = [
        [*size, stage, f"{seconds:.1f}", f"{cpu_seconds:.1f}", "", ""]
        for stage, (seconds, cpu_seconds) in run.stages.items()
    ]
    load = f"{os.getloadavg()[0]:.1f}"
    total = f"{run.seconds:.1f}", f"{run.cpu_seconds:.1f}", round(run.peak / 1e6), load
    return [*lines, [*size, "total", *total]]


@click.command()
@click.option(
    "--size",
    "sizes",
    type=(int, int),
    multiple=True,
    default=((50_000, 20_000), (1_000_000, 100_000)),
    show_default=True,
    help="Known-normal rows and rows of the batch.",
)
@click.option("--fdr", type=float, help="Option of the command, which flags 50 rows by default.")
@output_option("everyday.csv")
def main(sizes: tuple[tuple[int, int], ...], fdr: float | None, output: Path) -> None:
    """Time `qms22 detect` with its defaults; takes a minute or two."""
    arguments = ["normal.csv", "batch.csv", "--output", "found.csv", "--report", "page.html"]
    if fdr is not None:
        arguments += ["--fdr", str(fdr)]
    lines: list[list[object]] = []
    for n_normal, n_batch in sizes:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            write_tables(directory, n_normal, n_batch)
            run = run_detect(directory, arguments)
        of_run = lines_of(run, n_normal, n_batch)
        for line in of_run:
            console.print(*line)
        lines += of_run
    write_csv(output / "everyday.csv", _HEADINGS, lines)


if __name__ == "__main__":
    main()
