"""Tables and queries of databases."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qms22._runtime.packages import need
from qms22._runtime.progress import reading_ended, report_reading
from qms22.tables.columns.cells import check_names
from qms22.tables.databases.database import Database
from qms22.tables.databases.database_columns import convert
from qms22.tables.databases.database_drivers import opened
from qms22.tables.databases.database_place import DatabasePlace
from qms22.tables.databases.database_spool import Spool
from qms22.tables.sources.arrow_source import ArrowSource
from qms22.tables.sources.compressed import TableFile

if TYPE_CHECKING:
    import pandas as pd

# Tables that a message names.
_MOST_NAMED = 8


class DatabaseSource(ArrowSource):
    """A table or query of a database.

    The query runs once, when the source is made, and its rows go part by part into a temporary file
    that lives as long as the source. So every pass reads the same rows, whatever others write
    meanwhile, and the table may be larger than memory.

    Parameters
    ----------
    place : DatabasePlace
    """

    def __init__(self, place: DatabasePlace) -> None:
        folder = Path(tempfile.mkdtemp(prefix="qms22-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        spool = Spool(folder)
        with opened(place) as database:
            batches = database.batches(_query(database, place))
            path = spool.write(_checked_and_shown(batches, place, spool))
        super().__init__(TableFile(path))
        self.name = place.name
        self._title = place.short_name or place.database
        self._n_bytes = spool.n_bytes

    @property
    def title(self) -> str:
        """The table or the beginning of the query."""
        return self._title

    @property
    def n_bytes(self) -> int:
        """Size of the values; the file is compressed."""
        return self._n_bytes


def _checked_and_shown(batches: Iterator[Any], place: DatabasePlace, to: Spool) -> Iterator[Any]:
    """Return batches; check that their columns have unique names, and show how far it is."""
    first = next(batches)
    check_names(first.schema.names, place.name)
    yield first
    for batch in batches:
        report_reading(place.short_name or place.database, to.n_bytes)
        yield batch
    reading_ended()


def _query(database: Database, place: DatabasePlace) -> str:
    """Return the query of a place; of a table, or of the only one there is, all its rows."""
    if place.is_query:
        return place.what.strip().rstrip(";")
    tables = database.tables()
    if not place.what and len(tables) == 1:
        return f"SELECT * FROM {next(iter(tables.values()))}"
    match = tables.get(place.what) or _without_case(tables).get(place.what.lower())
    if match is not None:
        return f"SELECT * FROM {match}"
    names = ", ".join(list(tables)[:_MOST_NAMED])
    if len(tables) > _MOST_NAMED:
        names += f" and {len(tables) - _MOST_NAMED} more"
    what = f"has no table {place.what!r}" if place.what else f"has {len(tables)} tables"
    remedy = f"name one of {names} after #" if tables else "it is empty, name another database"
    raise ValueError(f"{place.database} {what}; {remedy}")


def _without_case(tables: dict[str, str]) -> dict[str, str]:
    return {name.lower(): quoted for name, quoted in tables.items()}


def write_database(place: DatabasePlace, parts: Iterable[pd.DataFrame]) -> None:
    """Write the parts of a table into a new table of a database, in one transaction.

    Parameters
    ----------
    place : DatabasePlace
        `what` is the name of the table.
    parts : iterable of DataFrame
        At least one, all with the same columns.

    Raises
    ------
    ValueError
        As in `check_new_table`, or if the table cannot be written.
    """
    check_new_table(place)
    with opened(place, new=True) as database:
        database.write(place.what, _arrow_tables(parts))


def check_new_table(place: DatabasePlace) -> None:
    """Raise ValueError if a table cannot be written because of its name or that of its file."""
    if not place.what or place.is_query:
        raise ValueError(f"{place.name} names no table to write; add #, then a new table's name")
    if place.path is not None and not place.path.exists():
        if not place.path.parent.is_dir():
            raise ValueError(f"{place.name}: the directory {place.path.parent} does not exist")
        return
    with opened(place) as database:
        if place.what.lower() in _without_case(database.tables()):
            raise ValueError(f"{place.database} has a table {place.what!r}; name a new one after #")


def _arrow_tables(parts: Iterable[pd.DataFrame]) -> Iterator[Any]:
    """Return frames as Arrow tables of one schema, in types that databases have."""
    pa = need("pyarrow")
    schema = None
    for part in parts:
        table = pa.Table.from_pandas(part, preserve_index=False)
        if schema is None:
            fields = [(field.name, _column_type(field.type)) for field in table.schema]
            schema = pa.schema(fields)
        columns = [convert(*pair) for pair in zip(table.columns, schema.types, strict=True)]
        yield pa.table(columns, schema=schema)


def _column_type(kind: Any) -> Any:
    pa = need("pyarrow")
    types = pa.types
    if types.is_unsigned_integer(kind):
        return pa.float64() if kind == pa.uint64() else pa.int64()
    if types.is_decimal(kind):
        return pa.float64()
    known = (
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_date,
        types.is_timestamp,
    )
    return kind if any(is_kind(kind) for is_kind in known) else pa.string()
