"""`qms22 detect` and `qms22 score`: the everyday job, from files to a ranked, explained answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qms22.cli._shared import (
    OUTPUT_SUFFIXES,
    check_output,
    explained,
    print_table,
    require,
    write_table,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from qms22.detection import Detection

FILE = click.Path(path_type=Path)

# Positions in the table of results: rank, row or id, score, flagged, reasons, then the batch's own.
FLAGGED = 3
N_RESULTS = 5

id_option = click.option("--id", "id_column", metavar="COLUMN", help="The column that names rows.")
output_option = click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write all rows with score, rank, flag and reasons: a .csv, .parquet or .json file.",
)
only_flagged_option = click.option(
    "--only-flagged", is_flag=True, help="With --output: write the flagged rows alone."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress bar and no notes.")


@click.command(short_help="Find the most suspicious rows of a table.")
@click.argument("normal", type=FILE)
@click.argument("unlabeled", type=FILE, required=False)
@click.option(
    "--marker",
    metavar="COLUMN",
    help="With one file only: the column that marks the rows known to be normal.",
)
@click.option("--normal-value", help="With --marker: the value that means normal, if not obvious.")
@click.option(
    "-k",
    "--top",
    type=click.IntRange(min=1),
    help="How many rows to flag; 50 where not given, or all if there are fewer.",
)
@id_option
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable.")
@click.option(
    "--label", metavar="COLUMN", help="The column with the truth, to evaluate the answer alone."
)
@click.option("--outlier", help="With --label: the value that means outlier, if not obvious.")
@click.option(
    "--missing",
    type=click.Choice(["error", "impute", "drop"]),
    default="error",
    show_default=True,
    help="Missing values: complain, fill in what is usual, or drop the rows.",
)
@click.option(
    "--preset",
    type=click.Choice(["recommended", "paper"]),
    default="recommended",
    show_default=True,
    help="Settings of the detector.",
)
@output_option
@only_flagged_option
@click.option("--report", type=FILE, help="Write a page to explore the answer: an .html file.")
@click.option("--save-model", type=FILE, help="Keep the model for 'qms22 score': a .skops file.")
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of the shuffles.",
)
@click.option("--n-jobs", default=-1, show_default=True, help="Threads; -1: all cores.")
@quiet_option
def detect(
    normal: Path,
    unlabeled: Path | None,
    marker: str | None,
    normal_value: str | None,
    top: int | None,
    id_column: str | None,
    ignore: Sequence[str],
    label: str | None,
    outlier: str | None,
    missing: str,
    preset: str,
    output: Path | None,
    only_flagged: bool,
    report: Path | None,
    save_model: Path | None,
    seed: int,
    n_jobs: int,
    quiet: bool,
) -> None:
    """Find the most suspicious rows of UNLABELED, knowing those of NORMAL.

    Both files are tables of any kind with the same columns: CSV with any delimiter, compressed or
    not, Parquet, Arrow, ARFF or KEEL. Or give one file whose column --marker tells the known-normal
    rows. Numbers, truth values, categories and dates are used; identifiers, free text and columns
    that never vary are left out, with a note.

    On a terminal the flagged rows are shown with their reasons; into a pipe they go as CSV.

    \b
    Example:
        qms22 detect last-month.csv today.csv --top 50 --id order --report today.html
    """
    check_output(output, OUTPUT_SUFFIXES, "--output")
    check_output(report, (".html",), "--report")
    check_output(save_model, (".skops",), "--save-model")
    require("detect", "table", "pandas", "pyarrow", "narwhals")
    if report is not None:
        require("--report", "report", "jinja2")
    if save_model is not None:
        require("--save-model", "model", "skops")
    began = time.perf_counter()
    with explained():
        from qms22 import detection

        known, batch = _read(normal, unlabeled, marker, normal_value)
        truth = None if label is None else _truth(batch, label, outlier)
        for column, option in ((id_column, "--id"), *((name, "--ignore") for name in ignore)):
            if column is not None and column not in batch.columns:
                raise click.UsageError(f"{option} {column}: the unlabeled table has no such column")
        left_out = [name for name in (id_column, label, *ignore) if name is not None]
        found = detection.detect(
            known,
            batch,
            k=top,
            ignore=left_out,
            missing=missing,
            preset=preset,
            seed=seed,
            n_jobs=n_jobs,
            verbose=0 if quiet else 1,
        )
        if truth is not None:
            truth = truth[found.positions]
        if not quiet:
            _show_columns(found, len(batch))
        table = found.table(id_column)
        flagged = table.iloc[: len(found.top)]
        if output is not None:
            write_table(flagged if only_flagged else table, output)
        facts = _facts(found, normal, unlabeled, preset, seed, time.perf_counter() - began)
        if report is not None:
            _write_report(report, found, id_column, truth, facts)
        if save_model is not None:
            from qms22.models import save_model as save

            save(save_model, found.detector, encoder=found.encoder, preset=preset, id=id_column)
    print_table(
        flagged.iloc[:, :N_RESULTS], f"The {len(flagged)} most suspicious of {len(table)} rows"
    )
    if truth is not None:
        _show_truth(found, truth)
    for path in (output, report, save_model):
        if path is not None and not quiet:
            click.echo(f"written: {path}", err=True)


@click.command(short_help="Score new rows by a saved model.")
@click.argument("model", type=FILE)
@click.argument("new", type=FILE)
@click.option(
    "-k",
    "--top",
    type=click.IntRange(min=1),
    help="How many rows to flag; those beyond the model's line where not given.",
)
@id_option
@output_option
@only_flagged_option
@quiet_option
def score(
    model: Path,
    new: Path,
    top: int | None,
    id_column: str | None,
    output: Path | None,
    only_flagged: bool,
    quiet: bool,
) -> None:
    """Score the rows of NEW by a model that 'qms22 detect --save-model' has kept.

    Without --top the rows beyond the line that was drawn when the model was made are flagged.
    The model learned from another batch: rows of a kind that was not in it may go unnoticed.
    Loading a model never runs code from its file.

    \b
    Example:
        qms22 score model.skops tomorrow.csv --top 20
    """
    check_output(output, OUTPUT_SUFFIXES, "--output")
    require("score", "table", "pandas", "pyarrow", "narwhals")
    with explained():
        from qms22.detection import score_table
        from qms22.models import load_model
        from qms22.tabular import read_table

        table = score_table(load_model(model), read_table(new), k=top, id_column=id_column)
        # By position: a column of the batch may be called "flagged" as well.
        flagged = table.iloc[: int(table.iloc[:, FLAGGED].sum())]
        if output is not None:
            write_table(flagged if only_flagged else table, output)
    print_table(flagged.iloc[:, :N_RESULTS], f"{len(flagged)} of {len(table)} rows are flagged")
    if output is not None and not quiet:
        click.echo(f"written: {output}", err=True)


def _read(
    normal: Path, unlabeled: Path | None, marker: str | None, normal_value: str | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    from qms22.tabular import read_mixed, read_table

    if unlabeled is None:
        if marker is None:
            raise click.UsageError(
                "give a second file with the rows to search, or name by --marker the column that "
                f"tells the known-normal rows of {normal}"
            )
        return read_mixed(normal, marker, normal=normal_value)
    if marker is not None or normal_value is not None:
        raise click.UsageError("--marker and --normal-value go with one file, not with two")
    return read_table(normal), read_table(unlabeled)


def _truth(batch: pd.DataFrame, label: str, outlier: str | None) -> NDArray[np.bool_]:
    from qms22.datasets._labels import outlier_labels

    if label not in batch.columns:
        raise click.UsageError(f"--label {label}: the unlabeled table has no such column")
    column = batch[label]
    if column.isna().any():
        raise click.UsageError(
            f"--label {label}: {int(column.isna().sum())} rows have no label; fill them in"
        )
    labels: Any = column.to_numpy(dtype=object)
    remedy = "name another column, or the value of outliers by --outlier"
    return outlier_labels(labels.astype(str), outlier, f"--label {label}: the column", remedy)


def _show_columns(found: Detection, n_rows: int) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(stderr=True)
    shown = Table(title="Columns")
    for heading in ("column", "kind", "usual value", "note"):
        shown.add_column(heading)
    for row in found.encoder.describe():
        shown.add_row(*map(escape, row.values()))
    console.print(shown)
    n_dropped = n_rows - len(found.positions)
    if n_dropped:
        console.print(f"{n_dropped} unlabeled rows with missing values were dropped")


def _show_truth(found: Detection, truth: NDArray[np.bool_]) -> None:
    from qms22.metrics import roc, true_positive_rate_at

    k = len(found.top)
    if not truth.any() or truth.all():
        click.echo("no evaluation: the labels are all alike", err=True)
        return
    rate = true_positive_rate_at(truth, found.scores, k)
    click.echo(
        f"by the labels: {int(truth[found.top].sum())} of the {k} flagged rows are outliers, "
        f"TPR {rate:.4f}, AUC {roc(truth, found.scores).auc:.4f}",
        err=True,
    )


def _facts(
    found: Detection,
    normal: Path,
    unlabeled: Path | None,
    preset: str,
    seed: int,
    seconds: float,
) -> dict[str, str]:
    from qms22 import __version__

    files = f"{normal.name}" if unlabeled is None else f"{normal.name}, {unlabeled.name}"
    parameters = found.detector.get_params()
    settings = ", ".join(
        f"{name} {parameters[name]}"
        for name in ("n_members", "n_components", "alpha", "max_iter", "scaling", "n_restarts")
    )
    return {
        "files": files,
        "known-normal rows": str(len(found.normal)),
        "unlabeled rows": str(len(found.unlabeled)),
        "preset": preset,
        "settings": settings,
        "seed": str(seed),
        "seconds": f"{seconds:.1f}",
        "qms22": __version__,
    }


def _write_report(
    path: Path,
    found: Detection,
    id_column: str | None,
    truth: NDArray[np.bool_] | None,
    facts: dict[str, str],
) -> None:
    from qms22.report import DetectionRun, write_detection_report

    columns = [
        {"name": row["column"], "kind": row["kind"], "note": row["note"]}
        for row in found.encoder.describe()
    ]
    run = DetectionRun(
        title=f"Suspicious rows of {facts['files'].split(', ')[-1]}",
        scores=found.scores,
        rows=found.unlabeled.drop(columns=[] if id_column is None else id_column),
        normal=found.normal,
        k=len(found.top),
        ids=None if id_column is None else found.unlabeled[id_column].tolist(),
        reasons=found.reasons,
        columns=columns,
        is_outlier=truth,
        facts=facts,
    )
    write_detection_report(path, run)
