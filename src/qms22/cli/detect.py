"""`qms22 detect` and `qms22 score`: the everyday job, from files to a ranked, explained answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qms22.cli.shared import (
    OUTPUT_SUFFIXES,
    check_output,
    explained,
    print_table,
    require,
    write_table,
    write_tables,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from qms22.detection.run import Detection

FILE = click.Path(path_type=Path)

# Columns of results: rank, row or id, score, flagged, reasons, and p-value where there is one; then
# those of the batch.
N_RESULTS = 5

# Even where nothing is flagged, a page explains the most suspicious rows.
_LEAST_EXPLAINED = 10

# Of a batch that is read part by part a page shows so many rows, and all flagged ones.
_MOST_ON_PAGE = 100_000

id_option = click.option("--id", "id_column", metavar="COLUMN", help="The column that names rows.")
output_option = click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write all rows with score, rank, flag and reasons: a .csv, .parquet or .json file. They "
    "come most suspicious first; where files are read part by part, in the order of the file.",
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
@click.option(
    "--fdr",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Instead of --top: flag rows so that at most this share of them is expected to be normal, "
    "and show p-values and an estimate of the share of outliers.",
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
@click.option(
    "--max-samples",
    type=click.IntRange(min=1),
    metavar="N",
    help="Learn from at most N rows of each file, drawn at random, and read the files part by "
    "part: they may be larger than memory. Where they are, N is at most 100000 if not given.",
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
    help="Seed of shuffles and draws.",
)
@click.option("--n-jobs", default=-1, show_default=True, help="Threads; -1: all cores.")
@quiet_option
def detect(
    normal: Path,
    unlabeled: Path | None,
    marker: str | None,
    normal_value: str | None,
    top: int | None,
    fdr: float | None,
    id_column: str | None,
    ignore: Sequence[str],
    label: str | None,
    outlier: str | None,
    missing: str,
    preset: str,
    max_samples: int | None,
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
        qms22 detect last-month.csv today.csv --fdr 0.1
        qms22 detect last-year.parquet this-year.parquet --max-samples 50000 -o scores.parquet
    """
    if top is not None and fdr is not None:
        raise click.UsageError("--top and --fdr both say how many rows to flag; give one of them")
    _check_files(normal, unlabeled, marker, normal_value, max_samples)
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
        options = {
            "k": top,
            "fdr": fdr,
            "ignore": [name for name in (id_column, label, *ignore) if name is not None],
            "missing": missing,
            "preset": preset,
            "seed": seed,
            "n_jobs": n_jobs,
            "verbose": 0 if quiet else 1,
        }
        named = _Columns(id_column, label, outlier, ignore)
        if unlabeled is None or not (max_samples or _are_large(normal, unlabeled, quiet=quiet)):
            answer = _detect_in_memory(normal, unlabeled, marker, normal_value, named, options)
        else:
            answer = _detect_in_files(normal, unlabeled, max_samples, named, options)
        found = answer.found
        if not quiet:
            _show_columns(found, len(answer.scores) - answer.n_scored)
        if output is not None:
            write_tables([answer.flagged] if only_flagged else answer.tables, output)
        facts = _facts(answer, normal, unlabeled, preset, fdr, seed, time.perf_counter() - began)
        if report is not None:
            _write_report(report, answer, id_column, facts)
        if save_model is not None:
            from qms22.models import save_model as save

            save(save_model, found.detector, encoder=found.encoder, preset=preset, id=id_column)
    n_flagged, n_scored = len(answer.flagged), answer.n_scored
    if fdr is None:
        title = f"The {n_flagged} most suspicious of {n_scored} rows"
        print_table(answer.flagged.iloc[:, :N_RESULTS], title)
    else:
        title = f"{n_flagged} of {n_scored} rows are flagged at a false discovery rate of {fdr:g}"
        print_table(answer.flagged.iloc[:, : N_RESULTS + 1], title)
        click.echo(f"estimated share of outliers: {_share(found)}", err=True)
    if answer.truth is not None:
        with explained():
            _show_truth(answer, answer.truth)
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
        from qms22.detection.streaming import score_file
        from qms22.models import load_model
        from qms22.tables import open_table

        saved = load_model(model)
        table = open_table(new)
        if id_column is not None and id_column not in table.names:
            raise ValueError(f"the table has no column {id_column!r} to name the rows")
        is_large = _are_large(new, quiet=quiet)
        found = score_file(saved, table, k=top, verbose=int(is_large and not quiet))
        flagged = found.flagged.table(id_column)
        if output is not None and only_flagged:
            write_table(flagged, output)
        elif output is not None:
            whole = (
                found.tables(id_column)
                if is_large
                else [found.excerpt(found.n_scored).table(id_column)]
            )
            write_tables(whole, output)
    print_table(flagged.iloc[:, :N_RESULTS], f"{len(flagged)} of {found.n_scored} rows are flagged")
    if output is not None and not quiet:
        click.echo(f"written: {output}", err=True)


