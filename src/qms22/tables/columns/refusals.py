"""What an encoder refuses: parameters, tables without columns of use, and missing cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.validation import check_choice, is_count, is_number
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.plan import ColumnPlan
from qms22.tables.texts.words import list_quoted, list_some

# What the user can ask for.
_ASKED = ("number", "category", "date", "boolean", "text", "ignore", "identifier")


def check_parameters(
    ignore: Sequence[str | int],
    missing: str,
    kinds: Mapping[str, str] | None,
    min_frequency: float = 0,
) -> None:
    """Raise ValueError if a parameter of an encoder makes no sense, whatever the table is."""
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise ValueError(f"ignore must be a sequence of columns; write [{ignore!r}]")
    check_choice("missing", missing, ("impute", "drop", "error"))
    if not isinstance(kinds, Mapping | None):
        raise ValueError(
            f"kinds must have a kind for each column, such as {{'zip': 'category'}}; got {kinds!r}"
        )
    for name, kind in (kinds or {}).items():
        if kind not in _ASKED:
            known = ", ".join(_ASKED[:6])
            raise ValueError(
                f"column {name!r} cannot be read as {kind!r}; give one of the kinds {known}"
            )
    is_share = is_number(min_frequency) and 0 <= min_frequency < 1
    if not is_share and not (is_count(min_frequency) and min_frequency >= 0):
        raise ValueError(
            "min_frequency must be a share in [0, 1) or a whole number of rows; got "
            f"{min_frequency!r}"
        )


def check_kinds(kinds: Mapping[str, str], names: Collection[str]) -> None:
    """Raise ValueError if a column whose kind is given is not there."""
    for name, kind in kinds.items():
        if name not in names:
            raise ValueError(
                f"there is no column {name!r} to read as {kind}; the columns are "
                f"{list_quoted(names)}"
            )


def check_array_like(table: Any) -> None:
    """Raise ValueError for a list of dicts, all of which scikit-learn's message would print."""
    if isinstance(table, list | tuple) and any(isinstance(row, Mapping) for row in table[:1]):
        raise ValueError(
            "a table must be a data frame or an array; got a list of dicts; make one with "
            "pandas.DataFrame"
        )


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


def check_columns(plans: Collection[ColumnPlan], names: Iterable[str]) -> None:
    """Raise ValueError if a table lacks columns that are used; others do not matter."""
    there = set(names)
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


def check_cells(columns: Collection[Cells], missing: str) -> None:
    """Raise ValueError if columns have cells to refuse; `missing` is the encoder's parameter."""
    if missing == "impute":
        return
    remedy = "transform only the rows that usable_rows returns"
    if missing == "error":
        remedy = "fill them in, or let them be imputed or dropped"
    _check("missing (NaN)", [(cells, cells.missing) for cells in columns], remedy)
    if missing == "error":
        # Typed cells have infinite numbers as words.
        pairs = [(each, each.words) for each in columns if each.words is not None]
        infinite = [
            (each, np.append([word in ("inf", "-inf") for word in each.levels], False)[words])
            for each, words in pairs
        ]
        _check("infinite (inf)", infinite, "correct or remove them")


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
