"""The verdict on a batch of a table: its columns are compared with those of known-normal rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.chunks import draw_rows
from qms22.checks.sequences.in_time import time_distance, time_order
from qms22.checks.single import LEAST_ENTITIES
from qms22.decisions.batch_profile import Profile, profile_batch, row_evidence
from qms22.decisions.comparison import Comparison
from qms22.decisions.moved_columns import (
    MOST_COMPARED,
    ColumnPair,
    compare_columns,
    compare_over_time,
)
from qms22.decisions.over_time import Past
from qms22.decisions.verdict import Verdict, judge_batch, outlier_confidence
from qms22.detection.aligning.periods import are_counted, says_when
from qms22.detection.encoding import EncodedTables
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns, count_rows, take_rows
from qms22.tables.columns.date_parts import DAY
from qms22.tables.columns.plan import Kind
from qms22.tables.columns.typed import join_cells

# That verdicts are right, as usual in statistics.
_CONFIDENCE = 0.95

# What else a column can be says nothing about the rows: a later date, another name, other words.
_COMPARED: frozenset[Kind] = frozenset({"number", "boolean", "category", "constant"})


def judge_tables(
    encoded: EncodedTables,
    ignore: Collection[str],
    n_scored: int,
    comparison: Comparison | None,
    past: Past | None,
) -> tuple[Verdict, Profile | None]:
    """Judge a batch of a table, by all drawn rows; with a history also return what to remember.

    Without a `comparison` of the `n_scored` rows with a score, only columns are compared. Columns
    to `ignore` are those that the user has named. With enough batches in the `past`, the batch is
    compared with these.
    """
    encoder, (normal, batch) = encoded.encoder, encoded.whole
    pairs, drawn = pair_columns(encoder, normal, batch, ignore)
    bound, evidence = None, 0.0
    if comparison is not None:
        bound = comparison.bound(outlier_confidence(_CONFIDENCE))
        evidence = row_evidence(comparison.counts)
    profile, excepted, left_out = None, frozenset[str](), encoder.ignored_
    if past is not None:
        profile, excepted = profile_batch(pairs, evidence, _weekday(encoder, batch)), past.excepted
        if (over_time := past.compare(profile)) is not None:
            moved = compare_columns(pairs)
            verdict = over_time.judge(
                moved, n_scored, bound=bound, left_out=left_out, excepted=excepted
            )
            return verdict, {**profile, "over_time": over_time.facts(verdict)}
    order, distance = time_order(take_rows(normal, drawn)), time_distance(normal, batch)
    found = compare_over_time(pairs, order, distance, 1.0 - _CONFIDENCE)
    judge = partial(judge_batch, found, n_scored, confidence=_CONFIDENCE)
    return judge(bound=bound, left_out=left_out, excepted=excepted), profile


def _weekday(encoder: TabularEncoder, batch: Columns) -> int | None:
    """Return the weekday of a batch of one day, by its first column of dates; Monday is 0."""
    dates = [column.name for column in encoder.columns_ if column.kind == "date"]
    values = batch[dates[0]].values if dates else np.empty(0)
    days = np.unique(values[~np.isnan(values)] // DAY)
    # 1 January 1970 was a Thursday.
    return int(days[0] + 3) % 7 if len(days) == 1 else None


def pair_columns(
    encoder: TabularEncoder, normal: Columns, batch: Columns, ignore: Collection[str]
) -> tuple[list[ColumnPair], NDArray[np.intp]]:
    """Return the columns of two tables that can be compared, and which normal rows are.

    Columns that the encoder left out as periods are among them: that they moved is worth knowing.
    Those that only say when a row was made are not: months, hours, and counters. Of long tables,
    rows are drawn at random.
    """
    kinds = {column.name: column.kind for column in encoder.columns_}
    names = [name for name in kinds if kinds[name] in _COMPARED and name not in ignore]
    rng = np.random.RandomState(0)
    drawn = [draw_rows(count_rows(table), MOST_COMPARED, rng) for table in (normal, batch)]
    pairs = []
    for name in names:
        known, new = (
            table[name].part(at) for table, at in zip((normal, batch), drawn, strict=True)
        )
        is_left_out = name in encoder.ignored_ and known.form == new.form == "number"
        is_about_time = says_when(known) or (is_left_out and are_counted(known, new))
        if name in (encoder.kinds or {}) or not is_about_time:
            pairs.append(_pair(known, new, encoder._plans_by_name[name].neutral))
    return [pair for pair in pairs if pair is not None], drawn[0]


def _pair(normal: Cells, batch: Cells, staying: Sequence[str]) -> ColumnPair | None:
    """Return a column of two tables as numbers or as levels; None if it has dates.

    Of a category with some levels, such as staff, those that are new and stay stand for those that
    are gone.
    """
    if {normal.form, batch.form} & {"date", "other"}:
        return None
    joined, n_normal = join_cells(normal.name, normal, batch), len(normal.values)
    codes, levels = joined.values, joined.levels
    if joined.form == "boolean":
        codes = np.where(joined.has_value, np.nan_to_num(codes), -1).astype(np.intp)
        levels = ("false", "true")
    elif staying and len(np.unique(codes[:n_normal])) < LEAST_ENTITIES:
        there = np.bincount(codes[n_normal:] + 1, minlength=len(levels) + 1)[1:]
        is_replaced = (there == 0) | np.isin(levels, staying)
        codes = np.where(np.append(is_replaced, False)[codes], np.argmax(is_replaced), codes)
    gap = "missing" if batch.words is None else f"no {joined.form}"
    return ColumnPair(joined.name, codes[:n_normal], codes[n_normal:], levels, gap)
