"""Measure how long `import qms22` and `qms22 --help` take, and how much memory.

python benchmarks/startup.py --output benchmarks/results
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import click
from reporting import console, output_option, write_csv

_PROGRAMS = {
    "python, for comparison": [sys.executable, "-c", ""],
    "import qms22": [sys.executable, "-c", "import qms22"],
    "qms22 --help": [str(Path(sysconfig.get_path("scripts")) / "qms22"), "--help"],
    "from qms22 import detect": [sys.executable, "-c", "from qms22 import detect"],
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
    for name, program in _PROGRAMS.items():
        usages = [measure(program) for _ in range(runs)]
        seconds, cpu_seconds, megabytes = map(min, zip(*usages, strict=True))
        lines.append([name, f"{seconds:.3f}", f"{cpu_seconds:.3f}", f"{megabytes:.0f}"])
        console.print(f"{name}: {seconds:.3f} s, {cpu_seconds:.3f} s of CPU, {megabytes:.0f} MB")
    write_csv(
        output / "startup.csv", ["program", "seconds", "cpu_seconds", "peak_megabytes"], lines
    )


if __name__ == "__main__":
    main()
