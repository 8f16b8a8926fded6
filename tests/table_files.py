"""Made-up tables and files for the tests of tables."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22.tables import Table, open_table
from qms22.tables.sources import compressed, csv_file

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 40


def people() -> pd.DataFrame:
    """Make a table of numbers, texts and truth values that every format can hold."""
    return pd.DataFrame(
        {
            "age": [20 + 7 * at % 31 for at in range(N)],
            "height": [1.5 + at / 97 for at in range(N)],
            "city": [("Rome", "Oslo", "São Paulo, SP")[at % 3] for at in range(N)],
            "member": [at % 4 == 0 for at in range(N)],
        }
    )


def everything() -> pd.DataFrame:
    """Make a table with columns of every kind."""
    days = pd.date_range("2024-01-01 06:00", periods=N, freq="31h")
    return people().assign(
        customer_id=range(1000, 1000 + N),
        code=[f"A-{at:04}" for at in range(N)],
        remark=[f"seen by nurse {at} on her second round" for at in range(N)],
        unit="mm",
        visited=days,
        written=days.strftime("%d.%m.%Y %H:%M"),
    )


def assert_same_in_parts(path: Path, block: int | None = None) -> None:
    """Compare all ways to read parts of a file with the file read whole, at once.

    Parameters
    ----------
    path : Path
    block : int, optional
        Size of the blocks of a text file when it is read in parts.
    """
    expected = open_table(path).read()
    for share in (0.0, compressed.SHARE_OF_MEMORY):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compressed, "SHARE_OF_MEMORY", share)
            patch.setattr(csv_file, "BLOCK", block or csv_file.BLOCK)
            _assert_same(open_table(path), expected)


def _assert_same(source: Table, expected: pd.DataFrame) -> None:
    assert source.names == expected.columns.tolist()
    assert source.n_rows == len(expected)
    for n_rows in (1, 7, 1000):
        chunks = list(source.chunks(n_rows=n_rows))
        assert {len(chunk) for chunk in chunks[:-1]} <= {n_rows}
        found = pd.concat(chunks)
        assert found.index.tolist() == list(range(len(expected)))
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False)
    exact = list(source.chunks(n_rows=7, exact=True))
    assert all((chunk.dtypes == exact[0].dtypes).all() for chunk in exact)
    positions = np.random.RandomState(0).permutation(len(expected))[: len(expected) // 2 + 1]
    columns = source.names[::-2]
    pd.testing.assert_frame_equal(
        source.take(positions, columns),
        expected.loc[positions, columns],
        check_index_type=False,
    )
    pd.testing.assert_frame_equal(source.take([]), expected[:0], check_index_type=False)
    pd.testing.assert_frame_equal(source.read(), expected)


def zstd(content: bytes) -> bytes:
    """Compress as a .zst file."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


def write_stream(table: Any, path: Path) -> None:
    """Write a stream of Arrow batches."""
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)


def write_arff(table: pd.DataFrame, path: Path) -> None:
    """Write numbers and texts; ARFF has no truth values."""
    kinds = ["string" if table[name].dtype.kind not in "if" else "numeric" for name in table]
    lines = ["% made up", "@relation people"]
    lines += [f"@attribute {name} {kind}" for name, kind in zip(table, kinds, strict=True)]
    rows = [
        ",".join(f"'{value}'" if isinstance(value, str) else repr(value) for value in row)
        for row in table.astype(object).to_numpy().tolist()
    ]
    path.write_text("\n".join([*lines, "@data", *rows]) + "\n", encoding="utf-8")


def swollen_parquet(path: Path, n_claimed: int) -> Path:
    """Write 100 rows whose footer claims more."""
    pq.write_table(pa.table({"x": [at / 7 for at in range(100)]}), path, compression="none")
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    # In Thrift's compact form: a 64-bit field, and 100 and the claim as its value.
    swollen = footer.replace(b"\x16" + _varint(100), b"\x16" + _varint(n_claimed))
    assert swollen != footer
    path.write_bytes(
        content[: -8 - length] + swollen + len(swollen).to_bytes(4, "little") + b"PAR1"
    )
    return path


def _varint(number: int) -> bytes:
    rest, digits = 2 * number, []
    while rest > 127:
        digits.append(rest % 128 + 128)
        rest //= 128
    return bytes([*digits, rest])


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Writers of every format, by a file name.
WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "a.csv": lambda table, path: table.to_csv(path, index=False),
    "index.csv": lambda table, path: table.to_csv(path),
    "a.tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "bars.txt": lambda table, path: table.to_csv(path, index=False, sep="|"),
    "blanks": lambda table, path: table.to_csv(path, index=False, sep=" "),
    "quoted.csv": lambda table, path: table.to_csv(path, index=False, quoting=csv.QUOTE_ALL),
    "mac.csv": lambda table, path: table.to_csv(path, index=False, lineterminator="\r"),
    "windows.csv": lambda table, path: table.to_csv(path, index=False, lineterminator="\r\n"),
    "bom.csv": lambda table, path: table.to_csv(path, index=False, encoding="utf-8-sig"),
    "utf16.csv": lambda table, path: table.to_csv(path, index=False, encoding="utf-16"),
    "german.csv": lambda table, path: table.to_csv(
        path, index=False, sep=";", decimal=",", encoding="latin-1"
    ),
    "a.parquet": lambda table, path: table.to_parquet(path),
    "labels.pq": lambda table, path: table.set_index(table.index[::-1]).to_parquet(path),
    "parquet-without-ending": lambda table, path: table.to_parquet(path),
    "a.feather": lambda table, path: table.to_feather(path),
    "a.arrow": lambda table, path: write_stream(pa.Table.from_pandas(table), path),
    "arrow-without-ending": lambda table, path: table.to_feather(path),
}

RUBBISH = np.random.default_rng(0).bytes(3000)
# Faulty text files, by a part of the message; blanks make the keys differ.
CONTENTS = {
    "is empty": b"",
    "is  empty": b"\xef\xbb\xbf\r\n \n",
    "has a header but no rows": b"a,b\n",
    "has a header  but no rows": b"a;b",
    "is binary": RUBBISH,
    "has a  header but no rows": b"\x01\x02\x03",
    "is   binary": b"a,b\n1,2\n3,\x00\n",
    "a web page": b"<!DOCTYPE html>\n<html></html>\n",
    "is not valid JSON": b'[\n{"a": 1, "b": 2}',
    "is JSON but not a table": b'{"a": [{"x": 1}], "b": [{"y": 2}]}',
    "Excel": b"PK\x03\x04" + RUBBISH,
    "line 3: the row has fewer cells than the header": b"a,b\n1,2\n3\n4\n5\n",
    "line 5: the row has more cells than the header": b'a;b\n1;"2\n2"\n4;5\n1;2;3\n4;5;6\n',
    "line 3: the row has more cells than the header": b"a b\n1 2\n1 2 3\n3 4\n5 6 7\n",
    "has no cells": b";;\n;;\n",
    "never closed": b'a,b\n1,"2\n3,4\n',
    "UTF-16": b"\xff\xfea\x00\x00",
}
