"""`qms22 demo`: the everyday job on two made-up tables, and how well it was done."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qms22._runtime.stages import stages_shown
from qms22.cli.output import print_answer, print_ending
from qms22.cli.shared import explained, say, seed_option
from qms22.cli.terminal import RIGHT, print_found, text_table

if TYPE_CHECKING:
    from qms22.cli.expenses import Expenses
    from qms22.detection import Detection


@click.command(short_help="Try it on two made-up tables.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("qms22-demo"),
    show_default=True,
    help="Directory for the tables and the page; it is created if needed.",
)
@seed_option
def demo(output: Path, seed: int) -> None:
    """Find the anomalies among new expense claims, given claims that were checked.

    It writes two tables: the checked claims of a quarter, and those of the next week, with hidden
    anomalies of seven kinds. Then it searches them as 'qms22 detect' does, shows the result, writes
    the page, and counts how many of the anomalies were found.

    \b
    Example:
        qms22 demo --output try --seed 1
    """
    tables = output / "expenses-checked.csv", output / "expenses-new.csv"
    page = output / "expenses.html"
    with explained() as warnings, stages_shown(enabled=True):
        # Imported here to keep `qms22 --help` fast.
        from qms22 import detect
        from qms22.cli.expenses import make_expenses

        expenses = make_expenses(seed)
        _write_tables(expenses, tables)
        _print_story(expenses, tables, page)
        found = detect(*tables, id="claim")
        found.report(page, title=f"Suspicious rows of {tables[1].name}")
    print_answer(found)
    click.echo()
    print_found(found)
    click.echo()
    print_ending(found, warnings)
    _print_hits(expenses, found)
    _show_page(page)


def _write_tables(expenses: Expenses, paths: tuple[Path, Path]) -> None:
    from qms22._runtime.files import atomic_path

    folder = paths[0].parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"cannot create the directory {folder}: {error.strerror}; name another with --output"
        ) from error
    for path, table in zip(paths, (expenses.checked, expenses.new), strict=True):
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)


def _print_story(expenses: Expenses, paths: tuple[Path, Path], page: Path) -> None:
    n_hidden = sum(map(len, expenses.hidden.values()))
    say(
        f"A company has checked the {len(expenses.checked):,} expense claims of last quarter. The "
        f"{len(expenses.new):,} new ones have not been checked; {n_hidden} anomalies are hidden in "
        "them."
    )
    files = " ".join(map(str, paths))
    click.echo(f"\n$ qms22 detect {files} --id claim --report {page}\n", err=True)


def _print_hits(expenses: Expenses, found: Detection) -> None:
    """Print how many of the hidden anomalies are flagged, and what they are."""
    from rich.console import Console

    flagged = set(found.table(only_flagged=True)["claim"])
    n_hidden = [len(claims) for claims in expenses.hidden.values()]
    n_found = [len(flagged.intersection(claims)) for claims in expenses.hidden.values()]
    table = text_table(
        "What was hidden, and what was found",
        ("hidden", [str(each) for each in n_hidden], RIGHT),
        ("found", [str(each) for each in n_found], RIGHT),
        ("anomaly", [*expenses.hidden], {}),
    )
    console = Console()
    console.print()
    console.print(table)
    console.print(
        f"\n{sum(n_found)} of the {sum(n_hidden)} hidden anomalies are among the {len(flagged):,} "
        f"flagged rows of {found.n_scored:,}.",
        highlight=False,
    )


def _show_page(page: Path) -> None:
    """Name the page; open it if there is someone to see it."""
    say(f"written: {page}, a page to explore the rows; open it in a browser")
    say("With your tables: qms22 detect NORMAL.csv NEW.csv --report page.html")
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_screen and sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())
