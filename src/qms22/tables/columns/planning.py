"""How to encode the columns of a table, decided from the known-normal rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, show_value
from qms22.tables.columns.date_parts import DAY, date_outputs, part_name
from qms22.tables.columns.kinds import (
    ROWS_PER_LEVEL,
    code_word,
    has_open_levels,
    infer_kind,
    some_levels,
)
from qms22.tables.columns.plan import MISSING, OTHER, UNSEEN, ColumnPlan, Kind
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.date_format import DateFormat, find_date_format
from qms22.tables.texts.number_format import NumberFormat, find_duration_format, find_number_format

_USED: frozenset[Kind] = frozenset({"number", "boolean", "category", "date"})

# A plan, and the column converted to its kind.
Planned: TypeAlias = tuple[ColumnPlan, Cells]


def plan_columns(
    columns: Sequence[Cells],
    min_frequency: float,
    *,
    ignore: Collection[str],
    kinds: Mapping[str, str],
    keeps_missing: bool,
) -> list[Planned]:
    """Decide from the normal rows how to encode columns, and return these converted.

    Levels in fewer rows than `min_frequency` are pooled. The user has asked to leave out the
    columns and parts of dates in `ignore`, and has said of which `kinds` some columns are.
    `keeps_missing` is whether rows with missing cells are encoded.
    """

    def plan(cells: Cells, sign: str | None = None, kind: str | None = None) -> Planned:
        asked = kind or kinds.get(cells.name)
        return _plan_column(cells, min_frequency, ignore, asked, keeps_missing, sign)

    planned = [plan(cells) for cells in columns]
    # Columns that show the decimal sign decide for those that can be read both ways.
    in_texts = [plan for (plan, _), cells in zip(planned, columns, strict=True) if cells.is_text]
    if (sign := _decimal_sign(in_texts)) is not None:
        planned = [
            plan(cells, sign) if cells.is_text else known
            for cells, known in zip(columns, planned, strict=True)
        ]
    alike = _alike_categories(planned) - kinds.keys()
    return [
        plan(cells, sign, "category") if cells.name in alike else known
        for cells, known in zip(columns, planned, strict=True)
    ]


def _decimal_sign(plans: Sequence[ColumnPlan]) -> str | None:
    """Return the decimal sign of numbers in texts, if some columns show it and others do not.

    Three digits after a sign tell nothing: it may be one of thousands.
    """
    forms = [plan.number_format for plan in plans if plan.number_format is not None]
    decimals = [(form.decimal, form.decimals) for form in forms]
    signs = {sign for sign, n_decimals in decimals if n_decimals not in (0, 3)}
    is_doubtful = any(n_decimals in (0, 3) for _, n_decimals in decimals)
    return signs.pop() if len(signs) == 1 and is_doubtful else None


def _alike_categories(columns: Sequence[Planned]) -> set[str]:
    """Return the columns that are categories because another one with such values is one.

    Names that end in the same word for a code, such as winner_id and loser_id, and values of which
    half or more are in both columns say that they hold the same things.
    """
    codes = [(code_word(plan.name), plan, cells) for plan, cells in columns]
    known = [(word, cells) for word, plan, cells in codes if word and plan.kind == "category"]
    return {
        plan.name
        for word, plan, cells in codes
        if plan.kind in ("identifier", "number")
        and any(word == other and _hold_the_same(cells, own) for other, own in known)
    }


def _hold_the_same(cells: Cells, others: Cells) -> bool:
    levels, known = (set(to_levels(each).levels) for each in (cells, others))
    return 2 * len(levels & known) >= min(len(levels), len(known))


def _plan_column(
    cells: Cells,
    min_frequency: float,
    ignore: Collection[str],
    asked: str | None,
    keeps_missing: bool,
    decimal_hint: str | None,
) -> Planned:
    if asked in (None, "ignore"):
        bare = infer_kind(cells, keeps_missing=keeps_missing, decimal_hint=decimal_hint)
    else:
        bare = _asked_plan(cells, cast(Kind, asked))
    if bare.kind == "constant":
        # Numbers and dates have no level.
        is_level = cells.is_text or cells.form == "boolean"
        bare = replace(bare, levels=tuple(to_levels(cells).levels) if is_level else ())
    typed = bare.typed(cells)
    is_ignored = cells.name in ignore or asked == "ignore"
    if is_ignored or bare.kind not in _USED:
        reasons = ["ignored, as asked"] if is_ignored else [bare.note, "ignored"]
        return replace(bare, note="; ".join(filter(None, reasons))), typed
    gaps = keeps_missing and bool(typed.missing.any())
    if bare.kind == "category":
        plan = _plan_levels(bare, typed, min_frequency, gaps=gaps, keeps_missing=keeps_missing)
        return plan, typed
    values = typed.values[typed.has_value]
    plan_values = _plan_dates if bare.kind == "date" else _plan_numbers
    plan = _with_words(plan_values(bare, values), typed, min_frequency, gaps=gaps)
    return plan.without_parts(ignore), typed


def _asked_plan(cells: Cells, kind: Kind) -> ColumnPlan:
    """Return the plan of a column whose kind the user has given.

    Raise ValueError if no cell of the known-normal rows can be read so.
    """
    if kind in ("identifier", "text"):
        return ColumnPlan(cells.name, kind, "read as asked")
    texts = to_levels(cells)
    levels = some_levels(texts)
    plan = ColumnPlan(cells.name, kind)
    if kind == "category":
        plan = replace(plan, is_open=has_open_levels(texts))
    elif kind == "date":
        dates = find_date_format(*levels, is_asked=True) or DateFormat()
        plan = replace(plan, note=dates.note, date_format=None if cells.form == "date" else dates)
    elif kind == "number":
        numbers = (
            find_number_format(*levels, is_asked=True)
            or find_duration_format(cells.name, *levels, is_asked=True)
            or NumberFormat()
        )
        plan = replace(plan, number_format=numbers)
    typed = plan.typed(cells)
    values = typed.values[typed.has_value]
    first = int(np.argmin(cells.missing))
    if not len(values) and not cells.missing.all():
        raise ValueError(
            f"column {cells.name!r} cannot be read as asked ({kind}): row {cells.number(first)} "
            f"has {cells.show(first)}; choose another kind, or another column"
        )
    is_varied = len(np.unique(values)) > 1 or typed.words is not None
    if is_varied or (cells.missing.any() and len(values)):
        return plan
    note = f"always {cells.show(first)}" if len(values) else "no values"
    return ColumnPlan(cells.name, "constant", note)


def _plan_numbers(bare: ColumnPlan, values: NDArray[np.float64]) -> ColumnPlan:
    typical = 2.0 * float(np.median(values / 2.0))  # of halves, so that no sum overflows
    if bare.kind == "boolean":
        typical = float(values.mean() > 0.5)
    return replace(bare, outputs=(bare.name,), typical=typical)


def _plan_dates(bare: ColumnPlan, values: NDArray[np.float64]) -> ColumnPlan:
    first = float(values.min())
    first -= first % DAY
    family = "date" if bare.date_format is None else bare.date_format.family
    outputs = date_outputs(bare.name, values, family)
    cycles = [what for what in ("hour", "weekday") if f"{bare.name} ({what} sine)" in outputs]
    days = [f"days since {show_value('date', first)}"] * (part_name(bare.name, "days") in outputs)
    parts = [f"{' and '.join(cycles)} as sine and cosine"] * bool(cycles)
    return replace(
        bare,
        note="; ".join(filter(None, [", ".join(days + parts), bare.note])),
        outputs=outputs,
        # A date that occurs, not one between two of them.
        typical=float(np.sort(values)[(len(values) - 1) // 2]),
        first=first,
    )


def _with_words(plan: ColumnPlan, typed: Cells, min_frequency: float, *, gaps: bool) -> ColumnPlan:
    """Return a plan with columns for missing cells and for words, if normal rows have them."""
    counts, kept, pooled = _count_levels(typed, typed.words, min_frequency)
    extra = [MISSING] * gaps + [*kept] + [OTHER] * bool(pooled)
    notes = [plan.note]
    if counts:
        n_words, usual = sum(counts.values()), max(counts, key=counts.__getitem__)
        notes.append(f"{n_words} cell{'s' if n_words > 1 else ''} with words such as {usual!r}")
    return replace(
        plan,
        note="; ".join(filter(None, notes)),
        outputs=(*plan.outputs, *(f"{plan.name}={what}" for what in extra)),
        levels=kept,
        pooled=pooled,
        gaps="own" if gaps else "typical",
    )


def _plan_levels(
    bare: ColumnPlan, typed: Cells, min_frequency: float, *, gaps: bool, keeps_missing: bool
) -> ColumnPlan:
    if bare.is_open:
        min_frequency = max(min_frequency, ROWS_PER_LEVEL)
    counts, kept, pooled = _count_levels(typed, typed.values, min_frequency)
    usual = max(counts, key=counts.__getitem__)
    others = [OTHER] if pooled or bare.is_open else []
    columns = [*kept, *others] + [MISSING] * gaps + [UNSEEN] * (not bare.is_open)
    n_missing = int(np.count_nonzero(typed.missing)) if gaps else 0
    most = MISSING if n_missing > counts[usual] else usual
    note = f"{len(counts)} level{'s' if len(counts) > 1 else ''}"
    note += (
        f", of which {len(pooled)} {'is' if len(pooled) == 1 else 'are'} pooled" if pooled else ""
    )
    note += ", with new ones" if bare.is_open else ""
    return replace(
        bare,
        note="; ".join(filter(None, [note, bare.note])),
        outputs=tuple(f"{bare.name}={column}" for column in columns),
        typical=float(columns.index(OTHER if most in pooled else most)),
        levels=kept,
        pooled=pooled,
        gaps="own" if gaps else "unseen" if keeps_missing else "typical",
    )


def _count_levels(
    cells: Cells, codes: NDArray[np.intp] | None, min_frequency: float
) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Return the rows of each level by name, the levels with a column, and those that share one."""
    if codes is None:
        return {}, (), ()
    n_rows = np.bincount(codes[codes >= 0], minlength=len(cells.levels)).tolist()
    counts = dict(sorted(zip(cells.levels, n_rows, strict=True)))
    kept = tuple(level for level, count in counts.items() if count >= min_frequency)
    return counts, kept, tuple(level for level, count in counts.items() if count < min_frequency)
