"""DaskQMS22Ensemble on local workers: cost per row, memory of a worker, and the level of flags.

python benchmarks/cluster_search.py --output benchmarks/results

Rows are made chunk by chunk where they are needed, as if read from files; no worker holds a table.
"""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path
from typing import Any

import click
import dask
import dask.array as da
import numpy as np
from cluster import N_FEATURES, local_workers, peak_megabytes
from distributed import Client, Worker
from reporting import console, machine

from qms22.dask import DaskQMS22Ensemble

CHUNK = 250_000
N_NORMAL = 1_000_000
OUTLIERS_PER_CHUNK = 250

LEVEL = 0.1


def make_rows(n_outliers: int, seed: int, block_id: tuple[int, int]) -> np.ndarray:
    """Make the rows of a chunk, outliers first."""
    rows = np.random.default_rng([seed, block_id[0]]).normal(size=(CHUNK, N_FEATURES))
    rows[:n_outliers] += 4
    return rows


def make_table(n_rows: int, n_outliers: int, seed: int) -> da.Array:
    chunks = ((CHUNK,) * (n_rows // CHUNK), (N_FEATURES,))
    return da.map_blocks(make_rows, n_outliers, seed, chunks=chunks, meta=np.empty((0, 0)))


def seconds_of_cpu() -> float:
    return time.process_time()


def bytes_received(dask_worker: Worker) -> int:
    """Return how much a worker has got from other workers."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def worker_totals(client: Client) -> tuple[float, int]:
    cpu, received = client.run(seconds_of_cpu), client.run(bytes_received)
    return sum(cpu.values()), sum(received.values())


def measure_search(n_workers: int, n_rows: int, draw: int) -> dict[str, Any]:
    """Fit on a draw, then score and flag all rows of a batch; nothing but sums comes back."""
    normal = make_table(N_NORMAL, 0, seed=0)
    batch = make_table(n_rows, OUTLIERS_PER_CHUNK, seed=1)
    n_outliers = OUTLIERS_PER_CHUNK * len(batch.chunks[0])
    with local_workers(n_workers) as client:
        client.run(__import__, "qms22.dask")
        begin = time.perf_counter()
        detector = DaskQMS22Ensemble(max_samples=draw, random_state=0)
        detector.fit(normal, unlabeled=batch)
        fitted, (cpu, received) = time.perf_counter(), worker_totals(client)
        highest = detector.unlabeled_scores_.max().compute()
        scored, (cpu_scored, received_scored) = time.perf_counter(), worker_totals(client)
        n_flagged = int(detector.flag(LEVEL).sum().compute())
        most_false = detector.false_at_most(n_flagged)
        flagged, (cpu_flagged, received_flagged) = time.perf_counter(), worker_totals(client)
        peaks = client.run(peak_megabytes).values()
    assert np.isfinite(highest)
    return {
        "rows": n_rows,
        "seconds_of_fit": f"{fitted - begin:.1f}",
        "seconds_of_scores": f"{scored - fitted:.1f}",
        "seconds_of_flags": f"{flagged - scored:.1f}",
        "cpu_us_per_row_scored": f"{1e6 * (cpu_scored - cpu) / n_rows:.1f}",
        "cpu_us_per_row_flagged": f"{1e6 * (cpu_flagged - cpu_scored) / n_rows:.1f}",
        "bytes_moved_per_row_scored": f"{(received_scored - received) / n_rows:.2f}",
        "bytes_moved_per_row_flagged": f"{(received_flagged - received_scored) / n_rows:.2f}",
        "peak_megabytes_per_worker": f"{max(peaks):.0f}",
        "outliers": n_outliers,
        "flagged": n_flagged,
        "false_at_most": most_false,
    }


def false_share(seed: int, n_outliers: int) -> tuple[float, float]:
    """Search a small batch; return the share of false alarms and that of found outliers."""
    rng = np.random.RandomState(seed)
    normal, batch = rng.normal(size=(2000, 4)), rng.normal(size=(100, 4))
    batch[:n_outliers] += 3
    detector = DaskQMS22Ensemble(max_samples=500, random_state=seed)
    detector.fit(da.from_array(normal, 600), unlabeled=da.from_array(batch, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no row is flagged in a batch without outliers
        flagged = detector.flag(LEVEL).compute()
    found = flagged[:n_outliers].sum() / max(1, n_outliers)
    return flagged[n_outliers:].sum() / max(1, flagged.sum()), found


def measure_level(n_batches: int) -> list[dict[str, Any]]:
    """Compute the false discovery rate over batches with and without outliers."""
    lines = []
    for n_outliers in (0, 10):
        with dask.config.set(scheduler="synchronous"):
            pairs = [false_share(seed, n_outliers) for seed in range(n_batches // 2)]
        shares, found = np.array(pairs).T
        lines.append(
            {
                "batches": len(shares),
                "outliers": n_outliers,
                "level": LEVEL,
                "false_discovery_rate": f"{shares.mean():.3f}",
                "standard_error": f"{shares.std(ddof=1) / np.sqrt(len(shares)):.3f}",
                "outliers_found": f"{found.mean():.3f}",
            }
        )
    return lines


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(["machine", key, text] for key, text in machine().items())
        columns = list(dict.fromkeys(key for line in lines for key in line))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(lines)


@click.command()
@click.option("--workers", default=4, show_default=True, help="Worker processes, of one thread.")
@click.option("--rows", multiple=True, type=int, default=(1_000_000, 3_000_000, 10_000_000))
@click.option("--batches", default=200, show_default=True, help="Small batches for the level.")
@click.option("--draw", default=7_000, show_default=True, help="Rows of each table to learn from.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("benchmarks/results"),
    show_default=True,
    help="Directory for cluster-search.csv.",
)
def main(workers: int, rows: tuple[int, ...], batches: int, draw: int, output: Path) -> None:
    """Score and flag batches on local workers."""
    output.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []

    def keep(line: dict[str, Any]) -> None:
        found.append(line)
        console.print(line)
        write_lines(output / "cluster-search.csv", found)

    for line in measure_level(batches) if batches else []:
        keep({"what": "level", **line})
    for n_rows in rows:
        line = measure_search(workers, n_rows, draw)
        keep({"what": "search", "workers": workers, "draw": draw, **line})


if __name__ == "__main__":
    main()
