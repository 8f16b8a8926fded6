"""Formats of files."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from case import Case, Layout, text_file
from orders import Orders, plain

TITLE = {False: "normal", True: "batch"}


def frame_of(table: Orders) -> pd.DataFrame:
    """Return a table with its values."""
    return pd.DataFrame(dict(zip(table.header, table.columns.values(), strict=True)))


def binary_file(suffix: str, write: Callable[[pd.DataFrame, Path], Any]) -> Layout:
    """Return a layout: a file that a function writes."""

    def layout(table: Orders, is_batch: bool) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{TITLE[is_batch]}.{suffix}")
            write(frame_of(table), path)
            return {path.name: path.read_bytes()}

    return layout


def _rows(table: Orders) -> list[dict[str, Any]]:
    names = table.header
    values = [
        [plain(value) if hasattr(value, "year") else value for value in column]
        for column in table.columns.values()
    ]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _json_lines(table: Orders, is_batch: bool) -> dict[str, bytes]:
    lines = [json.dumps(row) for row in _rows(table)]
    return {f"{TITLE[is_batch]}.jsonl": "\n".join(lines).encode()}


def _json_records(table: Orders, is_batch: bool) -> dict[str, bytes]:
    return {f"{TITLE[is_batch]}.json": json.dumps({"orders": _rows(table)}).encode()}


def _json_nested(table: Orders, is_batch: bool) -> dict[str, bytes]:
    rows = [
        {"order": row.pop("order"), "price": {"amount": row.pop("amount")}, **row}
        for row in _rows(table)
    ]
    return {f"{TITLE[is_batch]}.json": json.dumps(rows).encode()}


def _gzipped(table: Orders, is_batch: bool) -> dict[str, bytes]:
    return {f"{TITLE[is_batch]}.csv.gz": gzip.compress(table.to_csv().encode(), mtime=0)}


def _zipped(table: Orders, is_batch: bool) -> dict[str, bytes]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("orders.csv", (2024, 1, 1, 0, 0, 0)), table.to_csv())
    return {f"{TITLE[is_batch]}.zip": content.getvalue()}


def _in_parts(table: Orders, is_batch: bool) -> dict[str, bytes]:
    """Write known-normal rows into two files, the second with another order of columns."""
    if is_batch:
        return {"batch.csv": table.to_csv().encode()}
    columns = list(table.columns.items())
    first = Orders({name: column[:30] for name, column in columns})
    second = Orders({name: column[30:] for name, column in reversed(columns)})
    return {"2024-01.csv": first.to_csv().encode(), "2024-02.csv": second.to_csv().encode()}


def _in_directory(table: Orders, is_batch: bool) -> dict[str, bytes]:
    """Put the parts of the known-normal rows into a directory."""
    files = _in_parts(table, is_batch)
    return files if is_batch else {f"normal/{name}": files[name] for name in files}


def _by_month(table: Orders, is_batch: bool) -> dict[str, bytes]:
    """Write known-normal rows as Parquet, in directories that tell the month."""
    if is_batch:
        return {"batch.csv": table.to_csv().encode()}
    frame = frame_of(table)
    files = {}
    for month, part in frame.groupby(frame["shipped"].dt.month):
        content = io.BytesIO()
        part.to_parquet(content, index=False)
        files[f"normal/month={month}/part.parquet"] = content.getvalue()
    return files


def _write_sqlite(frame: pd.DataFrame, path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("PRAGMA page_size = 512")
    frame.assign(shipped=frame["shipped"].astype(str)).to_sql("orders", base, index=False)
    base.close()


def _write_arff(frame: pd.DataFrame, path: Path) -> None:
    kinds = {
        "amount": "numeric",
        "quantity": "integer",
        "country": "{DE,FR,IT,US}",
        "express": "{true,false}",
        "shipped": "date 'yyyy-MM-dd HH:mm'",
    }
    lines = ["@relation orders", *(f"@attribute {name} {kind}" for name, kind in kinds.items())]
    rows = Orders({name: frame[name].tolist() for name in kinds}).cells
    body = [",".join(f'"{cell}"' if " " in cell else cell for cell in row) for row in rows]
    path.write_text("\n".join([*lines, "@data", *body]) + "\n")


def _write_excel(frame: pd.DataFrame, path: Path, *, titles: int = 0) -> None:
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        book.book.set_properties({"created": datetime(2024, 4, 1)})
        frame.to_excel(book, index=False, startrow=titles)
        if titles:
            book.sheets["Sheet1"].write(0, 0, "Orders of the shop")


FORMATS = [
    Case("gzip", "A compressed file.", layout=_gzipped, inputs=("normal.csv.gz", "batch.csv.gz")),
    Case("zip", "An archive.", layout=_zipped, inputs=("normal.zip", "batch.zip")),
    Case(
        "excel",
        "A workbook.",
        layout=binary_file("xlsx", _write_excel),
        inputs=("normal.xlsx", "batch.xlsx"),
    ),
    Case(
        "excel-title",
        "A workbook with a title.",
        layout=binary_file("xlsx", lambda frame, path: _write_excel(frame, path, titles=2)),
        inputs=("normal.xlsx", "batch.xlsx"),
        notes=("normal.xlsx: 1 row above", "batch.xlsx: 1 row above"),
    ),
    Case(
        "json-lines",
        "One JSON object per line.",
        layout=_json_lines,
        inputs=("normal.jsonl", "batch.jsonl"),
    ),
    Case(
        "json-records",
        "JSON objects in a list.",
        layout=_json_records,
        inputs=("normal.json", "batch.json"),
    ),
    Case(
        "json-nested",
        "JSON objects with objects inside.",
        layout=_json_nested,
        inputs=("normal.json", "batch.json"),
        called={"amount": "price.amount"},
    ),
    Case(
        "parquet",
        "Parquet.",
        layout=binary_file("parquet", lambda frame, path: frame.to_parquet(path, index=False)),
        inputs=("normal.parquet", "batch.parquet"),
    ),
    Case(
        "feather",
        "Feather.",
        layout=binary_file("feather", lambda frame, path: frame.to_feather(path)),
        inputs=("normal.feather", "batch.feather"),
    ),
    Case(
        "arff",
        "ARFF.",
        id=None,
        layout=binary_file("arff", _write_arff),
        inputs=("normal.arff", "batch.arff"),
        change=lambda table, is_batch: table.without("order"),
    ),
    Case(
        "several",
        "Known-normal rows in two files.",
        layout=_in_parts,
        inputs=("2024-*.csv", "batch.csv"),
    ),
    Case(
        "three-files",
        "Known-normal rows in two files, both given.",
        layout=_in_parts,
        inputs=("2024-01.csv", "2024-02.csv", "batch.csv"),
    ),
    Case(
        "directory",
        "Known-normal rows in the files of a directory.",
        layout=_in_directory,
        inputs=("normal", "batch.csv"),
    ),
    Case(
        "partitions",
        "Known-normal rows in directories that tell the month.",
        layout=_by_month,
        inputs=("normal", "batch.csv"),
        unread=("amount", "quantity", "shipped"),  # rows are in another order
        notes=("column 'month' of normal is left out",),
    ),
    Case(
        "sqlite",
        "Tables of a database.",
        layout=binary_file("db", _write_sqlite),
        inputs=("normal.db", "batch.db"),
        kinds={"express": "number"},  # SQLite has no truth values
    ),
    Case(
        "two-formats",
        "A workbook and a text file.",
        layout=lambda table, is_batch: (
            text_file() if is_batch else binary_file("xlsx", _write_excel)
        )(table, is_batch),
        inputs=("normal.xlsx", "batch.csv"),
    ),
]
