"""Tables and queries of databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import pyarrow as pa
from pyarrow import types

from qms22._runtime.stages import reading_ended, report_reading
from qms22.tables.columns.cells import check_names
from qms22.tables.databases.database_drivers import Database, opened
from qms22.tables.databases.database_place import DatabasePlace
from qms22.tables.sources.column_types import force_cast
from qms22.tables.sources.file_rows import SpooledRows
from qms22.tables.texts.words import list_some

# Tables that a message names: about a line.
_MOST_NAMED = 8


def read_query(place: DatabasePlace) -> SpooledRows:
    """Read a table or query of a database into a temporary file."""
    with opened(place) as database:
        return SpooledRows(_checked_and_shown(database.batches(_query(database, place)), place))


def _checked_and_shown(
    batches: Iterator[pa.RecordBatch], place: DatabasePlace
) -> Iterator[pa.RecordBatch]:
    """Return batches; check that their columns have unique names, and show how far it is."""
    first = next(batches)
    check_names(first.schema.names, place.name)
    yield first
    n_bytes = first.nbytes
    for batch in batches:
        report_reading(place.short_name or place.database, n_bytes)
        yield batch
        n_bytes += batch.nbytes
    reading_ended()


def _query(database: Database, place: DatabasePlace) -> str:
    """Return the query of a place; of a table, or of the only one there is, all its rows."""
    if place.is_query:
        return place.what.strip().rstrip(";")
    tables = database.tables()
    wanted = place.what or next(iter(tables), "") * (len(tables) == 1)
    if match := _find_table(tables, wanted):
        return f"SELECT * FROM {match}"
    names = list_some(list(tables), _MOST_NAMED)
    what = f"has no table {place.what!r}" if place.what else f"has {len(tables)} tables"
    remedy = f"name one of {names} after #" if tables else "it is empty, name another database"
    raise ValueError(f"{place.database} {what}; {remedy}")


def _find_table(tables: dict[str, str], name: str) -> str | None:
    """Return how a table is written in SQL; case matters where it tells tables apart."""
    without_case = {each.lower(): quoted for each, quoted in tables.items()}
    return tables.get(name) or without_case.get(name.lower())


def write_database(place: DatabasePlace, parts: Iterable[pd.DataFrame]) -> None:
    """Write the parts of a table, at least one, into a new table of a database.

    All is written in one transaction; if that fails, or as in `check_new_table`, raise ValueError.
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
        if _find_table(database.tables(), place.what):
            raise ValueError(f"{place.database} has a table {place.what!r}; name a new one after #")


def _arrow_tables(parts: Iterable[pd.DataFrame]) -> Iterator[pa.Table]:
    """Return frames as Arrow tables of one schema, in types that databases have."""
    schema = None
    for part in parts:
        table = pa.Table.from_pandas(part, preserve_index=False)
        schema = schema or pa.schema(
            [(each.name, _column_type(each.type)) for each in table.schema]
        )
        columns = [force_cast(*pair) for pair in zip(table.columns, schema.types, strict=True)]
        yield pa.table(columns, schema=schema)


def _column_type(kind: pa.DataType) -> pa.DataType:
    if types.is_decimal(kind) or kind == pa.uint64():
        return pa.float64()
    if types.is_unsigned_integer(kind):
        return pa.int64()
    known = (types.is_boolean, types.is_integer, types.is_floating, types.is_date)
    return kind if any(is_of(kind) for is_of in (*known, types.is_timestamp)) else pa.string()
