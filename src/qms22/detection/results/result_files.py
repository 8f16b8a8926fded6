"""Results in files (CSV, Parquet, JSON, JSON Lines, Excel) and databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qms22._runtime.files import atomic_path
from qms22.detection.results.csv_text import ROWS_AT_ONCE, csv_lines
from qms22.detection.results.result_data import column_values, plain
from qms22.detection.results.result_workbook import Remarks, write_workbook
from qms22.tables.databases.database_place import DatabasePlace, find_database

# A file, or a new table of a database.
Target = str | PathLike[str] | DatabasePlace


def write_tables(
    tables: Iterable[pd.DataFrame],
    target: Target,
    remarks: Remarks | None = None,
    lines: Iterable[str] | None = None,
) -> None:
    """Write the parts of a table, at least one and all with the same columns, into one table.

    A workbook also gets the remarks, and a .csv file has the lines, if there are such.
    """
    if not isinstance(target, DatabasePlace):
        target = find_database(target, new=True) or Path(target)
    if isinstance(target, DatabasePlace):
        from qms22.tables.databases.database_source import write_database

        return write_database(target, tables)
    writers: dict[str, Callable[[Iterable[pd.DataFrame], Path], None]] = {
        ".csv": partial(_write_csv, lines=lines),
        ".parquet": _write_parquet,
        ".json": _write_json,
        ".jsonl": _write_json_lines,
        ".xlsx": partial(write_workbook, remarks=remarks),
    }
    write = writers.get(target.suffix.lower())
    if write is None:
        raise ValueError(f"{target} must end in {', '.join(list(writers)[:-1])} or .xlsx")
    with atomic_path(target) as temporary:
        write(tables, temporary)


def _write_parquet(tables: Iterable[pd.DataFrame], path: Path) -> None:
    parts = iter(tables)
    first = pa.Table.from_pandas(next(parts), preserve_index=False)
    # pyarrow opens only files whose names are UTF-8.
    with path.open("wb") as file, pq.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(pa.Table.from_pandas(part, first.schema, preserve_index=False))


def _write_json(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for at, record in enumerate(_json_records(tables)):
            file.write(f"{',' * (at > 0)}\n{record}")
        file.write("\n]\n")


def _write_json_lines(tables: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(record + "\n" for record in _json_records(tables))


def _json_records(tables: Iterable[pd.DataFrame]) -> Iterator[str]:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for table in tables:
        names = [str(name) for name in table.columns]
        for first in range(0, len(table), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            columns = [_json_values(table.iloc[rows, at]) for at in range(len(names))]
            for row in zip(*columns, strict=True):
                yield encode(dict(zip(names, row, strict=True)))


def _write_csv(tables: Iterable[pd.DataFrame], path: Path, lines: Iterable[str] | None) -> None:
    parts = (csv_lines(table, header=at == 0) for at, table in enumerate(tables))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(chain.from_iterable(parts) if lines is None else lines)


def _json_values(column: pd.Series) -> list[Any]:
    """Return the values of a column as JSON has them.

    pandas would round numbers, and write dates as milliseconds.
    """
    values = column_values(column)
    is_plain = column.dtype.kind in "iub" and not column.hasnans
    return values if is_plain else [plain(value) for value in values]
