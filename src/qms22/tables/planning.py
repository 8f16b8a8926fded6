"""How to encode a column, decided from the known-normal rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qms22.tables.cells import Cells, show_value
from qms22.tables.date_parts import DAY, date_outputs
from qms22.tables.kinds import Kind, infer_kind
from qms22.tables.plan import MISSING, OTHER, UNSEEN, ColumnPlan

USED: frozenset[Kind] = frozenset({"numeric", "boolean", "categorical", "date"})


def plan_column(
    cells: Cells,
    min_frequency: float,
    *,
    ignore: Collection[str] = (),
    keeps_missing: bool = True,
) -> ColumnPlan:
    """Decide from the normal rows how to encode a column.

    Parameters
    ----------
    cells : Cells
    min_frequency : float
        Levels in fewer rows than this are pooled.
    ignore : collection of str
        Columns and parts of dates that the user has asked to leave out.
    keeps_missing : bool
        Whether rows with missing cells are encoded.
    """
    verdict = infer_kind(cells)
    bare = ColumnPlan(cells.name, verdict.kind, verdict.note, verdict.date_format)
    is_ignored = cells.name in ignore
    if is_ignored or verdict.kind not in USED:
        reasons = ["ignored, as asked"] if is_ignored else [verdict.note, "ignored"]
        return replace(bare, note="; ".join(filter(None, reasons)))
    typed = bare.typed(cells)
    gaps = keeps_missing and bool(typed.missing.any())
    if verdict.kind == "categorical":
        return _plan_levels(bare, typed, min_frequency, gaps=gaps, keeps_missing=keeps_missing)
    values = typed.values[typed.has_value]
    plan = _plan_dates(bare, values) if verdict.kind == "date" else _plan_numbers(bare, values)
    return _with_words(plan, typed, min_frequency, gaps=gaps).without_parts(ignore)


def _plan_numbers(bare: ColumnPlan, values: NDArray[np.float64]) -> ColumnPlan:
    typical = float(np.median(values))
    if bare.kind == "boolean":
        typical = float(values.mean() > 0.5)
    return replace(bare, outputs=(bare.name,), typical=typical)


def _plan_dates(bare: ColumnPlan, values: NDArray[np.float64]) -> ColumnPlan:
    first = float(values.min())
    first -= first % DAY
    outputs = date_outputs(bare.name, values)
    cycles = [what for what in ("hour", "weekday") if f"{bare.name} ({what} sine)" in outputs]
    note = f"days since {show_value('date', first)}"
    note += f", {' and '.join(cycles)} as sine and cosine" if cycles else ""
    return replace(
        bare,
        note="; ".join(filter(None, [note, bare.note])),
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
    kept, pooled = _split_levels(counts, min_frequency)
    columns = [*kept] + [OTHER] * bool(pooled) + [MISSING] * gaps + [UNSEEN]
    most = _first(counts)
    note = f"{len(counts)} levels" + (f", of which {len(pooled)} are pooled" if pooled else "")
    return replace(
        bare,
        note="; ".join(filter(None, [note, bare.note])),
        outputs=tuple(f"{bare.name}={column}" for column in columns),
        typical=float(kept.index(most) if most in kept else len(kept)),
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
