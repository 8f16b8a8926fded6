"""`qms22 verify`: repeat a recorded search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qms22._runtime.stages import stages_shown
from qms22.cli.arguments import input_files, read_tables
from qms22.cli.shared import FILE, TABLE, explained, quiet_option, say
from qms22.tables.databases.database_place import DatabasePlace

_DIFFERENT = 1


@click.command(short_help="Repeat a search and compare its scores.")
@click.argument("result", type=FILE)
@click.argument("tables", nargs=-1, required=True, type=TABLE, metavar="NORMAL... BATCH")
@click.option("--marks", type=TABLE, multiple=True, help="The marks that the search was given.")
@click.option(
    "--history",
    type=FILE,
    help="The history of the search, if accepted batches were in it; it is not changed.",
)
@click.option("--n-jobs", default=-1, show_default=True, help="Number of threads; -1 is all cores.")
@quiet_option
def verify(
    result: Path,
    tables: tuple[str | DatabasePlace, ...],
    marks: tuple[str | DatabasePlace, ...],
    quiet: bool,
    **options: Any,
) -> None:
    """Repeat the search of RESULT, a file of --json, and compare the scores.

    Give the same tables as in the search; for a result of 'qms22 score', the model and the new
    rows. The settings are those in RESULT. The exit code is 0 if the result is the same to the bit,
    on any CPU. If it is 1, a sentence says what differs, such as an input, a version or the scores.

    \b
    Example:
        qms22 detect last-month.csv today.csv --json today.json
        qms22 verify today.json last-month.csv today.csv
    """
    input_files([*tables, *marks])
    with explained(), stages_shown(enabled=not quiet) as is_shown:
        from qms22.detection.verifying import read_result, repeat

        recorded = read_result(result)
        roles = [each["role"] for each in recorded["provenance"]["inputs"]]
        settings = recorded["settings"]
        marker, value = settings.get("marker"), settings.get("normal_value")
        if len(tables) == 1 and marker is None:
            raise click.UsageError("give the tables of the search: NORMAL and BATCH")
        given: Any = tables[0], tables[1:]
        if "model" not in roles:
            given = read_tables(tables, marker, value)[:2]
        options |= {"marks": marks, "verbose": int(is_shown)}
        is_same, sentence = repeat(recorded, *given, **options)
    say(f"{'equal' if is_same else 'different'}: {sentence}")
    if not is_same:
        raise click.exceptions.Exit(_DIFFERENT)