@dataclass(frozen=True)
class _Columns:
    """Columns that the user has named."""

    id_column: str | None
    label: str | None
    outlier: str | None
    ignore: Sequence[str]

    def check(self, names: Sequence[str]) -> None:
        """Complain of columns that the unlabeled table has not."""
        options = [("--label", self.label), ("--id", self.id_column)]
        for option, column in (*options, *(("--ignore", name) for name in self.ignore)):
            if column is not None and column not in names:
                raise click.UsageError(f"{option} {column}: the unlabeled table has no such column")


@dataclass(frozen=True)
class _Answer:
    """What was found, in memory or in files.

    Parameters
    ----------
    found : Detection
        Of all rows, or of the flagged ones.
    scores : ndarray of shape (n_rows,)
        Of all rows in the order of their file; NaN where a row was dropped.
    flagged : DataFrame
        The table of the flagged rows.
    tables : iterable of DataFrame
        That of all rows, in parts.
    page : callable
        Gives the rows that a page is to show.
    truth : ndarray of shape (n_rows,) or None
        Which rows are outliers, where labels tell.
    n_drawn : int or None
        How many unlabeled rows were learned from, if not all.
    """

    found: Detection
    scores: NDArray[np.float64]
    flagged: pd.DataFrame
    tables: Iterable[pd.DataFrame]
    page: Callable[[], Detection]
    truth: NDArray[np.bool_] | None
    n_drawn: int | None = None

    @cached_property
    def n_scored(self) -> int:
        """How many rows were not dropped."""
        return int((self.scores == self.scores).sum())


def _detect_in_memory(
    normal: Path,
    unlabeled: Path | None,
    marker: str | None,
    normal_value: str | None,
    named: _Columns,
    options: dict[str, Any],
) -> _Answer:
    import numpy as np

    from qms22.detection.run import detect
    from qms22.tables import read_mixed, read_table

    if unlabeled is None:
        assert marker is not None  # or there would be two files
        known, batch = read_mixed(normal, marker, normal=normal_value)
    else:
        known, batch = read_table(normal), read_table(unlabeled)
    named.check(batch.columns)
    truth = _truth([batch], named)
    found = detect(known, batch, **options)
    scores = np.full(len(batch), np.nan)
    scores[found.positions] = found.scores
    table = found.table(named.id_column)
    return _Answer(found, scores, table[: len(found.top)], [table], lambda: found, truth)


def _detect_in_files(
    normal: Path,
    unlabeled: Path,
    max_samples: int | None,
    named: _Columns,
    options: dict[str, Any],
) -> _Answer:
    from qms22.detection.streaming import detect_files
    from qms22.tables import open_table

    batch = open_table(unlabeled)
    named.check(batch.names)
    truth = _truth([] if named.label is None else batch.chunks([named.label]), named)
    found = detect_files(normal, batch, max_samples=max_samples, **options)
    return _Answer(
        found.flagged,
        found.scores,
        found.flagged.table(named.id_column),
        found.tables(named.id_column),
        lambda: found.excerpt(_MOST_ON_PAGE),
        truth,
        found.n_drawn,
    )


def _are_large(*paths: Path, quiet: bool) -> bool:
    """Tell whether files should be read part by part, and say so."""
    from qms22.detection.streaming import DEFAULT_DRAW, is_large

    if not is_large(*paths):
        return False
    if not quiet:
        learned = f"; at most {DEFAULT_DRAW} rows of each are learned from (--max-samples)"
        click.echo(
            f"note: {' and '.join(map(str, paths))} would take much of the memory there is, and "
            f"{'are' if len(paths) > 1 else 'is'} read part by part"
            f"{learned if len(paths) > 1 else ''}",
            err=True,
        )
    return True


def _check_files(
    normal: Path,
    unlabeled: Path | None,
    marker: str | None,
    normal_value: str | None,
    max_samples: int | None,
) -> None:
    if unlabeled is None and marker is None:
        raise click.UsageError(
            "give a second file with the rows to search, or name by --marker the column that "
            f"tells the known-normal rows of {normal}"
        )
    if unlabeled is None and max_samples is not None:
        raise click.UsageError(
            "--max-samples draws from two files; write the known-normal rows into one of their own"
        )
    if unlabeled is not None and (marker is not None or normal_value is not None):
        raise click.UsageError("--marker and --normal-value go with one file, not with two")


