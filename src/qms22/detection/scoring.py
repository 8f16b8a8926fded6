"""`score` applies a saved model to a table."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from qms22._runtime.validation import check_count
from qms22._runtime.warn import warn_user
from qms22.checks import TableChecks
from qms22.detection.aligning.align import align_table, left_out
from qms22.detection.aligning.same_writing import match_model
from qms22.detection.column_notes import note_dropped
from qms22.detection.encoding import errors_named
from qms22.detection.reasons.explaining import explain_read, rows_to_explain
from qms22.detection.result import Detection
from qms22.detection.rows import TableLike, check_column, flag_top
from qms22.detection.scorer import TableScorer
from qms22.detection.streaming import is_large, score_rows
from qms22.models import SavedModel, load_model
from qms22.tables import Table, TabularEncoder, open_table
from qms22.tables.texts.words import list_quoted


def score(
    model: SavedModel | str | PathLike[str],
    table: TableLike,
    *,
    k: int | None = None,
    id: str | int | None = None,  # noqa: A002
    verbose: int = 0,
) -> Detection:
    """Score the rows of a table by a saved model.

    Parameters
    ----------
    model : SavedModel or path
        With an encoder, as `qms22 detect --save-model` writes it: the file, or what
        `qms22.models.load_model` returns.
    table : path, Table or data frame
        As in `detect`. A file too large for memory is read chunk by chunk. Columns that the model
        does not use need not be there. For a column that it uses and that is not there, all rows
        have the usual value, with a note.
    k : int, optional
        How many rows to flag, or all if there are fewer; by default those beyond the threshold set
        when the model was made.
    id : str or int, optional
        A column that names the rows.
    verbose : int
        Above 0 a progress bar is shown on standard error.

    Returns
    -------
    Detection
        Without known-normal rows.
    """
    if k is not None:
        check_count("k", k)
    inputs = (("model", Path(model)),) if isinstance(model, str | PathLike) else ()
    scorer = _load(model)
    encoder, checks = scorer.encoder, scorer.checks
    source = given = open_table(table)
    if is_large(source):
        warn_user(f"{source.name} is too large to hold in memory, and is read part by part")
    else:
        source = source.load()
    source.check()
    known = [column.name for column in encoder.columns_]
    id_name = check_column(source, "id", id, "the names of rows")
    aligned = align_table(source, known, "the model", [*encoder.ignored_, str(id_name)])
    if id_name is not None:
        id_name = aligned.renamed.get(id_name, id_name)
    source, rewritten = match_model(aligned.table, encoder)
    notes = [*source.notes, *aligned.notes, *rewritten]
    notes += left_out(aligned.extra, source.name, "the model")
    notes += _note_lacking(encoder, source)
    scores, odd = score_rows(source, scorer, verbose)
    flagged = scores > checks.threshold if k is None else flag_top(scores, k)
    return Detection(
        source,
        encoder,
        scorer.detector,
        scores,
        flagged,
        explain_read(scorer, source, rows_to_explain(scores, flagged), {}),
        id=id_name,
        checks=checks,
        odd=odd,
        notes=(*notes, *note_dropped(scores)),
        settings={"k": k, "id": id_name},
        inputs=(*inputs, ("batch", given)),
    )


def _load(model: SavedModel | str | PathLike[str]) -> TableScorer:
    """Return a model, read from its file if need be; raise ValueError if it is not for tables."""
    if isinstance(model, str | PathLike):
        model = load_model(model)
    if not isinstance(model, SavedModel):
        raise ValueError(
            f"model must be a model file or what load_model returns; got {type(model).__name__}, "
            "so save a model first (qms22.models.save_model)"
        )
    encoder, checks = model.encoder, model.checks
    if encoder is None:
        raise ValueError(
            "the model has no encoder for tables; save one with 'qms22 detect --save-model'"
        )
    if not isinstance(encoder, TabularEncoder):
        raise ValueError(
            f"the encoder of the model is a {type(encoder).__name__}, which cannot read tables; "
            "save a model by 'qms22 detect', or give what the encoder makes of the rows to "
            "score_samples of the detector"
        )
    if checks is None:
        checks = TableChecks(encoder)
        checks.threshold = -model.detector.offset_
    return TableScorer(encoder, model.detector, checks)


def _note_lacking(encoder: TabularEncoder, source: Table) -> list[str]:
    """Return a note on columns that are used and not there; raise ValueError if none is there.

    With the usual value in all rows, such a column favors none of them. A model cannot do without
    it: its scores need all columns.
    """
    lacking = sorted(encoder.groups_.keys() - {*source.names})
    if len(lacking) == len(encoder.groups_):
        with errors_named(source.name):
            encoder._check_columns(source.names)
    names = list_quoted(lacking)
    note = f"{source.name} lacks {names}, which the model uses; all rows get the usual value"
    return [note] if lacking else []
