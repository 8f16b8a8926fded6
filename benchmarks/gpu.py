"""Measure the GPU backend: the paper's fits, against the limits of memory and synchronization.

Times of fits are the GPU's own (CUDA events), the best of a few; floors are measured in the same
run. Prints a table and writes cuda.csv:

    python benchmarks/gpu.py --output benchmarks/results
"""

from __future__ import annotations

import csv
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from reporting import console, output_option
from rich.table import Table

import qms22
from qms22._cpm.cuda.backend import CudaBackend, CudaFits
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._cpm.task import Task, detection_task
from qms22._runtime.devices import need_cupy

CASES = [(4_000, 10), (100_000, 10), (1_000_000, 10), (10_000_000, 10), (100_000, 100)]
CASES += [(1_000_000, 100)]
N_MEMBERS = 7


def machine() -> dict[str, str]:
    cupy = need_cupy()
    runtime = cupy.cuda.runtime
    return {
        "gpu": runtime.getDeviceProperties(0)["name"].decode(),
        "cuda runtime": str(runtime.runtimeGetVersion()),
        "cuda driver": str(runtime.driverGetVersion()),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "qms22": qms22.__version__,
    }


def make_task(n: int, p: int) -> Task:
    """Make a QMS22 task of correlated Gaussian rows on the GPU, some of S stretched."""
    cupy = need_cupy()
    rng, rng_there = np.random.RandomState(0), cupy.random.RandomState(0)
    X = rng_there.normal(size=(n, p)) @ cupy.asarray(rng.normal(size=(p, p)))
    n_unlabeled = n // 5
    X[: n_unlabeled // 10] *= 2
    X *= 255 / cupy.abs(X[n_unlabeled:]).max(axis=0)
    return detection_task(X, n_unlabeled, N_MEMBERS, rng)


def gpu_seconds(work: Callable[[], object]) -> float:
    """Time that the GPU takes for what a function starts there."""
    cupy = need_cupy()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cupy.cuda.Device().synchronize()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3


# What the passes of a fit read and write in device memory, without arithmetic or synchronization:
# the features of two entries, those of the accepted ones once more, and the state of the rows with
# what an accepted step changes of it, unless that is in shared memory. In one launch, 16 bytes at a
# time, every row in one thread, as in the fit.
STREAM = r"""
extern "C" __global__ void stream(uint4* memory, long long n_packs, int n_features, int n_passes,
                                  double accepted, bool with_state) {
    unsigned seen = 0;
    const auto read = [&](long long at) {
        uint4 pack;
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
                     : "l"(memory + at));
        seen ^= pack.x ^ pack.y ^ pack.z ^ pack.w;
    };
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long step = (long long)gridDim.x * blockDim.x;
    double n_accepted = 0;
    for (int pass = 0, feature = 0; pass < n_passes; ++pass) {
        const int n_taken = int(n_accepted + 2 * accepted) - int(n_accepted);
        n_accepted += 2 * accepted;
        feature += feature + 2 < n_features ? 2 : 2 - n_features;
        for (long long i = first; i < n_packs; i += step) {
            for (int k = 0; k < 2 + n_taken; ++k)
                read((feature - k + (feature < k ? n_features : 0)) * n_packs + i);
            if (!with_state) continue;
            uint4* const state = memory + n_features * n_packs + i;
            for (int k = 0; k < 5; ++k) read(state + k * n_packs - memory);
            for (int k = 0; n_taken && k < 3; ++k) state[k * n_packs] = {seen, 0, 0, 0};
        }
    }
    if (seen == 0x12345678u) memory[0] = {seen, 0, 0, 0};
}
"""


def memory_seconds(
    task: Task, dtype: str, n_passes: int, accepted: float, with_state: bool
) -> float:
    """Time that memory alone needs for the passes of a fit."""
    cupy = need_cupy()
    n, p = task.X.shape
    kernel = cupy.RawKernel(STREAM, "stream", options=("-std=c++17",))
    n_packs = -(-n * np.dtype(dtype).itemsize // 16)
    memory = cupy.zeros(((p + 1 + 5) * n_packs, 4), dtype=np.uint32)
    n_blocks = cupy.cuda.Device().attributes["MultiProcessorCount"]
    sizes = (np.int64(n_packs), np.int32(p + 1), np.int32(n_passes))
    arguments = (memory, *sizes, np.float64(accepted), np.bool_(with_state))

    def stream() -> None:
        kernel((2 * n_blocks,), (1024,), arguments)

    stream()
    return min(gpu_seconds(stream) for _ in range(2))


def copy_bytes_per_second() -> float:
    """Speed of a large copy, read and written bytes counted."""
    cupy = need_cupy()
    source = cupy.ones(1 << 29)
    target = cupy.empty_like(source)
    seconds = min(gpu_seconds(lambda: cupy.copyto(target, source)) for _ in range(5))
    return float(2 * source.nbytes / seconds)


@dataclass(frozen=True)
class Measured:
    """A fit, and the floors below its time."""

    seconds: float
    memory_floor: float
    sync_floor: float
    accepted: float
    team: str

    @property
    def share_of_floor(self) -> float:
        """The share of the time that memory and synchronization alone would take."""
        return (self.memory_floor + self.sync_floor) / self.seconds


def measure(task: Task, options: SolverOptions, repeats: int) -> Measured:
    start = Fit.of(task, options)
    seconds = float("inf")
    for _ in range(repeats + 1):  # the first one compiles
        fits = CudaFits([start], options, options.max_iter)
        seconds = min(seconds, gpu_seconds(lambda fits=fits: fits.launch(options.max_iter)))  # type: ignore[misc]
    fit, shape = fits._fits[0], fits._shape
    n_entries = start.state.members.A.size + start.state.members.b.size
    accepted = int(fit.arrays["accepted"].sum()) / (options.max_iter * n_entries)
    n_passes = options.max_iter * N_MEMBERS * -(-(n_entries // N_MEMBERS) // 2)
    memory_floor = memory_seconds(
        start.task, options.dtype, n_passes, accepted, with_state=not shape.shared_bytes
    )

    # The same kernel without rows: only synchronization. No step is taken, so it makes one sweep.
    fit.record["n_rows"] = 0
    cupy = need_cupy()
    fits._records = cupy.asarray(np.array([fit.record]).view(np.uint8))
    sync_floor = options.max_iter * min(gpu_seconds(lambda: fits.launch(1)) for _ in range(5))
    return Measured(seconds, memory_floor, sync_floor, accepted, shape.team)


def measure_fits(rows: list[tuple[Any, ...]], repeats: int, largest: int) -> None:
    table = Table(title="60 sweeps, m = 7, q = 10: seconds on the GPU")
    headings = ("rows × features", "dtype", "seconds", "memory alone", "synchronization alone")
    for heading in (*headings, "share of the two", "accepted", "team"):
        table.add_column(heading, justify="right")
    for n, p in CASES:
        if n > largest:
            continue
        task = make_task(n, p)
        for dtype in ("float32", "float64"):
            found = measure(task, SolverOptions(dtype=dtype), repeats)
            rows += [
                ("fit", f"{n} x {p} {dtype}", name, f"{value:.6g}")
                for name, value in (
                    ("seconds", found.seconds),
                    ("memory_floor_seconds", found.memory_floor),
                    ("sync_floor_seconds", found.sync_floor),
                    ("share_of_floor", found.share_of_floor),
                    ("accepted", found.accepted),
                )
            ]
            table.add_row(
                f"{n:,} × {p}",
                dtype,
                f"{found.seconds:.4f}",
                f"{found.memory_floor:.4f}",
                f"{found.sync_floor:.4f}",
                f"{found.share_of_floor:.0%}",
                f"{found.accepted:.0%}",
                found.team,
            )
    console.print(table)


def measure_batch(rows: list[tuple[Any, ...]], n_fits: int, n: int) -> None:
    """Many small fits in one launch, against one after the other."""
    cupy = need_cupy()
    backend = CudaBackend()
    for dtype in ("float32", "float64"):
        options = SolverOptions(dtype=dtype, device="cuda")
        task = make_task(n, 10)
        groups = [np.random.RandomState(seed).permutation(task.group) for seed in range(n_fits)]
        tasks = [Task(task.X, group, task.group_weight) for group in groups]
        fits = [Fit.of(task, options) for task in tasks]
        for some in (fits, fits[:1]):  # the first runs compile
            backend.solve(some, replace(options, max_iter=1))
        together = gpu_seconds(lambda: backend.solve(fits, options))  # noqa: B023
        alone = gpu_seconds(lambda: backend.solve(fits[:1], options))  # noqa: B023
        case = f"{n_fits} of {n} x 10 {dtype}"
        rows.append(("batch", case, "seconds", f"{together:.6g}"))
        rows.append(("batch", case, "seconds_of_one_alone", f"{alone:.6g}"))
        console.print(
            f"{n_fits} fits of {n:,} × 10, {dtype}, in one launch: {together:.3f} s; one of them "
            f"alone {alone:.3f} s"
        )
    bandwidth = copy_bytes_per_second()
    rows.append(("memory", "copy of 4 GiB", "bytes_per_second", f"{bandwidth:.6g}"))
    console.print(f"copying 4 GiB: {bandwidth / 1e12:.2f} TB/s, read and written bytes counted")
    cupy.get_default_memory_pool().free_all_blocks()


def measure_scores(rows: list[tuple[Any, ...]], n: int, repeats: int) -> None:
    """Scores of rows in device memory, by the clock on the wall."""
    cupy = need_cupy()
    rng = np.random.RandomState(0)
    detector = qms22.QMS22(device="cuda", random_state=0, contamination=50)
    detector.fit(rng.normal(size=(20_000, 10)), unlabeled=rng.normal(size=(5_000, 10)))
    X = cupy.random.RandomState(0).normal(size=(n, 10))
    seconds = float("inf")
    for _ in range(repeats + 1):  # the first one compiles
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        detector.score_samples(X)
        cupy.cuda.Device().synchronize()
        seconds = min(seconds, time.perf_counter() - begin)
    rows.append(("scores", f"{n} x 10 float64", "seconds", f"{seconds:.6g}"))
    console.print(f"scoring {n:,} × 10 rows from device memory: {seconds:.4f} s")


@click.command()
@output_option("cuda.csv")
@click.option("--repeats", default=2, show_default=True, help="Fits of each size; the best counts.")
@click.option("--largest", default=10_000_000, show_default=True, help="Rows, at most.")
def main(output: Path, repeats: int, largest: int) -> None:
    """Measure the GPU backend; takes about two minutes."""
    output.mkdir(parents=True, exist_ok=True)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()), "\n")
    rows: list[tuple[Any, ...]] = [("machine", "", name, text) for name, text in machine().items()]
    measure_fits(rows, repeats, largest)
    measure_batch(rows, n_fits=100, n=1_000)
    measure_scores(rows, largest, repeats)
    with (output / "cuda.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["section", "case", "quantity", "value"])
        writer.writerows(rows)
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
