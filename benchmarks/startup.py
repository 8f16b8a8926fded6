"""Measure how long imports, help and a small search take, and how much memory.

python benchmarks/startup.py --output benchmarks/results
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import click
from reading import write_orders
from reporting import console, output_option, write_csv

_QMS22 = str(Path(sysconfig.get_path("scripts")) / "qms22")


def programs(folder: Path) -> dict[str, list[str]]:
    """Return what is measured; tables to search are written into a folder."""
    tables = map(str, write_orders(folder, 300, 80))
    return {
        "python, for comparison": [sys.executable, "-c", ""],
        "import qms22": [sys.executable, "-c", "import qms22"],
        "qms22 --help": [_QMS22, "--help"],
        "qms22 detect --help": [_QMS22, "detect", "--help"],
        "from qms22 import detect": [sys.executable, "-c", "from qms22 import detect"],
        "qms22 detect, 300 + 80 rows of 15 columns": [_QMS22, "detect", *tables],
    }


# Run by a small process of its own, as the peak of a process counts the memory of its parent.
_MEASURE = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - began
print(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measure(program: list[str]) -> list[float]:
    """Run a program; return its seconds, its CPU seconds and its megabytes at most."""
    command = [sys.executable, "-S", "-c", _MEASURE, *program]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(each) for each in result.stdout.split()]


@click.command()
@click.option("--runs", default=20, show_default=True, help="How often each program runs.")
@output_option("startup.csv")
def main(runs: int, output: Path) -> None:
    """Show the least of several runs: other work on the machine can only add to it."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, program in programs(Path(folder)).items():
            usages = [measure(program) for _ in range(runs)]
            seconds, cpu_seconds, megabytes = map(min, zip(*usages, strict=True))
            lines.append([name, f"{seconds:.3f}", f"{cpu_seconds:.3f}", f"{megabytes:.0f}"])
            console.print(f"{name}: {seconds:.3f} s, {cpu_seconds:.3f} s CPU, {megabytes:.0f} MB")
    write_csv(
        output / "startup.csv", ["program", "seconds", "cpu_seconds", "peak_megabytes"], lines
    )


if __name__ == "__main__":
    main()
