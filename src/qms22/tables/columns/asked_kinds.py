"""What the user asks of an encoder: kinds of columns, and its other parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qms22._runtime.validation import check_choice, is_count, is_number
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.kinds import has_open_levels, some_levels
from qms22.tables.columns.plan import ColumnPlan, Kind
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.date_format import DateFormat, find_date_format
from qms22.tables.texts.number_format import NumberFormat, find_duration_format, find_number_format
from qms22.tables.texts.words import list_quoted

# What the user can ask for.
_ASKED = ("number", "category", "date", "boolean", "text", "ignore", "identifier")


def check_kind_words(kinds: Mapping[str, str] | None) -> None:
    """Raise ValueError if kinds are not given by column, or one is not known."""
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


def check_kinds(kinds: Mapping[str, str] | None, names: Collection[str]) -> None:
    """Raise ValueError if a kind is not known, or a column is not there."""
    check_kind_words(kinds)
    for name, kind in (kinds or {}).items():
        if name not in names:
            there = list_quoted(names)
            raise ValueError(
                f"there is no column {name!r} to read as {kind}; the columns are {there}"
            )


def asked_plan(cells: Cells, kind: Kind) -> ColumnPlan:
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


def check_parameters(ignore: Sequence[str], missing: str, min_frequency: float) -> None:
    """Raise ValueError if a parameter makes no sense, whatever the table is."""
    check_ignore(ignore)
    check_way_of_missing(missing)
    if not (
        is_number(min_frequency)
        and min_frequency >= 0
        and (min_frequency < 1 or is_count(min_frequency))
    ):
        raise ValueError(
            "min_frequency must be a share in [0, 1) or a whole number of rows; got "
            f"{min_frequency!r}"
        )


def check_ignore(ignore: Sequence[str | int]) -> None:
    """Raise ValueError if columns to ignore are not a sequence."""
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise ValueError(f"ignore must be a sequence of columns; write [{ignore!r}]")


def check_way_of_missing(missing: str) -> None:
    """Raise ValueError if it is not known what to do with missing values."""
    check_choice("missing", missing, ("impute", "drop", "error"))


def check_array_like(table: Any) -> None:
    """Raise ValueError for a list of dicts, all of which scikit-learn's message would print."""
    if isinstance(table, list | tuple) and any(isinstance(row, Mapping) for row in table[:1]):
        raise ValueError(
            "a table must be a data frame or an array; got a list of dicts; make one with "
            "pandas.DataFrame"
        )
