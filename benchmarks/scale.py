"""Measure run times from a thousand to ten million rows: CPU, GPU, samples and rivals.

QMS22 with the paper's settings (60 sweeps): fit and scores of the batch, a fifth of the rows. If 60
sweeps would take too long, fewer are made and the time of a sweep is extrapolated; the table says
how many were made. Rivals stop at the size that takes too long. Prints the table and writes the
rows of this run into scale.csv; rows of the other device stay in the file:

    python benchmarks/scale.py --output benchmarks/results
    python benchmarks/scale.py --output benchmarks/results --device cuda
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from reporting import console, machine, output_option
from rich.table import Table

from qms22 import QMS22
from qms22_bench.registry import get_detector, outlier_scores

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FEATURES = (10, 100)
MOST_NUMBERS = 10**8  # of a table; more need too much memory
DRAW = 10_000
N_SWEEPS = 60
RIVALS = ("IsolationForest", "BRM (bags of 256)", "kNN", "LOF")


class Line(NamedTuple):
    """A row of the table."""

    device: str
    rows: int
    features: int
    detector: str
    precision: str
    threads: int
    sweeps_made: int
    seconds: float


def make_rows(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Make Gaussian rows, and a batch in which one row in twenty is stretched."""
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(n - n // 5, p)), rng.normal(size=(n // 5, p))
    batch[: n // 100] *= 2
    return normal, batch


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fit_seconds(
    normal: np.ndarray, batch: np.ndarray, most_seconds: float, **parameters: Any
) -> tuple[float, int]:
    """Return the seconds of a fit of 60 sweeps, possibly extrapolated, and the sweeps made."""

    def fit(n_sweeps: int) -> float:
        detector = QMS22(max_iter=n_sweeps, random_state=0, contamination=1, **parameters)
        return seconds(lambda: detector.fit(normal, unlabeled=batch))

    one = fit(1)  # on a GPU it also compiles the kernel
    if parameters["device"] == "cuda" or one * N_SWEEPS <= most_seconds:
        return fit(N_SWEEPS), N_SWEEPS
    n_sweeps = max(2, min(N_SWEEPS, round(most_seconds / one / 2)))
    some = fit(n_sweeps)
    return one + (some - one) / (n_sweeps - 1) * (N_SWEEPS - 1), n_sweeps


def ours(normal: np.ndarray, batch: np.ndarray, device: str, most: float) -> Iterator[Line]:
    """Time QMS22."""
    n, p = len(normal) + len(batch), normal.shape[1]
    threads = (1,) if device == "cuda" else (1, 2) if n * p < MOST_NUMBERS else (2,)
    for dtype in ("float64", "float32"):
        for n_jobs in threads:
            took, made = fit_seconds(normal, batch, most, dtype=dtype, device=device, n_jobs=n_jobs)
            yield Line(device, n, p, "QMS22", dtype, n_jobs, made, took)
    if device == "cpu":
        took, made = fit_seconds(
            normal, batch, most, dtype="float32", device=device, n_jobs=2, max_samples=DRAW
        )
        yield Line(device, n, p, f"QMS22, max_samples={DRAW:,}", "float32", 2, made, took)


def rivals(normal: np.ndarray, batch: np.ndarray, left: set[str], most: float) -> Iterator[Line]:
    """Time the rivals in `left`, and remove those that would take too long at the next size."""
    n, p = len(normal) + len(batch), normal.shape[1]
    for name in sorted(left):
        detector: Any = get_detector(name.split(" ")[0]).build(0)
        threads = 1
        if "BRM" in name:
            detector.set_params(max_samples=256)
        if "n_jobs" in detector.get_params():
            detector.set_params(n_jobs=2)
            threads = 2
        took = seconds(partial(outlier_scores, detector, normal, batch))
        # Ten times the rows take at least ten times as long.
        if took * 10 > most:
            left.discard(name)
        yield Line("cpu", n, p, name, "float64", threads, 0, took)


def show(lines: list[Line]) -> None:
    """Print the table: a row per detector, a column per size."""
    for p in FEATURES:
        table = Table(title=f"seconds, {p} features")
        for heading in ("device", "detector", "precision", "threads"):
            table.add_column(heading)
        for n in SIZES:
            table.add_column(f"{n:,}", justify="right")
        kinds = dict.fromkeys((x.device, x.detector, x.precision, x.threads) for x in lines)
        for kind in kinds:
            cells = {
                x.rows: f"{x.seconds:.3g}{'' if x.sweeps_made in (0, N_SWEEPS) else ' *'}"
                for x in lines
                if x.features == p and (x.device, x.detector, x.precision, x.threads) == kind
            }
            if cells:
                table.add_row(*map(str, kind), *(cells.get(n, "") for n in SIZES))
        console.print(table)
    console.print(f"* extrapolated from fewer than {N_SWEEPS} sweeps")


@click.command()
@output_option("scale.csv")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--largest", default=SIZES[-1], show_default=True, help="Rows, at most.")
@click.option("--most-seconds", default=12.0, show_default=True, help="For one fit, about.")
def main(output: Path, device: str, largest: int, most_seconds: float) -> None:
    """Measure, print and write."""
    lines: list[Line] = []
    for p in FEATURES:
        left = set(RIVALS) if device == "cpu" else set()
        for n in SIZES:
            if n > largest or n * p > MOST_NUMBERS:
                continue
            console.log(f"{n:,} rows, {p} features")
            normal, batch = make_rows(n, p)
            lines += ours(normal, batch, device, most_seconds)
            lines += rivals(normal, batch, left, most_seconds)
    show(lines)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "scale.csv"
    kept: list[list[str]] = []
    if path.exists():
        with path.open(newline="") as file:
            kept = [row for row in csv.reader(file) if row[0] not in ("device", device)]
    facts = machine()
    if device == "cuda":
        cupy = import_module("cupy")
        facts["gpu"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Line._fields)
        writer.writerows(kept)
        writer.writerows((device, "machine", name, text) for name, text in facts.items())
        writer.writerows((*line[:-1], f"{line.seconds:.4g}") for line in lines)


if __name__ == "__main__":
    main()
