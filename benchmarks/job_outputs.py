"""Time what `--json`, `--good` and `--bad` add to `qms22 detect` on everyday CSV files.

Runs with and without them take turns, and the ratio of their CPU seconds counts, so that other
programs on the machine hardly matter.

python benchmarks/job_outputs.py --output benchmarks/results
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

import click
from detect import run_detect
from everyday import write_tables
from reporting import console, output_option, write_csv

_PLAIN = ["normal.csv", "batch.csv", "--id", "order_id", "--quiet"]
_FILES = ["--json", "result.json", "--good", "good.csv", "--bad", "bad.csv"]
_HEADINGS = ("normal", "batch", "turn", "cpu_seconds", "cpu_seconds_with_files", "ratio")


@click.command()
@click.option("--normal", "n_normal", default=1_000_000, show_default=True)
@click.option("--batch", "n_batch", default=100_000, show_default=True)
@click.option("--turns", default=3, show_default=True)
@output_option("job_outputs.csv")
def main(n_normal: int, n_batch: int, turns: int, output: Path) -> None:
    """Time searches with and without files for jobs; takes two minutes."""
    lines: list[list[object]] = []
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_tables(directory, n_normal, n_batch)
        for turn in range(turns):
            plain = run_detect(directory, _PLAIN).cpu_seconds
            with_files = run_detect(directory, _PLAIN + _FILES).cpu_seconds
            ratios.append(with_files / plain)
            lines.append(
                [n_normal, n_batch, turn, f"{plain:.1f}", f"{with_files:.1f}", f"{ratios[-1]:.3f}"]
            )
            console.print(*lines[-1])
    lines.append([n_normal, n_batch, "median", "", "", f"{median(ratios):.3f}"])
    console.print(*lines[-1])
    write_csv(output / "job_outputs.csv", _HEADINGS, lines)


if __name__ == "__main__":
    main()
