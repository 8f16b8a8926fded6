"""Made-up tables and files for the tests of this folder."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

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