def _truth(tables: Iterable[pd.DataFrame], named: _Columns) -> NDArray[np.bool_] | None:
    """Tell which rows are outliers by their labels, of which each different one is kept once."""
    import numpy as np

    from qms22.tables.labels import outlier_labels

    if named.label is None:
        return None
    label, n_missing = named.label, 0
    numbers: dict[str, int] = {}
    rows = []
    for table in tables:
        n_missing += int(table[label].isna().sum())
        texts: Any = table[label].to_numpy(dtype=object)
        values, places = np.unique(texts.astype(str), return_inverse=True)
        found = [numbers.setdefault(value, len(numbers)) for value in values.tolist()]
        rows.append(np.array(found, dtype=np.int32)[places])
    if n_missing:
        raise click.UsageError(f"--label {label}: {n_missing} rows have no label; fill them in")
    remedy = "name another column, or the value of outliers by --outlier"
    where = f"--label {label}: the column"
    is_outlier = outlier_labels(np.array(list(numbers)), named.outlier, where, remedy)
    return is_outlier[np.concatenate(rows)]


def _show_columns(found: Detection, n_dropped: int) -> None:
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
    if n_dropped:
        console.print(f"{n_dropped} unlabeled rows with missing values were dropped")


def _show_truth(answer: _Answer, truth: NDArray[np.bool_]) -> None:
    from qms22.metrics import true_positive_rate_at

    is_scored = answer.scores == answer.scores
    scores, labels = answer.scores[is_scored], truth[is_scored]
    flagged = answer.found.positions[answer.found.top]
    if not labels.any() or labels.all():
        click.echo("no evaluation: the labels are all alike", err=True)
        return
    rate = true_positive_rate_at(labels, scores, len(flagged))
    click.echo(
        f"by the labels: {int(truth[flagged].sum())} of the {len(flagged)} flagged rows are "
        f"outliers, TPR {rate:.4f}, AUC {_auc(labels, scores):.4f}",
        err=True,
    )


def _auc(is_outlier: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Compute what `roc` gives, without a curve of as many points as there are rows."""
    import numpy as np
    from sklearn.utils import gen_batches

    outliers = np.sort(scores[is_outlier])
    n_normal = len(scores) - len(outliers)
    n_lost = 0  # pairs in which the normal row scores higher count two, ties one
    for part in gen_batches(len(scores), 1 << 16):
        normal = scores[part][~is_outlier[part]]
        n_lost += int(np.searchsorted(outliers, normal, "left").sum())
        n_lost += int(np.searchsorted(outliers, normal, "right").sum())
    return 1 - n_lost / (2 * len(outliers) * n_normal)


def _facts(
    answer: _Answer,
    normal: Path,
    unlabeled: Path | None,
    preset: str,
    fdr: float | None,
    seed: int,
    seconds: float,
) -> dict[str, str]:
    from qms22 import __version__

    found = answer.found
    files = f"{normal.name}" if unlabeled is None else f"{normal.name}, {unlabeled.name}"
    parameters = found.detector.get_params()
    settings = ", ".join(
        f"{name} {parameters[name]}"
        for name in ("n_splits", "n_members", "n_components", "max_iter", "scaling", "n_restarts")
        if name in parameters
    )
    drawn = {} if answer.n_drawn is None else {"unlabeled rows learned from": str(answer.n_drawn)}
    flagging = {}
    if fdr is not None:
        flagging = {
            "false discovery rate": f"{fdr:g}",
            "estimated share of outliers": _share(found),
        }
    return {
        "files": files,
        "known-normal rows": str(len(found.normal)),
        "unlabeled rows": str(answer.n_scored),
        **drawn,
        "preset": preset,
        "settings": settings,
        **flagging,
        "seed": str(seed),
        "seconds": f"{seconds:.1f}",
        "qms22": __version__,
    }


def _share(found: Detection) -> str:
    estimate = found.contamination
    assert estimate is not None  # wherever a false discovery rate was asked for
    return f"{estimate.share:.1%} (95 % interval: {estimate.low:.1%} to {estimate.high:.1%})"


def _write_report(
    path: Path, answer: _Answer, id_column: str | None, facts: dict[str, str]
) -> None:
    import numpy as np

    from qms22.detection.run import MOST_EXPLAINED, explain_rows
    from qms22.report import DetectionRun, write_detection_report

    found = answer.page()
    reasons = found.reasons
    if found.p_values is not None:
        # The page goes by rank, and p-values need not: it flags as many, and explains those.
        n_explained = min(max(len(found.top), _LEAST_EXPLAINED), MOST_EXPLAINED)
        first = np.argsort(-found.scores, kind="stable")[:n_explained]
        _, rows = found.encoder.transform_part(found.unlabeled.iloc[first])
        order = np.arange(len(first))
        reasons = explain_rows(
            found.detector, found.encoder, found.unlabeled.iloc[first], rows, order
        )
    is_whole = len(found.scores) == answer.n_scored
    truth = None if answer.truth is None else answer.truth[found.positions]
    if not is_whole:
        # A curve over the most suspicious rows alone would be another one.
        truth = None
        facts = {**facts, "rows on this page": f"the {len(found.scores)} most suspicious"}
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
        reasons=reasons,
        columns=columns,
        is_outlier=truth,
        facts=facts,
    )
    write_detection_report(path, run)
