"""Run `qms22 detect` on a Parquet file larger than the memory it is allowed.

The command runs under a limit of address space (``ulimit -v``), so that it fails if it needs more:

    python benchmarks/large_files.py --output benchmarks/results

Writes large_files.csv. The tables are in a temporary folder and need twice `--times` the cap of
disk space.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from detect import ARGUMENTS, run_detect
from reporting import console, output_option, write_csv

ROWS_PER_GROUP = 100_000

# Every thread and every memory pool of a library reserves address space.
FEW_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}


def write_table(path: Path, n_rows: int, n_columns: int, *, share: float, seed: int) -> None:
    """Write Gaussian rows, which do not compress, with a share of shifted rows."""
    rng = np.random.default_rng(seed)
    names = [f"x{at}" for at in range(n_columns)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("truth", pa.int8())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, n_rows, ROWS_PER_GROUP):
            size = min(ROWS_PER_GROUP, n_rows - first)
            truth = rng.random(size) < share
            rows = rng.normal(size=(size, n_columns)) + 1.0 * truth[:, np.newaxis]
            writer.write_table(pa.table([*rows.T, truth.astype(np.int8)], schema))


@click.command()
@click.option("--cap", default=1_000_000_000, show_default=True, help="Bytes of address space.")
@click.option("--times", default=3.1, show_default=True, help="Size of the file, in caps.")
@click.option("--columns", default=50, show_default=True)
@click.option("--preset", default="paper", show_default=True)
@click.option(
    "--max-samples", type=int, help="Option of the command, which chooses a number by default."
)
@output_option("large_files.csv")
def main(
    cap: int, times: float, columns: int, preset: str, max_samples: int | None, output: Path
) -> None:
    """Detect in a file some times larger than memory; takes ten minutes."""
    n_rows = int(times * cap / (8 * columns))
    more = [*ARGUMENTS, "--preset", preset, "--n-jobs", "1"]
    if max_samples is not None:
        more += ["--max-samples", str(max_samples)]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_table(directory / "normal.parquet", 2 * ROWS_PER_GROUP, columns, share=0, seed=0)
        write_table(directory / "batch.parquet", n_rows, columns, share=0.001, seed=1)
        size = (directory / "batch.parquet").stat().st_size
        run = run_detect(directory, more, FEW_THREADS, cap)
        n_written = pq.ParquetFile(directory / "found.parquet").metadata.num_rows
    assert n_written == n_rows
    numbers = {
        "preset": preset,
        "rows": n_rows,
        "columns": columns,
        "max_samples": max_samples or "default",
        "file_megabytes": round(size / 1e6),
        "cap_megabytes": round(cap / 1e6),
        "file_over_cap": round(size / cap, 2),
        "peak_megabytes": round(run.peak / 1e6),
        "seconds": round(run.seconds),
    }
    write_csv(output / "large_files.csv", numbers, [numbers.values()])
    console.print(", ".join(f"{key} {value}" for key, value in numbers.items()))
    console.print(run.words)


if __name__ == "__main__":
    main()
