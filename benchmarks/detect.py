"""Time `qms22 detect` on large Parquet files, and measure its memory.

python benchmarks/detect.py --rows 1000000 --output benchmarks/results
"""

from __future__ import annotations

import os
import resource
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np
import pandas as pd
from reporting import console, output_option, write_csv


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


def run_detect(
    directory: Path,
    more: Sequence[str],
    environment: Mapping[str, str] | None = None,
    cap: int | None = None,
) -> tuple[float, int, str]:
    """Run the command on the two tables of a directory.

    Parameters
    ----------
    directory : Path
        With normal.parquet and batch.parquet; gets found.parquet.
    more : sequence of str
        Options of the command.
    environment : mapping
        Variables to set.
    cap : int, optional
        Most bytes of address space.

    Returns
    -------
    seconds, peak bytes, what the command prints on standard error
    """
    command = [
        *(str(Path(sysconfig.get_path("scripts")) / "qms22"), "detect"),
        *("normal.parquet", "batch.parquet", "--label", "truth"),
        *("--quiet", "--output", "found.parquet", *more),
    ]

    def limit() -> None:
        if cap is not None:
            resource.setrlimit(resource.RLIMIT_AS, (cap, cap))

    begin = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        preexec_fn=limit,
    ) as process:
        assert process.stderr is not None
        words = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(words)
    return seconds, usage.ru_maxrss * 1024, words.strip()


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of both files together.")
@click.option("--features", default=10, show_default=True)
@output_option("detect.csv")
def main(rows: int, features: int, output: Path) -> None:
    """Time `qms22 detect` with both presets; takes a few minutes."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_tables(directory, rows, features)
        for preset in ("recommended", "paper"):
            seconds, peak, words = run_detect(directory, ["--preset", preset])
            megabytes = peak / 1e6
            lines.append([preset, rows, features, f"{seconds:.1f}", f"{megabytes:.0f}"])
            console.print(f"{preset}: {seconds:.0f} s, {megabytes:.0f} MB at most; {words}")
    headings = ["preset", "rows", "features", "seconds", "peak_megabytes"]
    write_csv(output / "detect.csv", headings, lines)


if __name__ == "__main__":
    main()
