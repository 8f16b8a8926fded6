"""Search for two hours in one process, and look for growth of memory, open files and threads.

In the first hour one thread searches, then eight at once. Each search reads files of another format
and writes results, page, model and history; every fourth is given a file that is refused:

    python benchmarks/soak.py --minutes 60 --output benchmarks/results

Writes soak.csv, and ends with 1 if something grew. A leak is memory that stays in use: the bytes
that malloc and Arrow have given out, and Python's blocks. The memory of the process can grow
without one: glibc has up to eight arenas for each core, and keeps what is free between blocks that
are in use. With MALLOC_ARENA_MAX=1 in the environment it does not grow.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import sqlite3
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import click
import duckdb
import numpy as np
import pyarrow as pa
from mixed.tables import ORDERS
from reporting import console, output_option, write_csv
from scipy.stats import theilslopes

from qms22 import detect

_SIZES = {"normal": 300, "batch": 120}
_READ = ("csv", "csv.gz", "parquet", "feather", "jsonl", "xlsx", "sqlite", "duckdb")
_WRITTEN = ("csv", "xlsx", "parquet", "json")
_REFUSED = ("cut.xlsx", "cut.parquet", "cut.csv.gz", "cut.sqlite", "binary.csv", "view.duckdb")
_SEARCHES_PER_SAMPLE = 24

# Caches, pools of threads and arenas of the allocator fill first.
_WARM_UP = 0.3
# What a search must not leave: the columns of its batch have 15 kB, its page and model 100 kB.
_LEAST_LEAK = {"used": 1000, "blocks": 10}


class Sample(NamedTuple):
    """What the process holds after so many searches."""

    threads_at_once: int
    seconds: float
    searches: int
    bytes: int  # of all memory
    used: int  # bytes that malloc and Arrow have given out
    blocks: int  # of Python's objects
    files: int
    threads: int


def write_tables(folder: Path) -> None:
    """Write the known-normal table and the batch in every format, and files that are refused."""
    rng = np.random.default_rng(0)
    for name, n_rows in _SIZES.items():
        frame = ORDERS.draw(n_rows, rng)
        frame.insert(0, "order_id", [f"{name}-{at}" for at in range(n_rows)])
        path = folder / name
        frame.to_csv(f"{path}.csv", index=False)
        frame.to_csv(f"{path}.csv.gz", index=False)
        frame.to_parquet(f"{path}.parquet")
        frame.to_feather(f"{path}.feather")
        frame.to_json(f"{path}.jsonl", orient="records", lines=True, date_format="iso")
        frame.to_excel(f"{path}.xlsx", index=False, engine="xlsxwriter")
        with closing(sqlite3.connect(f"{path}.sqlite")) as file:
            frame.to_sql("t", file, index=False)
        with duckdb.connect(f"{path}.duckdb") as file:
            file.register("frame", frame)
            file.execute("create table t as select * from frame")
    for name in _REFUSED[:4]:
        whole = (folder / name.replace("cut", "batch")).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) * 2 // 3])
    (folder / "binary.csv").write_bytes(bytes(1000))
    with duckdb.connect(str(folder / "view.duckdb")) as file:
        file.execute("create view t as select * from read_text('/etc/hostname')")


def search(folder: Path, number: int) -> None:
    """Search a batch and write all outputs, or be refused a file."""
    if number % 4 == 3:
        name = _REFUSED[number // 4 % len(_REFUSED)]
        with suppress(ValueError):
            detect(folder / "normal.csv", folder / name)
            raise AssertionError(f"{name} was read")
        return
    own = folder / str(threading.get_ident())
    own.mkdir(exist_ok=True)
    (own / "h.sqlite").unlink(missing_ok=True)
    kind = _READ[number % len(_READ)]
    found = detect(
        folder / f"normal.{kind}",
        folder / f"batch.{kind}",
        id="order_id",
        n_jobs=1 + number % 2,
        history=own / "h.sqlite",
        accept=True,
    )
    found.write(own / f"o.{_WRITTEN[number // len(_READ) % len(_WRITTEN)]}")
    found.report(own / "page.html")
    found.save(own / "m.skops")


def soak(
    folder: Path, seconds: float, threads_at_once: int, every: int = _SEARCHES_PER_SAMPLE
) -> Iterator[Sample]:
    """Search for so many seconds; yield what the process holds after `every` few searches."""
    began = time.monotonic()
    for n_before in itertools.count(0, every):
        n_searches = n_before + every
        numbers = range(n_before, n_searches)
        if threads_at_once == 1:
            for number in numbers:
                search(folder, number)
        else:  # new threads each time, as those that ended must leave nothing
            with ThreadPoolExecutor(threads_at_once) as pool:
                list(pool.map(search, [folder] * len(numbers), numbers))
        elapsed = time.monotonic() - began
        yield Sample(threads_at_once, round(elapsed, 1), n_searches, *held())
        if elapsed > seconds:
            return


class _MallocInfo(ctypes.Structure):
    """What glibc's malloc holds in all arenas: `struct mallinfo2`."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def held() -> tuple[int, int, int, int, int]:
    """Return the bytes of the process, those in use, Python's blocks, open files and threads."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    used = pa.total_allocated_bytes()
    with suppress(OSError, AttributeError):  # it is glibc's
        glibc = ctypes.CDLL(None)
        glibc.malloc_trim(0)
        glibc.mallinfo2.restype = _MallocInfo
        info = glibc.mallinfo2()
        used += info.uordblks + info.hblkhd
    own = Path("/proc/self")
    n_bytes = int((own / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    n_files, n_threads = len(os.listdir(own / "fd")), len(os.listdir(own / "task"))
    return n_bytes, used, sys.getallocatedblocks(), n_files, n_threads


def slope_of(samples: list[Sample], name: str) -> tuple[float, float]:
    """Return what a search leaves after the warm-up, and the lower bound of that (99 %).

    The line of Theil and Sen: memory is given back in pieces, so that some samples are far off.
    """
    samples = samples[int(_WARM_UP * len(samples)) :]
    values = [getattr(sample, name) for sample in samples]
    fit = theilslopes(values, [sample.searches for sample in samples], alpha=0.99)
    return float(fit.slope), float(fit.low_slope)


def growth(samples: list[Sample]) -> list[str]:
    """Return what grew after the warm-up, in words."""
    faults = []
    for name, least in _LEAST_LEAK.items():
        slope, low = slope_of(samples, name)
        if low > least:
            faults.append(f"a search leaves {slope:,.0f} of {name}")
    samples = samples[int(_WARM_UP * len(samples)) :]
    half = (len(samples) + 1) // 2
    for name in ("files", "threads"):
        counts = [getattr(sample, name) for sample in samples]
        before, after = max(counts[:half]), max(counts[half:], default=0)
        if after > before:
            faults.append(f"{after} {name} instead of {before}")
    return faults


@click.command()
@click.option("--minutes", default=60.0, show_default=True, help="Time for each of `threads`.")
@click.option("--threads", default=(1, 8), multiple=True, show_default=True)
@output_option("soak.csv")
def main(minutes: float, threads: tuple[int, ...], output: Path) -> None:
    """Search, print and write; end with 1 if something grew."""
    faults, every = [], []
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name))
        for threads_at_once in threads:
            samples = list(soak(Path(name), minutes * 60, threads_at_once))
            every += samples
            found = growth(samples)
            faults += found
            last = samples[-1]
            console.print(
                f"{threads_at_once} at once: {last.searches:,} searches, "
                f"{slope_of(samples, 'used')[0]:,.0f} bytes each, {last.used / 1e6:,.1f} of "
                f"{last.bytes / 1e6:,.0f} MB in use, {last.files} open files, {last.threads} "
                f"threads; {', '.join(found) or 'nothing grew'}"
            )
    write_csv(output / "soak.csv", Sample._fields, every)
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
