"""Measure what `qms22 detect` finds in tables of made-up businesses, and print the shares.

Twelve tables with ids, dates, money, codes and texts, two of which (scans and visits) were made
after the checks; a batch is of the normal period or of the month after it, and has about 14 kinds
of errors with two or three rows each. Every error belongs to one family: of time, of a kind of row,
of text, of rows together, of a rule, or of a plain value. A row counts as found if it is among the
first 2n of the ranking, for n planted rows. Clean batches are of the first, second and third month
after.

    PYTHONPATH=benchmarks python -m businesses --seeds 2 --clean 5 --output build
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import click
import pandas as pd
from reporting import console, write_csv
from rich.console import Console
from rich.progress import track
from rich.table import Table

from businesses.measure import BUSINESSES, BatchResult, ErrorResult, measure_clean, measure_planted
from businesses.plant import FAMILIES


@click.command()
@click.option(
    "-t",
    "--tables",
    multiple=True,
    type=click.Choice(list(BUSINESSES)),
    default=list(BUSINESSES),
    help="A table; may be repeated.  [default: all]",
)
@click.option("--seeds", default=1, show_default=True, help="Number of seeds.")
@click.option("--clean", default=0, show_default=True, help="Clean batches of each table.")
@click.option("--list-missed", is_flag=True, help="Print the rows that were not found.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for businesses.csv and businesses_errors.csv.",
)
def main(
    tables: Sequence[str], seeds: int, clean: int, list_missed: bool, output: Path | None
) -> None:
    """Measure, print and write."""
    planted: list[BatchResult] = []
    errors: list[ErrorResult] = []
    jobs = [(name, seed, period) for name in tables for seed in range(seeds) for period in (0, 1)]
    progress = Console(stderr=True)
    for name, seed, period in track(jobs, "planted", console=progress):
        batch, own = measure_planted(BUSINESSES[name], seed, period)
        planted.append(batch)
        errors += own
    if planted:
        _show_recall(pd.DataFrame(planted), pd.DataFrame(errors))
        _show_kinds(pd.DataFrame(errors))
    if list_missed:
        _list_missed(errors)
    jobs = [(name, seed, 1 + seed % 3) for name in tables for seed in range(clean)]
    without = [
        measure_clean(BUSINESSES[name], seed, period)
        for name, seed, period in track(jobs, "clean", console=progress)
    ]
    if without:
        _show_clean(pd.DataFrame(without))
    if output:
        for file, kind, results in (
            ("businesses.csv", BatchResult, [*planted, *without]),
            ("businesses_errors.csv", ErrorResult, errors),
        ):
            write_csv(output / file, _headings(kind), (_rounded(result) for result in results))


def _show_recall(batches: pd.DataFrame, errors: pd.DataFrame) -> None:
    title = "Recall among the first 2n rows, by family; then of the whole batch"
    headings = ("recall", "flagged", "FDP", "avg. prec.", "s")
    table = Table("table", "period", *FAMILIES, *headings, title=title)
    columns = ["recall_top", "recall_flagged", "fdp", "average_precision", "seconds"]
    parts: list[tuple[str, int, pd.DataFrame, pd.DataFrame]] = []
    for (name, period), part in batches.groupby(["table", "period"], sort=False):
        is_own = (errors["table"] == name) & (errors["period"] == period)
        parts.append((name, period, part, errors[is_own]))
    for period, part in batches.groupby("period"):
        parts.append(("mean", period, part, errors[errors["period"] == period]))
    for name, period, part, own in parts:
        label = "later" if period else "same"
        recall = own.groupby("family")["is_top"].mean()
        shares = [f"{recall[family]:.2f}" if family in recall else "" for family in FAMILIES]
        means = part[columns].mean()
        table.add_row(
            name, label, *shares, *(f"{x:.2f}" for x in means[:-1]), f"{means.iloc[-1]:.0f}"
        )
    console.print(table)


def _show_kinds(errors: pd.DataFrame) -> None:
    table = Table("table", "family", "kind", "rows", "first 2n", "flagged", title="Recall by kind")
    for (name, family, kind), part in errors.groupby(["table", "family", "kind"], sort=False):
        shares = (f"{part[column].mean():.2f}" for column in ("is_top", "is_flagged"))
        table.add_row(name, family, kind, str(len(part)), *shares)
    console.print(table)


def _show_clean(batches: pd.DataFrame) -> None:
    headings = ("batches", "fine", "anomalies", "drift", "batches with flags", "flags")
    table = Table("table", *headings, title="Clean batches of later months")
    for name, part in [*batches.groupby("table", sort=False), ("all", batches)]:
        decisions = [(part["decision"] == x).sum() for x in ("fine", "anomalies", "drift")]
        flags = part["n_flagged"]
        counts = (len(part), *decisions, (flags > 0).sum())
        table.add_row(
            name,
            *map(str, counts),
            " ".join(map(str, flags)) if name != "all" else str(flags.sum()),
        )
    console.print(table)


def _list_missed(errors: list[ErrorResult]) -> None:
    for error in errors:
        if not error.is_top:
            where = f"{error.table}, seed {error.seed}, period {error.period}, row {error.row}"
            click.echo(f"{where}: {error.family}, {error.kind}")
            click.echo(f"    {error.change}")
            click.echo(f"    rank {error.rank}: {error.reasons or 'no reasons'}")


def _headings(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _rounded(result: BatchResult | ErrorResult) -> list[object]:
    return [f"{x:.4g}" if isinstance(x, float) else x for x in astuple(result)]


if __name__ == "__main__":
    main()
