"""Time `qms22 detect` on large Parquet files, and measure its memory.

python benchmarks/detect.py --rows 1000000 --output benchmarks/results
"""

from __future__ import annotations

import csv
import os
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
from kernel import console, machine


def write_tables(directory: Path, n_rows: int, n_features: int) -> None:
    """Write Gaussian rows: four fifths are normal, and one in a thousand of the rest is not."""
    rng = np.random.default_rng(0)
    columns = [f"x{at}" for at in range(n_features)]
    normal = pd.DataFrame(rng.normal(size=(n_rows * 4 // 5, n_features)), columns=columns)
    batch = pd.DataFrame(rng.normal(size=(n_rows // 5, n_features)), columns=columns)
    n_outliers = len(batch) // 1000
    batch.iloc[:n_outliers] += 3
    batch["truth"] = (np.arange(len(batch)) < n_outliers).astype(int)
    normal.to_parquet(directory / "normal.parquet")
    batch.to_parquet(directory / "batch.parquet")


def run_detect(directory: Path, preset: str) -> tuple[float, float, str]:
    """Run the command; give seconds, peak megabytes and what it says of the labels."""
    command = [
        *(str(Path(sysconfig.get_path("scripts")) / "qms22"), "detect"),
        *("normal.parquet", "batch.parquet", "--label", "truth", "--preset", preset),
        *("--quiet", "--output", "found.parquet"),
    ]
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    words = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(words)
    return seconds, usage.ru_maxrss * 1024 / 1e6, words.strip()


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of both files together.")
@click.option("--features", default=10, show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("benchmarks/results"),
    show_default=True,
    help="Directory for detect.csv.",
)
def main(rows: int, features: int, output: Path) -> None:
    """Time `qms22 detect` with both presets; takes a few minutes."""
    output.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as name,
        (output / "detect.csv").open("w", newline="") as file,
    ):
        directory = Path(name)
        write_tables(directory, rows, features)
        writer = csv.writer(file)
        writer.writerows(["machine", key, text] for key, text in machine().items())
        writer.writerow(["preset", "rows", "features", "seconds", "peak_megabytes"])
        for preset in ("recommended", "paper"):
            seconds, megabytes, words = run_detect(directory, preset)
            writer.writerow([preset, rows, features, f"{seconds:.1f}", f"{megabytes:.0f}"])
            console.print(f"{preset}: {seconds:.0f} s, {megabytes:.0f} MB at most; {words}")


if __name__ == "__main__":
    main()
