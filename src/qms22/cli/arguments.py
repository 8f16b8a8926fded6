"""The tables that commands read, and the columns that options name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qms22.cli.shared import REDIRECTED, explained
from qms22.tables.databases.database_place import DatabasePlace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qms22.tables import Table

STANDARD_INPUT = "-"


def input_files(places: Sequence[str | DatabasePlace]) -> list[Path | None]:
    """Return the files that commands read, so that none of them is overwritten.

    Raise UsageError if a pattern matches no file, or if standard input is named twice.
    """
    from qms22.tables.sources.found_files import find_files

    named = [place for place in places if isinstance(place, str)]
    if named.count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input can be read only once; give '-' for one table only")
    files = [place.path for place in places if isinstance(place, DatabasePlace)]
    with explained():
        for place in named:
            files += [REDIRECTED] if place == STANDARD_INPUT else find_files(place).paths
    return files


def check_folders(
    places: Iterable[str | DatabasePlace], outputs: Mapping[str, Path | DatabasePlace | None]
) -> None:
    """Raise UsageError if the next run would read an output as part of an input.

    It would be in a directory, or match a pattern, that is an input.
    """
    from qms22.tables.sources.found_files import is_found

    written = {option: path for option, path in outputs.items() if isinstance(path, Path)}
    for place in places:
        for option, path in written.items():
            if isinstance(place, str) and is_found(path, place):
                raise click.UsageError(
                    f"{option} {path} would be part of the input {place} in the next run; write "
                    "it elsewhere"
                )


def check_roles(tables: Sequence[str | DatabasePlace]) -> None:
    """Raise UsageError if the table to search, the last one, is known-normal as well.

    Nothing in it would be unlike the known-normal rows.
    """
    *normal, batch = tables
    searched = _contents(batch)
    for place in normal:
        if both := sorted(map(str, _contents(place) & searched)):
            raise click.UsageError(
                f"{both[0]} is given both as known-normal and as the table to search; give two "
                "different tables"
            )


def _contents(place: str | DatabasePlace) -> set[str | DatabasePlace]:
    """Return the files, sheets or tables that a place stands for, each in one spelling."""
    from qms22.tables.sources.found_files import find_files

    if isinstance(place, DatabasePlace):
        return {place}
    if place == STANDARD_INPUT:
        return set()
    found = find_files(place)
    inner = "" if found.inner is None else f"#{found.inner}"
    return {f"{os.path.realpath(path)}{inner}" for path in found.paths}


def read_tables(
    tables: Sequence[str | DatabasePlace], marker: str | None, normal_value: str | None
) -> tuple[Table, Table, list[str]]:
    """Open the known-normal table and the batch, the last one; return them and their titles.

    With a marker, both are parts of one table.
    """
    from qms22.tables import open_table, read_mixed
    from qms22.tables.sources.frame_table import FrameTable

    source = open_table(tables[-1])
    if marker is None:
        normal = open_table(tables[:-1])
        return normal, source, [normal.title, source.title]
    parts = [
        FrameTable(part, source.name, source.notes)
        for part in read_mixed(source, marker, normal=normal_value)
    ]
    for part in parts:
        part.files = source.files
    return parts[0], parts[1], [source.title]


def parse_kinds(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> dict[str, str] | None:
    """Return the kinds of columns that are given as COLUMN=KIND."""
    pairs = [value.rpartition("=") for value in values]
    for (column, _sign, _kind), value in zip(pairs, values, strict=True):
        if not column or "://" in column:
            raise click.UsageError(f"--as {value}: give a column and a kind, such as zip=category")
    return {column: kind for column, _sign, kind in pairs} or None


def read_truth(source: Table, label: str, outlier: str | None) -> tuple[NDArray[np.bool_], str]:
    """Return which rows of a table are outliers by their labels, and the name of the column."""
    import numpy as np

    from qms22.detection.rows import check_column
    from qms22.tables.columns.typed import to_levels
    from qms22.tables.marker import outlier_labels

    label = check_column(source, "label", label, "true labels") or label
    cells = to_levels(source.columns([label])[label])
    if n_missing := int(np.count_nonzero(cells.missing)):
        lack = "1 row has" if n_missing == 1 else f"{n_missing:,} rows have"
        raise click.UsageError(f"--label {label}: {lack} no label; fill in every row")
    codes, places = np.unique(cells.values, return_inverse=True)
    remedy = "name another column, or give the value of outliers with --outlier"
    where = f"--label {label}: the column"
    is_outlier = outlier_labels(np.array(cells.levels)[codes], outlier, where, remedy)
    return is_outlier[places], label
