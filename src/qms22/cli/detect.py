"""`qms22 detect` and `qms22 score`: from files to ranked, explained rows."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from qms22._runtime.stages import begin_stage, stages_shown
from qms22.cli.arguments import (
    check_folders,
    check_roles,
    input_files,
    parse_kinds,
    read_tables,
    read_truth,
)
from qms22.cli.job_options import Job, end_job, job_options
from qms22.cli.output import print_acceptance, print_result
from qms22.cli.shared import (
    FILE,
    SHARE,
    TABLE,
    check_goes_with,
    check_outputs,
    explained,
    id_option,
    say,
    seed_option,
)
from qms22.tables.databases.database_place import DatabasePlace


@click.command(short_help="Find the most suspicious rows of a table.")
@click.argument("tables", nargs=-1, required=True, type=TABLE, metavar="NORMAL... BATCH")
@click.option(
    "--marker", metavar="COLUMN", help="With one file: the column that marks the known-normal rows."
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
@job_options(has_verdict=True)
def detect(
    tables: tuple[str | DatabasePlace, ...],
    marker: str | None,
    normal_value: str | None,
    label: str | None,
    outlier: str | None,
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
    server. Columns are matched by name; case, blanks and underscores are ignored. If one file
    holds both kinds of rows, name the column that marks the known-normal ones (--marker).

    The answer comes first, on standard error: the verdict on the batch, how many rows are flagged,
    and how many of these may be normal. Then come the flagged rows with their reasons: tables on a
    terminal, CSV in a pipe. Last comes how the tables were read.

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
    _check_options(tables, marker, normal_value, options)
    _refuse(
        normal_to_check is not None and options["preset"] != "recommended",
        "--normal-to-check needs the preset recommended, which ranks known-normal rows; got "
        f"{options['preset']}",
    )
    check_goes_with("--outlier", outlier, "--label", label)
    outputs: dict[str, Path | DatabasePlace | None] = {
        **job.outputs(),
        "--normal-to-check": normal_to_check,
        "--report": report,
        "--save-model": save_model,
    }
    files = input_files([*tables, *options["marks"]])
    options["marks"] = options["marks"] or None
    check_roles(tables)
    check_outputs(files, outputs, options["history"])
    check_folders(tables, outputs)
    # The library would accept the batch at once.
    is_to_accept = options.pop("accept")
    began = time.perf_counter()
    with explained() as warnings, stages_shown(enabled=not quiet) as is_shown:
        from qms22 import detection
        from qms22.detection import past_batches
        from qms22.detection.results.result_files import write_tables

        normal, batch, titles = read_tables(tables, marker, normal_value)
        if len(tables) > 2 and not quiet:
            say(f"known-normal: {titles[0]}; searched: {titles[1]}")
        job.check_sizes(batch)
        truth = None
        if label is not None:
            truth, name = read_truth(batch, label, outlier)
            options["ignore"] = (*options["ignore"], name)
        found = detection.detect(normal, batch, **options, verbose=int(is_shown))
        if marker is not None:
            kept = {"marker": marker, "normal_value": normal_value}
            found = replace(found, settings={**found.settings, **kept})
        rules = job.check(found)
        is_met = all(rule.is_met for rule in rules)
        is_accepted = is_to_accept and past_batches.is_acceptable(found, is_policy_met=is_met)
        if is_accepted:
            found = past_batches.with_acceptance(found)
        if normal_to_check is not None:
            write_tables([found.normal_to_check()], normal_to_check)
        if report is not None:
            begin_stage(f"writing {report}")
            facts = {"files": ", ".join(titles), "preset": options["preset"]}
            facts["seconds"] = f"{time.perf_counter() - began:.1f}"
            title = f"Suspicious rows of {titles[-1]}"
            found.report(report, title=title, truth=truth, facts=facts)
        if save_model is not None:
            found.save(save_model)
        in_json = job.write(found, rules)
    print_result(found, in_json, warnings, outputs, quiet=quiet, truth=truth)
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
@job_options(has_verdict=False)
def score(
    model: Path, new: tuple[str | DatabasePlace, ...], quiet: bool, job: Job, **options: Any
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
    outputs = job.outputs()
    check_outputs([model, *input_files(new)], outputs)
    check_folders(new, outputs)
    with explained() as warnings, stages_shown(enabled=not quiet) as is_shown:
        from qms22 import detection
        from qms22.tables import open_table

        batch = open_table(new)
        job.check_sizes(batch)
        found = detection.score(model, batch, **options, verbose=int(is_shown))
        rules = job.check(found)
        in_json = job.write(found, rules)
    print_result(found, in_json, warnings, outputs, quiet=quiet)
    end_job(rules)


def _check_options(
    tables: tuple[str | DatabasePlace, ...],
    marker: str | None,
    normal_value: str | None,
    options: dict[str, Any],
) -> None:
    """Raise UsageError if options contradict each other, or need another one."""
    is_single, has_k = len(tables) == 1, options["k"] is not None
    _refuse(
        has_k and options["fdr"] is not None,
        "--top and --fdr both set how many rows to flag; give one of them",
    )
    _refuse(
        is_single and marker is None,
        "give a second file with the rows to search, or use --marker to name the column that marks "
        f"the known-normal rows of {tables[0]}",
    )
    _refuse(
        is_single and options["max_samples"] is not None,
        "--max-samples needs two files; write the known-normal rows into a file of their own",
    )
    _refuse(
        not is_single and (marker is not None or normal_value is not None),
        "--marker and --normal-value are for one file; leave them out, or give one file",
    )
    check_goes_with("--accept", options["accept"], "--history", options["history"])
    _refuse(
        options["accept"] and has_k,
        "--accept cannot be used with --top, which flags rows in any batch; leave one out",
    )
    _refuse(
        options["accept"] and options["preset"] == "paper",
        "--accept needs a false discovery rate, which the preset paper has not; leave one out",
    )


def _refuse(is_wrong: bool, words: str) -> None:
    if is_wrong:
        raise click.UsageError(words)
