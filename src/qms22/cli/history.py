"""`qms22 history`: what was found in earlier batches, and which of them are known-normal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qms22.cli.shared import FILE, explained, say
from qms22.cli.terminal import NARROW, plain_table, safe
from qms22.detection.csv_text import csv_lines

if TYPE_CHECKING:
    from qms22.detection import HistoryEntry


@click.command(short_help="List what was found in earlier batches.")
@click.argument("file", type=FILE)
@click.option(
    "--accept",
    "accepted",
    type=int,
    multiple=True,
    metavar="NUMBER",
    help="Accept a batch as known-normal: later runs of 'qms22 detect --history' learn from its "
    "rows, except those marked as anomalies. May be repeated.",
)
@click.option(
    "--take-back",
    "taken_back",
    type=int,
    multiple=True,
    metavar="NUMBER",
    help="Withdraw the acceptance of a batch. May be repeated.",
)
def history(file: Path, accepted: tuple[int, ...], taken_back: tuple[int, ...]) -> None:
    """List what 'qms22 detect --history FILE' has found in each batch, the newest last.

    On a terminal this is a table; in a pipe it is CSV, with more columns. The number of flagged
    rows is left out for batches searched with --top. FILE contains the rows of the accepted
    batches and of the last ten: treat it like the tables themselves.

    \b
    Example:
        qms22 history orders.sqlite
        qms22 history orders.sqlite --accept 3
    """
    with explained():
        from qms22.detection import BatchHistory

        batches = BatchHistory(file, must_exist=True)
        for number in accepted:
            entry = batches.accept(number)
            say(f"batch {number} ({entry.batch}) is known-normal from now on")
        for number in taken_back:
            entry = batches.take_back(number)
            say(f"batch {number} ({entry.batch}) is no longer known-normal")
        entries = batches.entries()
    _print_entries(entries, file)


def _print_entries(entries: tuple[HistoryEntry, ...], file: Path) -> None:
    """Print a table on a terminal, CSV in a pipe."""
    if sys.stdout.isatty():
        _print_on_terminal(entries, file)
        return
    import pandas as pd

    rows = [
        {
            "batch": entry.number,
            "time": entry.time,
            "table": entry.batch,
            "rows": entry.n_rows,
            "verdict": entry.decision,
            "flagged": entry.n_flagged,
            "marked": entry.n_marked,
            "fewest_outliers": entry.fewest_outliers,
            "moved": _moved(entry),
            "accepted": entry.accepted,
            "sentence": entry.sentence,
            "p_value": entry.p_value,
            "known_normal": entry.normal,
            "known_normal_rows": entry.n_normal,
            "version": entry.version,
            "settings": json.dumps(entry.settings),
        }
        for entry in entries
    ]
    sys.stdout.writelines(csv_lines(pd.DataFrame(rows)))


def _print_on_terminal(entries: tuple[HistoryEntry, ...], file: Path) -> None:
    from rich.console import Console

    console = Console()
    count = "1 batch" if len(entries) == 1 else f"{len(entries):,} batches"
    shown = plain_table(f"{count} in {file}, times in UTC")
    for heading in ("#", "time", "table", "rows", "flagged", "verdict"):
        is_number = heading in ("#", "rows", "flagged")
        is_long = heading in ("table", "verdict")
        shown.add_column(
            heading,
            justify="right" if is_number else "left",
            no_wrap=not is_long,
            overflow="fold",
        )
    is_narrow = console.width < NARROW
    for entry in entries:
        cells = [
            str(entry.number),
            entry.time[len("2026-") if is_narrow else 0 : len("2026-03-05 14:02")],
            Path(entry.batch).name,
            f"{entry.n_rows:,}",
            # Without a false discovery rate the user has said how many rows to flag.
            f"{entry.n_flagged:,}" if entry.settings.get("fdr") else "",
            _verdict(entry),
        ]
        shown.add_row(*map(safe, cells))
    console.print(shown)


def _verdict(entry: HistoryEntry) -> str:
    """Return the verdict on a batch in a few words."""
    words: str = entry.decision
    if entry.n_marked:
        marked = "row marked as anomaly" if entry.n_marked == 1 else "rows marked as anomalies"
        words += f" ({entry.n_marked:,} {marked})"
    words += ", accepted" if entry.accepted else ""
    return words + (f": {_moved(entry)}" if entry.moved else "")


def _moved(entry: HistoryEntry) -> str:
    return "; ".join(f"{name} ({change})" for name, change in entry.moved)
