"""How to encode a column, decided from the known-normal rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.asked_kinds import asked_plan
from qms22.tables.columns.cells import Cells, show_value
from qms22.tables.columns.date_parts import DAY, date_outputs, part_name
from qms22.tables.columns.kinds import ROWS_PER_LEVEL, infer_kind
from qms22.tables.columns.plan import MISSING, OTHER, UNSEEN, ColumnPlan, Kind
from qms22.tables.columns.typed import to_levels

USED: frozenset[Kind] = frozenset({"number", "boolean", "category", "date"})


def plan_column(
    cells: Cells,
    min_frequency: float,
    *,
    ignore: Collection[str] = (),
    asked: str | None = None,
    keeps_missing: bool = True,
    decimal_hint: str | None = None,
) -> tuple[ColumnPlan, Cells]:
    """Decide from the normal rows how to encode a column, and return it converted.

    Levels in fewer rows than `min_frequency` are pooled. The user has asked to leave out the
    columns and parts of dates in `ignore`, and may have `asked` for a kind.
    `keeps_missing` is whether rows with missing cells are encoded, `decimal_hint` the decimal sign
    of other columns.
    """
    if asked in (None, "ignore"):
        bare = infer_kind(cells, keeps_missing=keeps_missing, decimal_hint=decimal_hint)
    else:
        bare = asked_plan(cells, cast(Kind, asked))
    if bare.kind == "constant":
        # Numbers and dates have no level.
        is_level = cells.is_text or cells.form == "boolean"
        bare = replace(bare, levels=tuple(to_levels(cells).levels) if is_level else ())
    typed = bare.typed(cells)
    is_ignored = cells.name in ignore or asked == "ignore"
    if is_ignored or bare.kind not in USED:
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
    counts = _count_levels(typed, typed.words)
    kept, pooled = _split_levels(counts, min_frequency)
    extra = [MISSING] * gaps + [*kept] + [OTHER] * bool(pooled)
    notes = [plan.note]
    if counts:
        n_words = sum(counts.values())
        notes.append(
            f"{n_words} cell{'s' if n_words > 1 else ''} with words such as {_first(counts)!r}"
        )
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
    counts = _count_levels(typed, typed.values)
    if bare.is_open:
        min_frequency = max(min_frequency, ROWS_PER_LEVEL)
    kept, pooled = _split_levels(counts, min_frequency)
    others = [OTHER] if pooled or bare.is_open else []
    columns = [*kept, *others] + [MISSING] * gaps + [UNSEEN] * (not bare.is_open)
    n_missing = int(np.count_nonzero(typed.missing)) if gaps else 0
    most = MISSING if n_missing > max(counts.values()) else _first(counts)
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


def _count_levels(cells: Cells, codes: NDArray[np.intp] | None) -> dict[str, int]:
    """Count the rows of each level in alphabetical order; `codes` are positions of levels."""
    if codes is None:
        return {}
    counts = np.bincount(codes[codes >= 0], minlength=len(cells.levels)).tolist()
    return dict(sorted(zip(cells.levels, counts, strict=True)))


def _split_levels(
    counts: dict[str, int], min_frequency: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the levels with a column each, and those that share one."""
    kept = tuple(level for level, count in counts.items() if count >= min_frequency)
    return kept, tuple(level for level, count in counts.items() if count < min_frequency)


def _first(counts: dict[str, int]) -> str:
    """Return the most frequent level; of equally frequent ones, the first."""
    return max(counts, key=lambda level: counts[level])
