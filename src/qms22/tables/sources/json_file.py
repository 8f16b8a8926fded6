"""JSON documents and JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from qms22.tables.columns.python_values import arrow_column, column_type, value_types
from qms22.tables.sources.compressed import TableFile, fault
from qms22.tables.sources.file_rows import SpooledRows
from qms22.tables.sources.stored_rows import Content, EmptyTableError, MemoryRows
from qms22.tables.sources.text_encoding import Utf8Text, read_text, read_whole_text
from qms22.tables.texts.words import list_some

# Records to convert at once.
_RECORDS = 8192

Record = dict[str, object]


def read_json_lines(file: TableFile) -> Content:
    """Read one object per line, which is one row.

    Objects inside of an object become columns such as ``a.b``. As the type of a column depends on
    all of its values, a large file is read once more before its rows go into a temporary one.
    """
    found: dict[str, frozenset[pa.DataType]] = {}
    kept: list[list[Record]] = []
    text, is_large = read_text(file), file.is_large  # asked once, as the free memory changes
    for records in _in_batches(_records(text, file.path)):
        for name, values in _columns(records).items():
            found[name] = found.get(name, frozenset()) | value_types(values)
        if not is_large or not kept:
            kept.append(records)
    if not kept:
        raise EmptyTableError(f"{file.path} has no records; give a file with at least one")
    types = {name: column_type(each) for name, each in found.items()}
    if is_large:
        again = _in_batches(_records(text, file.path))
        return Content(SpooledRows(_arrow_batches(again, types)))
    return Content(MemoryRows(pa.Table.from_batches(list(_arrow_batches(kept, types)))))


def _arrow_batches(
    batches: Iterable[list[Record]], types: dict[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    for records in batches:
        yield pa.record_batch(
            {
                name: arrow_column([record.get(name) for record in records], kind)
                for name, kind in types.items()
            }
        )


def _records(text: Utf8Text, path: Path) -> Iterator[Record]:
    for number, line in enumerate(text.open(newline="\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.removesuffix("\n"))
        except (ValueError, RecursionError) as error:
            what = f"{path}, line {number}: this is not JSON"
            raise fault(what, error, "correct that line") from error
        if not isinstance(record, dict):
            raise ValueError(
                f'{path}, line {number}: expected an object such as {{"a": 1}}, got '
                f"{line.strip()[:40]!r}; write one object per line"
            )
        yield flatten(record)


def read_json(file: TableFile) -> Content:
    """Read a JSON document.

    A list of objects, an object with one such list, ``{"columns": […], "data": [[…], …]}``, or an
    object with a list of values for each column.
    """
    path = str(file.path)
    text = read_whole_text(file).open(newline="").read()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        remedy = "correct the file, or get it again if it is cut off"
        raise fault(f"{path} is not valid JSON", error, remedy) from error
    columns, notes = _find_columns(document, path)
    if not any(columns.values()):
        raise EmptyTableError(f"{path} has no records; give a file with at least one")
    arrays = {
        name: arrow_column(values, column_type(value_types(values)))
        for name, values in columns.items()
    }
    return Content(MemoryRows(pa.table(arrays)), notes)


def _find_columns(document: Any, path: str) -> tuple[dict[str, list[object]], tuple[str, ...]]:
    """Return the values of each column, and which part of the document has them."""
    if isinstance(document, list):
        return _columns(_check_records(document, "", path)), ()
    lists = {}
    if isinstance(document, dict):
        if {"columns", "data"} <= document.keys():
            return _from_split(document["columns"], document["data"], path), ()
        lists = {key: each for key, each in document.items() if isinstance(each, list)}
    records = [key for key, each in lists.items() if each and isinstance(each[0], dict)]
    if len(records) == 1:
        key = records[0]
        rows = _check_records(lists[key], f" in {key!r}", path)
        notes = (f"{path}: the rows are the list {key!r}",) if len(document) > 1 else ()
        return _columns(rows), notes
    lengths = {len(each) for each in lists.values()}
    if len(lengths) == 1 and not records and len(lists) == len(document):
        return lists, ()
    several = f" (it has the lists {list_some(sorted(records))})" if records else ""
    raise ValueError(
        f"{path} is JSON but not a table{several}; give a list of objects, one per row"
    )


def _check_records(records: list[Any], where: str, path: str) -> list[Record]:
    for at, record in enumerate(records):
        if not isinstance(record, dict):
            raise ValueError(
                f"{path}: item {at}{where} is {json.dumps(record)[:40]}, not an object; "
                "give a list of objects, one per row"
            )
    return [flatten(record) for record in records]


def _from_split(names: Any, rows: Any, path: str) -> dict[str, list[object]]:
    is_table = isinstance(names, list) and isinstance(rows, list)
    wrong = [at for at, row in enumerate(rows) if not isinstance(row, list)] if is_table else []
    wrong = wrong or [at for at, row in enumerate(rows) if is_table and len(row) != len(names)]
    if not is_table or wrong:
        where = f"row {wrong[0]} of 'data' is not" if wrong else "'columns' and 'data' are not"
        raise ValueError(f"{path}: {where} a list as long as 'columns'; correct the file")
    unique = [name if isinstance(name, str) else json.dumps(name) for name in names]
    return {name: [row[at] for row in rows] for at, name in enumerate(unique)}


def flatten(record: Record, before: str = "") -> Record:
    """Return a record whose inner objects are columns of their own, such as ``a.b``."""
    if not any(type(value) is dict for value in record.values()) and not before:
        return record
    flat: Record = {}
    for key, value in record.items():
        if type(value) is dict:
            flat |= flatten(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat


def _columns(records: Sequence[Record]) -> dict[str, list[object]]:
    """Return the values of each column; None where a record has no such key."""
    names = dict.fromkeys(key for record in records for key in record)
    return {name: [record.get(name) for record in records] for name in names}


def _in_batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    remaining = iter(records)
    while batch := list(islice(remaining, _RECORDS)):
        yield batch
