"""`detect` finds the suspicious rows of a table.

>>> from sklearn.datasets import load_iris
>>> import qms22
>>> iris = load_iris(as_frame=True).data.rename(columns=lambda name: name.removesuffix(" (cm)"))
>>> normal, batch = iris[:40], iris[40:52]  # setosas; ten more of them, and two others
>>> found = qms22.detect(normal, batch, k=2)
>>> found
Detection: 2 of 12 rows flagged, at most 1 of them normal; contains anomalies
>>> sorted(found.top.tolist())
[10, 11]
>>> found.reasons[found.top[0]][0].columns
('petal length',)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.stages import begin_stage
from qms22._runtime.warn import warn_user
from qms22.checks import OddCells, learn_checks
from qms22.decisions.comparison import Comparison
from qms22.detection.column_notes import column_notes, note_dropped
from qms22.detection.compared_columns import judge_tables
from qms22.detection.encoding import EncodedTables, encode_tables
from qms22.detection.inputs import (
    InputTables,
    align_tables,
    check_roles,
    draw,
    find_ignored,
    open_tables,
)
from qms22.detection.marks.table_marks import read_marks
from qms22.detection.past_batches import PastBatches
from qms22.detection.reasons.explaining import explain_batch, group_rows, rows_to_explain
from qms22.detection.result import Detection
from qms22.detection.rows import (
    TableLike,
    check_column,
    count_scored,
    flag_top,
    most_suspicious,
    note_repeated,
)
from qms22.detection.scorer import TableScorer, fit_detector, measure_normal
from qms22.detection.search_options import SearchOptions
from qms22.detection.streaming import score_rows
from qms22.estimators.batch_detector import threshold
from qms22.tables import open_table
from qms22.tables.columns.column_names import find_column

# How many rows the preset of the paper flags, which has no p-values: a round number.
_DEFAULT_TOP = 50
# One false alarm in ten flagged rows: a usual level.
_DEFAULT_FDR = 0.1
# A false discovery rate may flag few rows or none; as many are explained as a terminal shows.
_LEAST_EXPLAINED = 10


def detect(
    normal: TableLike,
    batch: TableLike,
    *,
    fdr: float | None = None,
    k: int | None = None,
    id: str | int | None = None,  # noqa: A002
    by: str | int | None = None,
    time: str | int | None = None,
    marks: TableLike | Sequence[TableLike] | None = None,
    ignore: Sequence[str | int] = (),
    missing: str = "impute",
    kinds: Mapping[str, str] | None = None,
    preset: str = "recommended",
    max_samples: int | None = None,
    seed: int | None = 0,
    n_jobs: int | None = None,
    device: str = "cpu",
    verbose: int = 0,
    history: str | Path | None = None,
    accept: bool = False,
) -> Detection:
    """Find the most suspicious rows of a table, given a table of known-normal rows.

    Parameters
    ----------
    normal, batch : path, list of paths, Table or data frame
        The known-normal rows and the rows to search: files, directories and patterns that
        `qms22.tables.open_table` opens, or frames of pandas, polars or another library that
        narwhals supports. Columns may be of any kind (see `TabularEncoder`). They are matched by
        name; case, blanks and underscores are ignored. Columns of only one table are left out,
        with a note.
    fdr : float, optional
        The false discovery rate: flag as many rows as possible while at most this share of them
        is expected to be normal. The default is 0.1.
    k : int, optional
        Flag this many rows instead of using `fdr`, or all if there are fewer. The preset "paper"
        has no p-values, and flags 50 rows by default.
    id : str or int, optional
        A column of the batch with the names of the rows; it is not learned from.
    by : str or int, optional
        The column that says which rows belong together: a customer, a meter. Numbers are compared
        with those of the same one, and rows with the one before. By default columns that look like
        it are taken.
    time : str or int, optional
        The date by which rows are in order. By default it is the one that rises from row to row,
        or has the most values.
    marks : path, Table or data frame, or a list of these, optional
        Rows that someone has checked: a table with a column "mark" ("anomaly", "normal", "unsure"
        or empty) and the column `id`, or "row" with positions in the batch. Rows marked as
        anomalies or as normal are learned from and not searched. Rows of other tables need all
        columns.
        A column "source" says which table a row is in: "batch" (or empty) or "normal". Known-normal
        rows marked as anomalies are learned from as such; see `Detection.normal_to_check`.
    ignore : sequence of str or int
        Columns to leave out, of either table. Of the date "sold", "sold (days)" leaves out the
        days and keeps the hour and the weekday.
    missing : {"impute", "drop", "error"}
        What to do with missing values: impute the usual value and learn where values are missing,
        drop the rows, or raise an error.
    kinds : mapping of str to str, optional
        How to read columns, by name, where the guess would be wrong: "number", "category", "date",
        "boolean", "text" or "ignore", such as ``{"zip": "category"}``.
    preset : {"recommended", "paper"}
        `QMS22Ensemble`, or `QMS22` with the settings of the paper.
    max_samples : int, optional
        Learn from at most this many rows of each table, drawn at random, and score the batch chunk
        by chunk. By default the detector decides: `QMS22Ensemble` learns from 6,000, `QMS22` from
        all. Of files too large for memory at most 100,000 rows are drawn.
    seed : int or None
        Seed of draws and shuffles; with None the result changes from run to run.
    n_jobs : int or None
        Threads; -1 means all cores.
    device : {"cpu", "cuda", "auto"}
        Where to learn and score; see `QMS22`.
    verbose : int
        Above 0 a progress bar is shown on standard error.
    history : path, optional
        A file that records what was found in each batch (see `BatchHistory`); it is created if
        needed. Rows of accepted batches are known-normal rows too, and from 20 of them on the batch
        is compared with these batches instead of row by row. The file contains rows.
    accept : bool
        Whether to accept the batch as known-normal for later searches if its verdict is fine and no
        row is flagged. It needs `history`, and cannot be used with `k`.

    Returns
    -------
    Detection

    Notes
    -----
    A column that only says when rows were made is no reason to suspect a row, and is left out: a
    date, if most rows of the batch are before or after all normal ones (its hour and weekday stay
    if normal rows cover some days or weeks); whole numbers (a month, a counter), if nearly all
    rows are above or below all normal ones; a category, if nearly all rows have levels that no
    normal row has. A note in ``encoder.columns_`` says so. If rows are drawn, the kinds of columns,
    their levels and their usual values come from the drawn normal rows.
    """
    if k is None and fdr is None and preset != "paper":
        fdr = _DEFAULT_FDR
    options = SearchOptions(
        fdr=fdr,
        k=k,
        ignore=ignore,
        missing=missing,
        kinds=kinds,
        preset=preset,
        max_samples=max_samples,
        seed=seed,
        n_jobs=n_jobs,
        device=device,
        verbose=verbose,
        history=history,
        accept=accept,
    )
    tables = open_tables(normal, batch, max_samples)
    given = marks if isinstance(marks, list | tuple) else [] if marks is None else [marks]
    marked = [open_table(each) for each in given]
    inputs = (
        ("normal", tables.normal),
        ("batch", tables.batch),
        *(("marks", each) for each in marked),
    )
    id_name = check_column(tables.batch, "id", id, "the names of rows")
    asked = find_ignored(tables, ignore)
    ignored = [*asked, *([] if id_name is None else [id_name])]
    kinds = {
        find_column(name, tables.batch.names) or name: kind for name, kind in (kinds or {}).items()
    }
    tables, ignored = align_tables(tables, ignored, kinds)
    by_name = check_column(tables.batch, "by", by, "rows that belong together")
    time_name = check_column(tables.batch, "time", time, "the order of rows")
    unread = {*ignored, *(name for name, kind in kinds.items() if kind == "ignore")}
    check_roles(tables, id_name, {"by": by_name, "time": time_name}, unread)
    named = replace(
        options, id=id_name, by=by_name, time=time_name, ignore=tuple(ignored), kinds=kinds or None
    )
    past = None if history is None else PastBatches(history, tables, ignored)
    tables = tables if past is None else past.tables
    if marked:
        tables = tables._replace(marks=read_marks(marked, *tables[:2], id_name, ignored))
    settings = {**named.facts(), "ignore": asked, "device": device}
    found = replace(_search(tables, named, past), settings=settings, inputs=inputs)
    if fdr is not None and found.is_drift_scored and found.n_flagged:
        warn_user(found.remark)
    return found if past is None else past.remember(found, named)


def _search(tables: InputTables, options: SearchOptions, past: PastBatches | None) -> Detection:
    """Search a batch whose columns are matched with those of the known-normal table."""
    seed = options.seed or 0
    drawn = draw(tables, options.seed)
    exceptions = () if past is None else past.exceptions
    may_move = {each.column: each.note for each in exceptions}
    encoded = _encode_drawn(tables, drawn, options, may_move)
    notes = column_notes(encoded, len(drawn[0]), options.ignored)
    if tables.max_samples is None:
        notes = (*notes, *note_repeated(tables.batch, options.id))
    tables = tables._replace(notes=(*tables.notes, *notes))
    detector = options.new_detector()
    begin_stage("learning")
    fit_detector(detector, encoded, options.max_samples)
    begin_stage("checking")
    learned = learn_checks(
        encoded.encoder,
        encoded.normal_cells,
        encoded.batch_cells,
        seed,
        by=options.by,
        time=options.time,
        is_scored=options.preset == "recommended",
        is_part=tables.is_scattered,
    )
    scorer = TableScorer(encoded.encoder, detector, learned.checks)
    scores, odd = _score_batch(tables, encoded, scorer)
    n_scored = count_scored(scores)
    begin_stage("comparing with known-normal rows")
    of_drawn = scores[encoded.positions]
    ruler = measure_normal(scorer, encoded, learned, of_drawn, n_scored, seed)
    del learned  # with all columns that checks have made of the known-normal rows
    comparison = None
    if ruler is not None:
        rows = scorer.checks.read(encoded.batch_cells, is_part=True)
        repeats = encoded.positions[scorer.checks.repeats(rows, odd.take(encoded.positions))]
        comparison = Comparison.of(ruler.aligned(scores), scores, repeats)
    if options.fdr is None or comparison is None:
        flagged = flag_top(scores, _DEFAULT_TOP if options.k is None else options.k)
    else:
        flagged = comparison.flag(options.fdr)
    known = None if past is None else past.known
    verdict, profile = judge_tables(encoded, options.ignored, n_scored, comparison, known)
    # The threshold for new rows is the one that flags as many of these.
    n_flagged = int(np.count_nonzero(flagged))
    first = most_suspicious(scores, min(n_flagged + 1, n_scored))
    scorer.checks.threshold = threshold(scores[first], n_flagged)
    n_marked = 0 if tables.marks is None else len(tables.marks.decided)
    explained = flagged | flag_top(scores, 0 if options.fdr is None else _LEAST_EXPLAINED)
    reasons = explain_batch(tables, encoded, scorer, rows_to_explain(scores, explained))
    return Detection(
        tables.batch,
        encoded.encoder,
        detector,
        scores,
        flagged,
        reasons,
        normal_table=tables.normal,
        normal_positions=encoded.normal_positions,
        comparison=comparison,
        fdr=options.fdr,
        id=options.id,
        marks=tables.marks,
        n_drawn=min(len(encoded.rows), detector._n_drawn or len(encoded.rows)),
        verdict=verdict,
        checks=scorer.checks,
        odd=odd,
        columns=encoded.whole if tables.are_whole and tables.marks is None else None,
        findings=group_rows(encoded, scorer, flagged, reasons, comparison),
        notes=(*tables.notes, *scorer.checks.notes, *note_dropped(scores, n_marked)),
        exceptions=exceptions,
        profile=profile,
    )


def _encode_drawn(
    tables: InputTables,
    drawn: Sequence[NDArray[np.intp]],
    options: SearchOptions,
    may_move: Mapping[str, str],
) -> EncodedTables:
    """Encode the rows that were drawn, without the columns that may move."""
    begin_stage("reading the columns")
    names = tables.normal.name, tables.batch.name
    if names[0] == names[1]:
        names = f"{names[0]} (normal)", f"{names[1]} (unlabeled)"
    marked = [] if tables.marks is None else tables.marks.parts(tables.normal, tables.batch)
    columns = tables.normal.columns(rows=drawn[0]), tables.batch.columns(rows=drawn[1])
    try:
        encoded = encode_tables(
            *columns,
            options.new_encoder(),
            marked=marked,
            names=names,
            is_whole=tables.is_batch_whole,
            may_move=may_move,
        )
    except ValueError as error:
        if tables.are_whole:
            raise
        raise ValueError(f"among the rows drawn, {error}") from error
    places = drawn[0][encoded.normal_positions], drawn[1][encoded.positions]
    return encoded._replace(normal_positions=places[0], positions=places[1])


def _score_batch(
    tables: InputTables, encoded: EncodedTables, scorer: TableScorer
) -> tuple[NDArray[np.float64], OddCells]:
    """Return the score of every row of the batch, NaN where one is dropped, and odd cells."""
    begin_stage("scoring")
    positions, of_drawn, odd = scorer.score_batch(encoded, is_part=tables.is_scattered)
    if not tables.is_batch_whole:
        scores, odd = score_rows(tables.batch, scorer, scorer.detector.verbose)
        if tables.marks is not None:
            scores[tables.marks.decided] = np.nan
        return scores, odd
    n_rows = tables.batch.n_rows
    scores, found = np.full(n_rows, np.nan), OddCells.empty(n_rows)
    scores[positions] = of_drawn
    found.put(positions, odd)
    return scores, found
