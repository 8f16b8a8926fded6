"""Measure the peak memory of `qms22 detect` on CSV files, with `--memory-limit` and without.

Orders of 15 columns, ten million to search, and tables of a thousand columns:

    python benchmarks/memory_limit.py --output benchmarks/results

Writes memory_limit.csv. A search may take the limit, by default half of what is free, and what the
program itself takes; pages of mapped files do not count, as the system takes them back when it
needs them. Ends with 1 if a search took more. Needs 5 GB of disk space.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from detect import run_detect
from mixed.tables import ORDERS
from pyarrow import csv
from reporting import console, output_option, write_csv

from qms22._runtime.memory import memory_allowed
from qms22.cli.shared import parse_size

_ROWS_AT_ONCE = 200_000
_CELLS_AT_ONCE = 1 << 24

Draw = Callable[[int, np.random.Generator], pa.Table]


def draw_orders(n_rows: int, rng: np.random.Generator) -> pa.Table:
    """Draw orders, each with a memo of its own."""
    table = ORDERS.draw(n_rows, rng)
    table["memo"] = np.char.add("no. ", rng.integers(10_000, size=n_rows).astype(str))
    return pa.Table.from_pandas(table)


def draw_wide(n_rows: int, rng: np.random.Generator) -> pa.Table:
    """Draw a thousand columns: numbers, and words in every fifth."""
    columns = {
        f"x{at}": rng.choice(["low", "middle", "high"], n_rows)
        if at % 5 == 0
        else rng.normal(size=n_rows).round(6)
        for at in range(1000)
    }
    return pa.table(columns)


def write_table(path: Path, draw: Draw, n_rows: int, rng: np.random.Generator) -> None:
    """Write rows block by block."""
    n_columns = draw(1, rng).num_columns
    at_once = min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // n_columns)
    with path.open("wb") as file:
        for first in range(0, n_rows, at_once):
            table = draw(min(at_once, n_rows - first), rng)
            csv.write_csv(table, file, csv.WriteOptions(include_header=first == 0))


@click.command()
@click.option("--rows", default=10_000_000, show_default=True, help="Orders to search.")
@click.option("--wide-rows", default=10_000, show_default=True, help="Rows of each wide table.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    default=("", "4GB", "1500MB"),
    show_default=True,
    help="Value of --memory-limit, or empty for the default.",
)
@output_option("memory_limit.csv")
def main(rows: int, wide_rows: int, limits: tuple[str, ...], output: Path) -> None:
    """Measure; takes a quarter of an hour."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for name in ("normal.csv", "batch.csv"):
            write_table(directory / name, draw_orders, 300, np.random.default_rng(len(name)))
        program = run_detect(directory, ["normal.csv", "batch.csv", "-o", "found.csv"]).own
        for draw, n_normal, n_batch in (
            (draw_orders, rows // 10, rows),
            (draw_wide, wide_rows, wide_rows),
        ):
            rng = np.random.default_rng(0)
            write_table(directory / "normal.csv", draw, n_normal, rng)
            write_table(directory / "batch.csv", draw, n_batch, rng)
            size = (directory / "normal.csv").stat().st_size
            size += (directory / "batch.csv").stat().st_size
            n_columns = draw(1, rng).num_columns
            for limit in limits:
                most = parse_size(limit) if limit else memory_allowed()
                assert most is not None
                option = ["--memory-limit", limit] if limit else []
                arguments = ["normal.csv", "batch.csv", "-o", "found.csv", *option]
                run = run_detect(directory, arguments)
                lines.append(
                    [
                        *(n_normal, n_batch, n_columns, round(size / 1e6), limit or "default"),
                        *(round(most / 1e6), round(run.own / 1e6), round(program / 1e6)),
                        round(run.peak / 1e6),
                        *(round(run.seconds), round(run.cpu_seconds)),
                        "in parts" if "part by part" in " ".join(run.words.split()) else "whole",
                    ]
                )
                console.print(*lines[-1])
    headings = (
        *("normal", "batch", "columns", "megabytes", "option", "limit_megabytes"),
        *("peak_megabytes", "program_megabytes", "with_mapped_megabytes"),
        *("seconds", "cpu_seconds", "read"),
    )
    write_csv(output / "memory_limit.csv", headings, lines)
    raise SystemExit(any(line[6] > line[5] + line[7] for line in lines))


if __name__ == "__main__":
    main()
