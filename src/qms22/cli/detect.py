"""`qms22 detect` and `qms22 score`: from files to ranked, explained rows."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qms22._runtime.stages import begin_stage, stages_shown
from qms22.cli.arguments import (
    check_folders,
    check_roles,
    input_files,
    match_columns,
    parse_kinds,
    read_tables,
)
from qms22.cli.job_options import Job, end_job, job_options
from qms22.cli.label_options import print_evaluation, read_truth
from qms22.cli.output import (
    print_acceptance,
    print_answer,
    print_ending,
    print_flagged,
    print_suspicious_normal,
    print_written,
)
from qms22.cli.shared import (
    FILE,
    SHARE,
    TABLE,
    check_goes_with,
    check_overwriting,
    check_table_outputs,
    explained,
    id_option,
    memory_limit_option,
    only_flagged_option,
    output_option,
    quiet_option,
    say,
    seed_option,
)
from qms22.detection.results.result_files import write_tables
from qms22.detection.results.result_workbook import check_sheet_size
from qms22.tables.databases.database_place import DatabasePlace

if TYPE_CHECKING:
    from qms22.detection import Detection


@click.command(short_help="Find the most suspicious rows of a table.")
@click.argument("tables", nargs=-1, required=True, type=TABLE, metavar="NORMAL... BATCH")
@click.option(
    "--marker",
    metavar="COLUMN",
    help="With one file: the column that marks the known-normal rows.",
)
@click.option(
    "--normal-value", help="With --marker: the value of known-normal rows, if it is not obvious."
)
@click.option(
    "-k",
    "--top",
    "k",
    type=click.IntRange(min=1),
    help="Flag this many rows instead of using --fdr, or all if there are fewer. The preset paper, "
    "which has no p-values, flags 50 by default.",
)
@click.option(
    "--fdr",
    type=SHARE,
    metavar="SHARE",
    help="The false discovery rate, such as 0.1 or 10%: flag as many rows as possible while at "
    "most this share of them is expected to be normal. The default is 0.1.",
)
@id_option
@click.option(
    "--by",
    metavar="COLUMN",
    help="The column that says which rows belong together, such as a customer or a meter.",
)
@click.option("--time", metavar="COLUMN", help="The date by which rows are in order.")
@click.option(
    "--ignore", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated."
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="The column with true labels, to evaluate the result; it is not learned from.",
)
@click.option("--outlier", help="With --label: the value of outliers, if it is not obvious.")
@click.option(
    "--marks",
    type=TABLE,
    multiple=True,
    help="Learn from rows that someone has checked: a table with a column 'mark' (anomaly, normal, "
    "unsure or empty) and the column of --id, or 'row' with row numbers from 0. A file of --output "
    "with that column added is such a table, and so is one of --normal-to-check. For rows of "
    "earlier batches it needs the columns of the batch. May be repeated.",
)
@click.option(
    "--missing",
    type=click.Choice(["impute", "drop", "error"]),
    default="impute",
    show_default=True,
    help="Missing values: impute them, and learn where they are usual; drop the rows; or stop with "
    "an error.",
)
@click.option(
    "--as",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    callback=parse_kinds,
    help="Read a column as number, category, date, boolean or text, or ignore it; may be repeated.",
)
@click.option(
    "--preset",
    type=click.Choice(["recommended", "paper"]),
    default="recommended",
    show_default=True,
    help="QMS22Ensemble, or QMS22 with the settings of the paper.",
)
@click.option(
    "--max-samples",
    type=click.IntRange(min=1),
    metavar="N",
    help="Learn from at most N rows of each file, drawn at random, and read the files part by "
    "part, so that they may be larger than memory. By default the preset recommended learns from "
    "6,000 rows and paper from all, or from 100,000 if a file is larger than memory.",
)
@output_option
@only_flagged_option
@click.option(
    "--normal-to-check",
    type=FILE,
    help="Write the most suspicious known-normal rows (5 % of them, at most 100) to a .csv, .xlsx "
    "or .parquet file. Check them, write 'anomaly' into the column 'mark' of those that are not "
    "normal, and pass the file to --marks: these rows then no longer count as known-normal.",
)
@click.option("--report", type=FILE, help="Write a page to explore the result: an .html file.")
@click.option(
    "--save-model",
    type=FILE,
    help="Save the model for 'qms22 score': a .skops file. It contains up to 2,048 known-normal "
    "rows.",
)
@click.option(
    "--history",
    type=FILE,
    help="Record the result in this file, which is created if needed, and learn from the batches "
    "in it that were accepted; 'qms22 history' lists it. The file contains rows of the batches.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="With --history: accept the batch as known-normal for later runs, if its verdict is fine "
    "and no row is flagged.",
)
@seed_option
@click.option(
    "--n-jobs", default=-1, show_default=True, help="Number of threads; -1 means all cores."
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "auto"]),
    default="cpu",
    show_default=True,
    help="Where to learn and score; auto means a GPU if there is one.",
)
@memory_limit_option
@quiet_option
@job_options(has_verdict=True)
def detect(
    tables: tuple[str | DatabasePlace, ...],
    marker: str | None,
    normal_value: str | None,
    label: str | None,
    outlier: str | None,
    output: Path | DatabasePlace | None,
    only_flagged: bool,
    normal_to_check: Path | None,
    report: Path | None,
    save_model: Path | None,
    quiet: bool,
    job: Job,
    **options: Any,
) -> None:
    """Find the most suspicious rows of BATCH, given the known-normal rows of NORMAL.

    Both are tables: CSV with any delimiter, Excel, Parquet, Arrow, JSON, ARFF or KEEL, compressed
    or not. Of several files the last is BATCH, all others are NORMAL. Each may also be a
    directory, a quoted pattern such as 'data/2024-??.csv', a sheet such as 'book.xlsx#March', all
    sheets ('book.xlsx#*'), '-' for standard input, or a table or a SELECT of a database:
    'shop.db#orders' for a file of SQLite or DuckDB, 'postgresql://user@host/shop#orders' for a
    server. Columns are matched by name; case, blanks and underscores are ignored. Columns of only
    one table, titles and footers are left out, with a note on standard error. If one file holds
    both kinds of rows, name the column that marks the known-normal ones (--marker). Numbers,
    booleans, categories and dates are used; of identifiers and free text it is compared how they
    are written. Numbers are compared with those of the same customer, meter or article where such
    a column is found, or named (--by).

    The answer comes first, on standard error: whether the batch is fine, contains anomalies or has
    drifted as a whole; how many rows are flagged, and how many of these may be normal; which
    columns moved, and what to do. Then come the flagged rows with their reasons: tables on a
    terminal, CSV in a pipe. If fewer than ten rows are flagged, a terminal also shows the next
    ones, as not certain. Last come known-normal rows that look like the anomalies, if there are
    any, and how the tables were read.

    The exit code is 0; 1 if a rule of --fail-on, --max-flagged or --max-share is broken; 2 if
    input or options are wrong; 130 if the command was interrupted.

    \b
    Example:
        qms22 detect last-month.csv today.csv --id order --report today.html
        qms22 detect january.csv february.csv march.csv --fdr 0.2
        qms22 detect last-month.csv today.csv --top 50
        qms22 detect readings.csv today.csv --by meter --time read_at
        qms22 detect last-month.csv today.csv --id order --marks looked-at.csv
        qms22 detect last-month.csv today.csv --normal-to-check to-check.csv
        qms22 detect last-month.csv today.csv --history orders.sqlite --accept
        qms22 detect last-year.parquet this-year.parquet --max-samples 50000 -o scores.parquet
        qms22 detect "shop.db#orders" "shop.db#SELECT * FROM new WHERE day = '2024-03-05'"
    """
    _check_files(tables, marker, normal_value, options)
    if normal_to_check is not None and options["preset"] != "recommended":
        raise click.UsageError(
            "--normal-to-check needs the preset recommended, which ranks known-normal rows; got "
            f"{options['preset']}"
        )
    check_goes_with("--outlier", outlier, "--label", label)
    check_goes_with("--only-flagged", only_flagged, "--output", output)
    outputs: dict[str, Path | DatabasePlace | None] = {
        "--output": output,
        "--normal-to-check": normal_to_check,
        "--report": report,
        "--save-model": save_model,
        **job.outputs(),
    }
    files = input_files([*tables, *options["marks"]])
    options["marks"] = options["marks"] or None
    check_roles(tables)
    check_table_outputs(files, outputs)
    check_folders(tables, outputs)
    _check_history(options, files, outputs)
    # The library would accept the batch at once.
    is_to_accept = options.pop("accept")
    began = time.perf_counter()
    with explained() as warnings, stages_shown(enabled=not quiet) as is_shown:
        from qms22 import detection
        from qms22.detection import past_batches

        normal, batch, titles = read_tables(tables, marker, normal_value)
        if len(tables) > 2 and not quiet:
            say(f"known-normal: {titles[0]}; searched: {titles[1]}")
        for path in (None if only_flagged else output, job.good):
            check_sheet_size(path, batch)
        label = match_columns(batch, label, options)
        truth = read_truth(batch, label, outlier)
        if label is not None:
            options["ignore"] = (*options["ignore"], label)
        found = detection.detect(normal, batch, **options, verbose=int(is_shown))
        if marker is not None:
            kept = {"marker": marker, "normal_value": normal_value}
            found = replace(found, settings={**found.settings, **kept})
        rules = job.check(found)
        is_met = all(rule.is_met for rule in rules)
        is_accepted = is_to_accept and past_batches.is_acceptable(found, is_policy_met=is_met)
        if is_accepted:
            found = past_batches.with_acceptance(found)
        _write_output(found, output, only_flagged, normal_to_check)
        if report is not None:
            begin_stage(f"writing {report}")
            facts = {"files": ", ".join(titles), "preset": options["preset"]}
            facts["seconds"] = f"{time.perf_counter() - began:.1f}"
            title = f"Suspicious rows of {titles[-1]}"
            found.report(report, title=title, truth=truth, facts=facts)
        if save_model is not None:
            found.save(save_model)
        in_json = job.write(found, rules)
    print_answer(found, quiet=quiet)
    print_flagged(found, in_json)
    if truth is not None:
        print_evaluation(found, truth)
    if not quiet:
        print_suspicious_normal(found)
    print_ending(found, warnings, quiet=quiet)
    print_written(outputs.values(), quiet=quiet)
    sys.stdout.flush()
    # Last of all: a command that fails accepts nothing.
    if is_accepted:
        with explained():
            detection.BatchHistory(options["history"]).accept(found.history[-1].number)
    print_acceptance(found)
    end_job(rules)


@click.command(short_help="Score new rows with a saved model.")
@click.argument("model", type=FILE)
@click.argument("new", nargs=-1, required=True, type=TABLE)
@click.option(
    "-k",
    "--top",
    "k",
    type=click.IntRange(min=1),
    help="Flag this many rows; by default those beyond the threshold of the model.",
)
@id_option
@output_option
@only_flagged_option
@memory_limit_option
@quiet_option
@job_options(has_verdict=False)
def score(
    model: Path,
    new: tuple[str | DatabasePlace, ...],
    output: Path | DatabasePlace | None,
    only_flagged: bool,
    quiet: bool,
    job: Job,
    **options: Any,
) -> None:
    """Score the rows of NEW with a model that 'qms22 detect --save-model' has saved.

    Several files are parts of one table, in any format that 'qms22 detect' reads. Without --top,
    rows beyond the threshold of the model are flagged. The model has learned from another batch:
    it may miss kinds of anomalies that were not in it.
    Loading a model never runs code from its file. Exit codes are those of 'qms22 detect'.

    \b
    Example:
        qms22 score model.skops tomorrow.csv --top 20
    """
    check_goes_with("--only-flagged", only_flagged, "--output", output)
    outputs = {"--output": output, **job.outputs()}
    check_table_outputs([model, *input_files(new)], outputs)
    check_folders(new, outputs)
    with explained() as warnings, stages_shown(enabled=not quiet) as is_shown:
        from qms22 import detection
        from qms22.tables import open_table

        batch = open_table(new)
        for path in (None if only_flagged else output, job.good):
            check_sheet_size(path, batch)
        found = detection.score(model, batch, **options, verbose=int(is_shown))
        _write_output(found, output, only_flagged)
        rules = job.check(found)
        in_json = job.write(found, rules)
    print_answer(found, quiet=quiet)
    print_flagged(found, in_json)
    print_ending(found, warnings, quiet=True)
    print_written(outputs.values(), quiet=quiet)
    end_job(rules)


def _check_files(
    tables: tuple[str | DatabasePlace, ...],
    marker: str | None,
    normal_value: str | None,
    options: dict[str, Any],
) -> None:
    if options["k"] is not None and options["fdr"] is not None:
        raise click.UsageError("--top and --fdr both set how many rows to flag; give one of them")
    is_single = len(tables) == 1
    if is_single and marker is None:
        raise click.UsageError(
            "give a second file with the rows to search, or use --marker to name the column that "
            f"marks the known-normal rows of {tables[0]}"
        )
    if is_single and options["max_samples"] is not None:
        raise click.UsageError(
            "--max-samples needs two files; write the known-normal rows into a file of their own"
        )
    if not is_single and (marker is not None or normal_value is not None):
        raise click.UsageError(
            "--marker and --normal-value are for one file; leave them out, or give one file"
        )


def _check_history(
    options: dict[str, Any],
    files: Sequence[Path | DatabasePlace | None],
    outputs: dict[str, Path | DatabasePlace | None],
) -> None:
    """Check --history and --accept."""
    check_goes_with("--accept", options["accept"], "--history", options["history"])
    check_overwriting(files, {**outputs, "--history": options["history"]})
    if options["accept"] and options["k"] is not None:
        raise click.UsageError(
            "--accept cannot be used with --top, which flags rows in any batch; leave one out"
        )
    if options["accept"] and options["preset"] == "paper":
        raise click.UsageError(
            "--accept needs a false discovery rate, which the preset paper has not; leave one out"
        )


def _write_output(
    found: Detection,
    path: Path | DatabasePlace | None,
    only_flagged: bool,
    normal_to_check: Path | None = None,
) -> None:
    if path is not None:
        begin_stage(f"writing {path}")
        found.write(path, only_flagged=only_flagged)
    if normal_to_check is not None:
        write_tables([found.normal_to_check()], normal_to_check)
