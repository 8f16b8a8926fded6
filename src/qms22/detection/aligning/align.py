"""Which columns of two tables belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qms22.tables import Table
from qms22.tables.columns.column_names import match_names
from qms22.tables.texts.words import list_quoted, list_some


class AlignedTable(NamedTuple):
    """A table whose columns are called as in another one; `renamed` has new names by old ones.

    The other table lacks the columns `extra`, and this one those in `lacking`.
    """

    table: Table
    renamed: dict[str, str]
    extra: list[str]
    lacking: list[str]
    notes: tuple[str, ...]


def align_table(
    table: Table, names: Sequence[str], other: str, ignore: Sequence[str] = ()
) -> AlignedTable:
    """Rename the columns of a table to `names`, those of another table.

    Either table may have the columns to `ignore` or not. Raise ValueError, with the name of the
    `other` table, if the two have no column in common.
    """
    there, numbered = table.names, [f"x{number + 1}" for number in range(len(names))]
    matched = match_names(there, names)
    notes = []
    renamed = {name: known for name, known in matched.items() if name != known}
    if renamed:
        pairs = list_some([f"{name!r} for {known!r}" for name, known in renamed.items()])
        notes.append(f"{table.name}: columns are matched with those of {other}: {pairs}")
    # Of one table, the columns are called as those of a file without a header.
    elif not matched and len(there) == len(names) and numbered in (there, list(names)):
        matched = renamed = dict(zip(there, names, strict=True))
        notes.append(f"columns of {table.name} and {other} are matched by their order")
    known = set(matched.values())
    extra = [name for name in there if name not in matched and name not in ignore]
    lacking = [name for name in names if name not in known and name not in ignore]
    if not matched:
        raise ValueError(
            f"{table.name} and {other} have no column in common ({list_quoted(there)}, but "
            f"{list_quoted(names)}); give tables with the same columns"
        )
    return AlignedTable(table.renamed(renamed), renamed, extra, lacking, tuple(notes))


def left_out(columns: Sequence[str], table: str, other: str) -> list[str]:
    """Return a note that columns of a table are left out, as the other one lacks them."""
    if not columns:
        return []
    what, be = ("column", "is") if len(columns) == 1 else ("columns", "are")
    names = list_quoted(columns)
    return [f"{what} {names} of {table} {be} left out, as {other} has none of that name"]
