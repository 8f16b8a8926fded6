"""The tables that commands read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from qms22.cli.shared import explained, say
from qms22.tables.databases.database_place import DatabasePlace

STANDARD_INPUT = "-"


def input_files(places: Iterable[str | DatabasePlace | None]) -> list[Path | None]:
    """Return the files that commands read, so that none of them is overwritten.

    Raise UsageError if a pattern matches no file, or if standard input is named twice.
    """
    from qms22.tables.sources.found_files import find_files

    named = [place for place in places if isinstance(place, str)]
    if named.count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input can be read only once; give '-' for one table only")
    files: list[Path | None] = []
    with explained():
        for place in named:
            if place != STANDARD_INPUT and "://" not in place:
                files += find_files(place).paths
    return files


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
    if place == STANDARD_INPUT or "://" in place:
        return set()
    found = find_files(place)
    inner = "" if found.inner is None else f"#{found.inner}"
    return {f"{path.resolve()}{inner}" for path in found.paths}


def show_roles(normal: str, batch: str) -> None:
    """Print which of several files are known to be normal, and which is searched."""
    say(f"known-normal: {normal}; searched: {batch}")
