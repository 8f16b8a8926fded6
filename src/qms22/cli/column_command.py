"""Columns that options name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from qms22.tables.columns.column_names import find_column
from qms22.tables.texts.words import list_some

if TYPE_CHECKING:
    from qms22.tables import Table


def parse_kinds(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> dict[str, str] | None:
    """Return the kinds of columns that are given as COLUMN=KIND."""
    pairs = [value.rpartition("=") for value in values]
    for (column, _sign, _kind), value in zip(pairs, values, strict=True):
        if not column:
            raise click.UsageError(f"--as {value}: give a column and a kind, such as zip=category")
    return {column: kind for column, _sign, kind in pairs} or None


def match_columns(batch: Table, label: str | None, options: dict[str, Any]) -> str | None:
    """Write names in the options as the batch does; return the label."""

    def find(option: str, name: str) -> str:
        found = find_column(name, batch.names)
        if found is None:
            there = list_some([repr(each) for each in batch.names])
            raise click.UsageError(
                f"{option} {name}: {batch.name} has no such column; its columns are {there}"
            )
        return found

    if options["id"] is not None:
        options["id"] = find("--id", options["id"])
    options["ignore"] = tuple(find("--ignore", name) for name in options["ignore"])
    options["kinds"] = {
        find("--as", name): kind for name, kind in (options["kinds"] or {}).items()
    } or None
    return None if label is None else find("--label", label)
