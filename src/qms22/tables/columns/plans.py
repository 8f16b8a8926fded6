"""All columns of a table together: their matrix, and what may be missing in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, count_rows
from qms22.tables.columns.kinds import code_word
from qms22.tables.columns.plan import ColumnPlan
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.words import list_quoted, list_some


class LazyMatrix:
    """The matrix of a table; rows are encoded when they are read, as ``matrix[rows]``.

    `plans` are those of the columns that are used, `cells` the results of `ColumnPlan.typed`. A
    column that is not there has the typical value: it is the same in all rows, so that it cannot
    make one of them more suspicious than another. `moves` has slopes and offsets by which numbers
    are encoded; see `TabularEncoder._set_moves`.
    """

    def __init__(
        self,
        plans: Sequence[ColumnPlan],
        cells: Mapping[str, Cells],
        moves: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._plans = plans
        self._cells = cells
        self._moves = moves or {}
        self.shape = count_rows(cells), sum(len(plan.outputs) for plan in plans)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> NDArray[np.float64]:
        n_rows = len(range(len(self))[rows]) if isinstance(rows, slice) else len(rows)
        matrix = np.empty((n_rows, self.shape[1]))
        for plan, out in _blocks(self._plans, matrix):
            if plan.name not in self._cells:
                plan.encode_typical(out)
                continue
            cells = self._cells[plan.name].take(rows)
            if plan.name in self._moves:
                slope, offset = self._moves[plan.name]
                cells = replace(cells, values=slope * cells.values + offset)
            plan.encode(cells, out)
        return matrix


def typical_row(plans: Sequence[ColumnPlan]) -> NDArray[np.float64]:
    """Return a row of the matrix with the typical value of each column."""
    row = np.empty((1, sum(len(plan.outputs) for plan in plans)))
    for plan, out in _blocks(plans, row):
        plan.encode_typical(out)
    return row.ravel()


def decimal_sign(plans: Iterable[ColumnPlan], columns: Iterable[Cells]) -> str | None:
    """Return the decimal sign of numbers in texts, if some columns show it and others do not.

    Three digits after a sign tell nothing: it may be one of thousands.
    """
    pairs = zip(plans, columns, strict=True)
    forms = [plan.number_format for plan, cells in pairs if cells.is_text]
    decimals = [(form.decimal, form.decimals) for form in forms if form is not None]
    signs = {sign for sign, n_decimals in decimals if n_decimals not in (0, 3)}
    is_doubtful = any(n_decimals in (0, 3) for _, n_decimals in decimals)
    return signs.pop() if len(signs) == 1 and is_doubtful else None


def alike_categories(plans: Iterable[ColumnPlan], columns: Iterable[Cells]) -> set[str]:
    """Return the columns that are categories because another one with such values is one.

    Names that end in the same word for a code, such as winner_id and loser_id, and values of which
    half or more are in both columns say that they hold the same things.
    """
    by_word: dict[str, list[tuple[ColumnPlan, Cells]]] = {}
    for plan, cells in zip(plans, columns, strict=True):
        word = code_word(plan.name)
        if word is not None and plan.kind in ("category", "identifier", "number"):
            by_word.setdefault(word, []).append((plan, cells))
    found: set[str] = set()
    for pairs in by_word.values():
        known = [cells for plan, cells in pairs if plan.kind == "category"]
        for plan, cells in pairs:
            if plan.kind != "category" and any(_hold_the_same(cells, own) for own in known):
                found.add(plan.name)
    return found


def _hold_the_same(cells: Cells, others: Cells) -> bool:
    levels, known = (set(to_levels(each).levels) for each in (cells, others))
    return 2 * len(levels & known) >= min(len(levels), len(known))


def complete_rows(columns: Iterable[Cells]) -> NDArray[np.intp]:
    """Return the positions of the rows without missing cells."""
    return np.flatnonzero(~np.logical_or.reduce([cells.missing for cells in columns]))


def check_missing(columns: Iterable[Cells], remedy: str) -> None:
    """Raise ValueError if any cell is missing."""
    _check("missing (NaN)", [(cells, cells.missing) for cells in columns], remedy)


def check_infinite(columns: Iterable[Cells]) -> None:
    """Raise ValueError if any number is infinite, which typed cells have as a word."""
    pairs = []
    for cells in columns:
        infinite = [at for at, word in enumerate(cells.levels) if word in ("inf", "-inf")]
        if cells.words is not None and infinite:
            pairs.append((cells, np.isin(cells.words, infinite)))
    _check("infinite (inf)", pairs, "correct or remove them")


def check_not_empty(columns: Sequence[Cells]) -> None:
    """Raise ValueError if a table has no rows or no columns."""
    n_rows = len(columns[0].values) if columns else 0
    if not n_rows:
        raise ValueError(
            f"the table has {n_rows} rows of {len(columns)} columns; give at least one of each"
        )


class NoColumnError(ValueError):
    """A table without columns that are of use."""


def check_any_used(plans: Sequence[ColumnPlan], n_rows: int) -> None:
    """Raise NoColumnError if no column is used."""
    if not any(plan.outputs for plan in plans):
        found = ", ".join(f"{plan.name!r} is {plan.kind}" for plan in plans[:5])
        raise NoColumnError(
            f"no column of the {n_rows} normal rows (n_samples={n_rows}) is of use ({found}"
            f"{', …' if len(plans) > 5 else ''}); give more rows, or columns that vary"
        )


def check_columns(plans: Iterable[ColumnPlan], names: Iterable[str]) -> None:
    """Raise ValueError if a table lacks columns that are used; others do not matter."""
    there = set(names)
    plans = tuple(plans)
    lacking = sorted(plan.name for plan in plans if plan.outputs and plan.name not in there)
    if lacking:
        others = sorted(there - {plan.name for plan in plans})
        adds = f" and adds {quoted(others)}" if others else ""
        raise ValueError(
            f"the table lacks {quoted(lacking)}{adds} in comparison with the normal table; give "
            "both the same columns or ignore those"
        )


def quoted(names: list[str]) -> str:
    """Return the names of columns for a message."""
    return f"column{'s' if len(names) > 1 else ''} {list_quoted(names)}"


def _blocks(
    plans: Sequence[ColumnPlan], matrix: NDArray[np.float64]
) -> Iterator[tuple[ColumnPlan, NDArray[np.float64]]]:
    """Yield each plan with its columns of the matrix."""
    at = 0
    for plan in plans:
        yield plan, matrix[:, at : at + len(plan.outputs)]
        at += len(plan.outputs)


def _check(what: str, columns: list[tuple[Cells, NDArray[np.bool_]]], remedy: str) -> None:
    found = [
        f"{cells.name!r} ({int(bad.sum())}, first at row {cells.number(int(np.argmax(bad)))})"
        for cells, bad in columns
        if bad.any()
    ]
    if found:
        raise ValueError(
            f"{len(found)} column{'s have' if len(found) > 1 else ' has'} {what} values: "
            f"{list_some(found)}; {remedy}"
        )
