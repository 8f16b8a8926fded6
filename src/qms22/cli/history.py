"""`qms22 history`: what was found in earlier batches, and which of them are known-normal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qms22.cli.shared import FILE, explained, say
from qms22.cli.terminal import NARROW, RIGHT, text_table
from qms22.detection.results.csv_text import csv_lines

if TYPE_CHECKING:
    from qms22.detection import HistoryEntry

# The columns in a pipe, and what each has of an entry.
_COLUMNS = {
    "batch": "number",
    "time": "time",
    "table": "batch",
    "rows": "n_rows",
    "verdict": "decision",
    "flagged": "n_flagged",
    "marked": "n_marked",
    "fewest_outliers": "fewest_outliers",
    "moved": "moved",
    "accepted": "accepted",
    "incident": "incident",
    "sentence": "sentence",
    "p_value": "p_value",
    "known_normal": "normal",
    "known_normal_rows": "n_normal",
    "version": "version",
    "over_time": "over_time",
    "settings": "settings",
}


def _changes(option: str, metavar: str, words: str) -> Callable[[Callable[..., None]], Any]:
    """Return an option that changes entries or exceptions, and may be repeated."""
    kind = int if metavar == "NUMBER" else str
    words += " May be repeated."
    return click.option(option, multiple=True, type=kind, metavar=metavar, help=words)


@click.command(short_help="List what was found in earlier batches.")
@click.argument("file", type=FILE)
@_changes(
    "--accept",
    "NUMBER",
    "Accept a batch as known-normal: later runs of 'qms22 detect --history' learn from its rows, "
    "except those marked as anomalies.",
)
@_changes("--take-back", "NUMBER", "Withdraw the acceptance of a batch, or that it is an incident.")
@_changes(
    "--incident",
    "NUMBER",
    "Tag a batch as bad, with --because: its rows are dropped, it is never known-normal, and it "
    "counts as a true alarm.",
)
@_changes(
    "--except",
    "COLUMN",
    "Let a column move, with --because and --until: its movement is reported, but is no alarm, and "
    "it is not learned from.",
)
@click.option("--because", metavar="TEXT", help="With --incident and --except: the reason.")
@click.option("--until", metavar="DATE", help="With --except: the last day, such as 2026-12-31.")
@_changes("--end-exception", "COLUMN", "End an exception.")
def history(file: Path, because: str | None, until: str | None, **changes: Any) -> None:
    """List what 'qms22 detect --history FILE' has found in each batch, the newest last.

    On a terminal this is a table; in a pipe it is CSV, with more columns. The number of flagged
    rows is left out for batches searched with --top. FILE contains the rows of the accepted
    batches and of the last ten: treat it like the tables themselves.

    \b
    Example:
        qms22 history orders.sqlite
        qms22 history orders.sqlite --accept 3
        qms22 history orders.sqlite --incident 7 --because "half of the shops are missing"
        qms22 history orders.sqlite --except price --because "new price list" --until 2026-12-31
    """
    tagged, excepted = changes["incident"], changes["except"]
    _check_reasons(tagged, excepted, because, until)
    with explained():
        from qms22.detection import BatchHistory

        batches = BatchHistory(file, must_exist=True)
        for number in tagged:
            entry = batches.tag_incident(number, because or "")
            say(f"batch {number} ({entry.batch}) is an incident: {entry.incident}")
        for column in excepted:
            exception = batches.add_exception(column, because or "", until or "")
            say(f"column {exception.column!r} {exception.note}")
        for column in changes["end_exception"]:
            batches.end_exception(column)
            say(f"column {column!r} may no longer move")
        for number in changes["accept"]:
            entry = batches.accept(number)
            say(f"batch {number} ({entry.batch}) is known-normal from now on")
        for number in changes["take_back"]:
            entry = batches.take_back(number)
            say(f"batch {number} ({entry.batch}) is neither known-normal nor an incident")
        entries, exceptions = batches.entries(), batches.exceptions()
    if sys.stdout.isatty():
        _print_on_terminal(entries, file)
    else:
        _print_csv(entries)
    for exception in exceptions:
        say(f"exception: column {exception.column!r} {exception.note}")


def _check_reasons(
    tagged: Sequence[int], excepted: Sequence[str], because: str | None, until: str | None
) -> None:
    """Raise UsageError unless everything that needs a reason or a day has one."""
    for option, given in (("--incident", tagged), ("--except", excepted)):
        if given and not because:
            raise click.UsageError(f'{option} needs a reason: --because "what has happened"')
    if excepted and not until:
        raise click.UsageError("--except needs its last day, such as --until 2026-12-31")
    if because and not (tagged or excepted):
        raise click.UsageError("--because needs --incident or --except")
    if until and not excepted:
        raise click.UsageError("--until needs --except")


def _print_csv(entries: tuple[HistoryEntry, ...]) -> None:
    import pandas as pd

    rows = [
        {name: getattr(entry, field) for name, field in _COLUMNS.items()}
        | {
            "moved": _moved(entry),
            "over_time": json.dumps(entry.over_time),
            "settings": json.dumps(
                {name: value for name, value in entry.settings.items() if name != "profile"}
            ),
        }
        for entry in entries
    ]
    sys.stdout.writelines(csv_lines(pd.DataFrame(rows)))


def _print_on_terminal(entries: tuple[HistoryEntry, ...], file: Path) -> None:
    from rich.console import Console

    console = Console()
    count = "1 batch" if len(entries) == 1 else f"{len(entries):,} batches"
    start = len("2026-") if console.width < NARROW else 0
    times = [each.time[start : len("2026-03-05 14:02")] for each in entries]
    # Without a false discovery rate the user has said how many rows to flag.
    flagged = [f"{each.n_flagged:,}" if each.settings.get("fdr") else "" for each in entries]
    table = text_table(
        f"{count} in {file}, times in UTC",
        ("#", [str(each.number) for each in entries], RIGHT),
        ("time", times, {"no_wrap": True}),
        ("table", [Path(each.batch).name for each in entries], {"overflow": "fold"}),
        ("rows", [f"{each.n_rows:,}" for each in entries], RIGHT),
        ("flagged", flagged, RIGHT),
        ("verdict", [_verdict(each) for each in entries], {"overflow": "fold"}),
    )
    console.print(table)


def _verdict(entry: HistoryEntry) -> str:
    """Return the verdict on a batch in a few words."""
    words: str = entry.decision
    if entry.n_marked:
        marked = "row marked as anomaly" if entry.n_marked == 1 else "rows marked as anomalies"
        words += f" ({entry.n_marked:,} {marked})"
    words += ", accepted" if entry.accepted else ""
    words += f", incident ({entry.incident})" if entry.incident else ""
    return words + (f": {_moved(entry)}" if entry.moved else "")


def _moved(entry: HistoryEntry) -> str:
    return "; ".join(f"{name} ({change})" for name, change in entry.moved)
