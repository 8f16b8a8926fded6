"""Measure the native kernel: against the naive loop, memory, and itself.

Every figure is a ratio of times taken in turn in this one run. Prints tables and writes
kernel.csv and kernel-scaling.png:

    python benchmarks/kernel.py --output benchmarks/results
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import numpy as np
from compiled import load
from naive import naive_cpm
from reporting import console, machine, output_option, write_csv
from rich.table import Table

from qms22._cpm.native import NativeSolver
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._cpm.task import Task, detection_task


@dataclass
class Results:
    """The numbers measured so far."""

    rows: list[tuple[str, str, str, float]] = field(default_factory=list)

    def add(self, section: str, case: str, **numbers: float) -> None:
        """Add the numbers of one case."""
        self.rows += [(section, case, name, float(value)) for name, value in numbers.items()]

    def write(self, path: Path) -> None:
        """Write all numbers as CSV."""
        rows = ((*row[:3], f"{row[3]:.6g}") for row in self.rows)
        write_csv(path, ["section", "case", "quantity", "value"], rows)


def make_task(n: int, p: int, n_members: int = 7, seed: int = 0) -> Task:
    """Make a QMS22 task of correlated Gaussian rows, some of the unlabeled ones stretched."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    n_unlabeled = n // 5
    X[: n_unlabeled // 10] *= 2
    X *= 255 / np.abs(X[n_unlabeled:]).max(axis=0)
    return detection_task(X, n_unlabeled, n_members, rng)


def best_in_turn(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Shortest time of each work; they take turns, so that noise meets all of them."""
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for i, work in enumerate(works):
            begin = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def n_row_trials(task: Task, options: SolverOptions) -> int:
    n, p = map(int, task.X.shape)
    return options.max_iter * task.n_members * options.n_components * (p + 1) * n


def sweep_natively(task: Task, options: SolverOptions) -> NativeSolver:
    backend = NativeSolver(Fit.of(task, options), options)
    for _ in range(options.max_iter):
        backend.sweep()
    return backend


def accepted_share(task: Task, options: SolverOptions) -> float:
    backend = NativeSolver(Fit.of(task, options), options)
    n_accepted = sum(backend.sweep()[1] for _ in range(options.max_iter))
    return n_accepted * len(task.X) / n_row_trials(task, options)


def stream_seconds(
    n: int, p: int, dtype: str, accepting: bool, n_threads: int = 1, repeats: int = 3
) -> float:
    """Time that memory alone needs for the pass of one trial over n rows."""
    n_doubles = n * np.dtype(dtype).itemsize // 8 // n_threads
    stride = (n_doubles // 512 + 1) * 512 + 72  # staggered, as in the kernel
    arenas = [np.ones((p + 7) * stride) for _ in range(n_threads)]
    passes = max(1, int(2e7 / n))

    def run(arena: np.ndarray) -> None:
        load("stream.cpp").stream(
            arena.ctypes.data_as(ctypes.c_void_p),
            *(ctypes.c_size_t(size) for size in (stride, n_doubles, p + 1)),
            ctypes.c_bool(accepting),
            ctypes.c_size_t(passes),
        )

    with ThreadPoolExecutor(n_threads) as pool:
        best = best_in_turn(repeats, lambda: list(pool.map(run, arenas)))[0]
    return best / passes


def floor_seconds(task: Task, options: SolverOptions, n_threads: int = 1) -> float:
    """Roofline: the time memory needs for all trials of a fit, given how many are accepted."""
    n, p = map(int, task.X.shape)
    share = accepted_share(task, options)
    per_trial = [
        stream_seconds(n, p, options.dtype, accepting, n_threads) for accepting in (False, True)
    ]
    n_trials = n_row_trials(task, options) / n
    return n_trials * ((1 - share) * per_trial[0] + share * per_trial[1])


def measure_speed(results: Results, repeats: int) -> None:
    table = Table(title="One thread: times faster than the naive C++ loop, and than memory")
    headings = ("rows × features", "dtype", "ns / row-trial", "naive", "naive, float64")
    for heading in (*headings, "naive, 1/f kept", "of memory floor", "accepted", "O(m) rows"):
        table.add_column(heading, justify="right")
    for n, p, n_sweeps in [(4_000, 10, 10), (200, 9, 60), (1_000, 20, 10), (4_000, 40, 3)]:
        task = make_task(n, p)
        double = SolverOptions(max_iter=n_sweeps)
        for dtype in ("float64", "float32"):
            options = replace(double, dtype=dtype)
            solver = sweep_natively(task, options)
            naive, naive_double, naive_kept, native = best_in_turn(
                repeats,
                lambda t=task, o=options: naive_cpm(t, o),  # type: ignore[misc]
                lambda t=task, o=double: naive_cpm(t, o),  # type: ignore[misc]
                lambda t=task, o=options: naive_cpm(t, o, reciprocals=True),  # type: ignore[misc]
                lambda t=task, o=options: sweep_natively(t, o),  # type: ignore[misc]
            )
            numbers = {
                "nanoseconds_per_row_trial": native / n_row_trials(task, options) * 1e9,
                "times_naive": naive / native,
                "times_naive_float64": naive_double / native,
                "times_naive_reciprocals": naive_kept / native,
                "share_of_floor": native / floor_seconds(task, options),
                "accepted": accepted_share(task, options),
                "slow": solver.core.slow_row_trials / solver.core.row_trials,
            }
            results.add("speed", f"{n} x {p} {dtype}", **numbers)
            ns, *ratios, floor, accepted, slow = numbers.values()
            cells = [f"{ns:.3f}", *(f"{ratio:.1f}×" for ratio in ratios), f"{floor:.2f}×"]
            table.add_row(f"{n} × {p}", dtype, *cells, f"{accepted:.0%}", f"{slow:.2%}")
    console.print(table)


def measure_threads(results: Results, n: int, repeats: int) -> None:
    table = Table(title=f"{n:,} × 10: two threads against one, and what memory allows")
    for heading in ("dtype", "1 thread, ns", "2 threads, ns", "faster", "memory alone", "of floor"):
        table.add_column(heading, justify="right")
    task = make_task(n, 10)
    for dtype in ("float64", "float32"):
        options = SolverOptions(max_iter=1, dtype=dtype)
        fit = Fit.of(task, options)
        backends = [NativeSolver(fit, replace(options, n_threads=k)) for k in (1, 2)]
        one, two = best_in_turn(repeats, *(backend.sweep for backend in backends))
        floors = [floor_seconds(task, options, n_threads) for n_threads in (1, 2)]
        row_trials = n_row_trials(task, options)
        numbers = {
            "one_thread_nanoseconds": one / row_trials * 1e9,
            "two_threads_nanoseconds": two / row_trials * 1e9,
            "times_one_thread": one / two,
            "times_one_thread_memory_alone": floors[0] / floors[1],
            "share_of_floor": two / floors[1],
        }
        results.add("threads", f"{n} x 10 {dtype}", **numbers)
        first, second, faster, memory, floor = numbers.values()
        cells = [f"{first:.3f}", f"{second:.3f}", f"{faster:.2f}×", f"{memory:.2f}×"]
        table.add_row(dtype, *cells, f"{floor:.2f}×")
    console.print(table)


PEAK_MEMORY = """
import sys
from pathlib import Path
import numpy as np
from qms22 import QMS22
n, dtype = int(sys.argv[1]), sys.argv[2]
rows = np.random.default_rng(0).normal(size=(n, 10))
normal, batch = rows[n // 5 :], rows[: n // 5]
QMS22(max_iter=1).fit(normal[:100], unlabeled=batch[:100])
def peak():  # of this program alone: ru_maxrss would count its parent's
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
QMS22(max_iter=1, dtype=dtype).fit(normal, unlabeled=batch)
print(peak() - before)
"""


def measure_memory(results: Results, n: int) -> None:
    if not Path("/proc/self/status").exists():
        console.print("peak memory is measured on Linux alone\n")
        return
    for dtype in ("float64", "float32"):
        command = [sys.executable, "-c", PEAK_MEMORY, str(n), dtype]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        megabytes = int(output) * 1024 / 1e6
        results.add("memory", f"{n} x 10 {dtype}", megabytes_above_input=megabytes)
        console.print(f"{n:,} × 10 {dtype}: QMS22 fits in {megabytes:.0f} MB above its input")
    console.print()


def measure_scaling(results: Results, output: Path) -> None:
    """Time of a sweep against n, p, q and m, each with the slope of its logarithms."""
    from matplotlib.figure import Figure

    base = {"n": 1_000, "p": 10, "q": 10, "m": 7}
    values = {
        "n": [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000],
        "p": [5, 10, 20, 40, 80],
        "q": [5, 10, 20, 40, 80],
        "m": [3, 5, 7, 10, 15, 20],
    }
    axes = Figure(figsize=(7, 5), layout="constrained").add_subplot()
    slopes = []
    for name, series in values.items():
        seconds = []
        for value in series:
            shape = {**base, name: value}
            task = make_task(shape["n"], shape["p"], shape["m"])
            options = SolverOptions(n_components=shape["q"])
            backend = NativeSolver(Fit.of(task, options), options)
            backend.sweep()
            seconds.append(best_in_turn(3, backend.sweep)[0])
            results.add("scaling", f"{name} = {value}", seconds_per_sweep=seconds[-1])
        slope = np.polyfit(np.log(series), np.log(seconds), 1)[0]
        results.add("scaling", name, slope=slope)
        slopes.append(f"{name} {slope:.2f}")
        axes.loglog(series, seconds, "o-", label=f"{name}: slope {slope:.2f}")
    axes.set(
        xlabel="value",
        ylabel="seconds per sweep",
        title="Cost against rows n, features p, components q, members m\n"
        f"(the others at n = {base['n']}, p = {base['p']}, q = {base['q']}, m = {base['m']})",
    )
    axes.legend()
    figure = axes.get_figure()
    assert figure is not None
    figure.savefig(output / "kernel-scaling.png", dpi=120)  # type: ignore[union-attr]
    console.print("Cost grows with exponent: " + ", ".join(slopes))


@click.command()
@output_option("kernel.csv and kernel-scaling.png")
@click.option("--quick", is_flag=True, help="Fewer repeats and rows: a minute instead of several.")
def main(output: Path, quick: bool) -> None:
    """Measure the native kernel; takes about five minutes."""
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()), "\n")
    results = Results()
    measure_speed(results, repeats=2 if quick else 7)
    measure_threads(results, n=200_000 if quick else 1_000_000, repeats=2 if quick else 3)
    measure_memory(results, n=100_000 if quick else 1_000_000)
    measure_scaling(results, output)
    results.write(output / "kernel.csv")
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
