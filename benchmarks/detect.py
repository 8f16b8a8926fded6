"""Time `qms22 detect` on large Parquet files, and measure its memory.

python benchmarks/detect.py --rows 1000000 --output benchmarks/results
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pandas as pd
from reporting import console, output_option, write_csv

ARGUMENTS = (
    *("normal.parquet", "batch.parquet", "--label", "truth"),
    *("--quiet", "--output", "found.parquet"),
)

_OWN = re.compile(r"RssAnon:\s*(\d+)")
# The line about the stage, which replaces itself.
_STAGE = re.compile(r"\r\x1b\[K([a-z][^…:\r\n]*?)(?: …|: \d+ %)")


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


class Run(NamedTuple):
    """What a run of the command took.

    Parameters
    ----------
    seconds, cpu_seconds : float
    peak : int
        Bytes of memory.
    own : int
        The peak without pages of mapped files, which the system takes back when it needs them.
    words : str
        What it printed on standard error.
    stages : dict from str to tuple of float
        Seconds and CPU seconds of each stage that it showed, in this order.
    """

    seconds: float
    cpu_seconds: float
    peak: int
    own: int
    words: str
    stages: dict[str, tuple[float, float]]


def run_detect(
    directory: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    cap: int | None = None,
) -> Run:
    """Run the command in a directory, with a terminal as standard error.

    Parameters
    ----------
    directory : Path
    arguments : sequence of str
        Tables and options of the command.
    environment : mapping
        Variables to set.
    cap : int, optional
        Most bytes of address space.
    """
    script = Path(sysconfig.get_path("scripts")) / "qms22"

    def limit() -> None:
        if cap is not None:
            resource.setrlimit(resource.RLIMIT_AS, (cap, cap))

    begin = time.perf_counter()
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [str(script), "detect", *arguments],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "100", **(environment or {})},
        preexec_fn=limit,
    ) as process:
        os.close(theirs)
        own: list[int] = [0]
        threading.Thread(target=_watch, args=(process.pid, own)).start()
        words, marks = "", [("starting", 0.0, 0.0)]
        for text in _read(ours):
            words += text
            for stage in _STAGE.findall(text):
                if stage != marks[-1][0]:
                    marks.append((stage, time.perf_counter() - begin, _cpu_seconds(process.pid)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, cpu_seconds = time.perf_counter() - begin, usage.ru_utime + usage.ru_stime
    if status:
        raise RuntimeError(words)
    stages: dict[str, tuple[float, float]] = {}
    for (stage, *began), (_, *ended) in pairwise([*marks, ("", seconds, cpu_seconds)]):
        before = stages.get(stage, (0.0, 0.0))
        stages[stage] = (before[0] + ended[0] - began[0], before[1] + ended[1] - began[1])
    return Run(seconds, cpu_seconds, usage.ru_maxrss * 1024, max(own), words.strip(), stages)


def _read(terminal: int) -> Iterator[str]:
    """Yield what is written to a terminal until it is closed."""
    try:
        while text := os.read(terminal, 4096):
            yield text.decode(errors="replace")
    except OSError:  # of Linux, once nobody writes any more
        pass
    finally:
        os.close(terminal)


def _watch(pid: int, found: list[int]) -> None:
    """Note the memory of a process that is not of mapped files, until it ends."""
    with suppress(OSError):
        while sizes := _OWN.search(Path(f"/proc/{pid}/status").read_text()):
            found.append(int(sizes[1]) << 10)
            time.sleep(0.02)


def _cpu_seconds(pid: int) -> float:
    """Return how much CPU time a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
            run = run_detect(directory, [*ARGUMENTS, "--preset", preset])
            megabytes = run.peak / 1e6
            lines.append([preset, rows, features, f"{run.seconds:.1f}", f"{megabytes:.0f}"])
            console.print(f"{preset}: {run.seconds:.0f} s, {megabytes:.0f} MB at most; {run.words}")
    headings = ["preset", "rows", "features", "seconds", "peak_megabytes"]
    write_csv(output / "detect.csv", headings, lines)


if __name__ == "__main__":
    main()
