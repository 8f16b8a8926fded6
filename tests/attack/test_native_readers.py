"""Damaged files in the readers that are no Python: a fault there would end the process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlwt  # type: ignore[import-untyped]

# `make attack` tries more than `make test`.
N_DAMAGED = int(os.environ.get("QMS22_DAMAGED", "20"))

# Reads files one by one; of each, the last line printed is its name or what came of it.
READS = """
import resource, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from qms22.tables import memory_limit, read_table
for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path.name, flush=True)
    try:
        with memory_limit(200_000_000):
            read_table(path)
    except ValueError:
        pass
print("all", flush=True)
"""


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "n": rng.integers(1000, size=60),
            "x": rng.normal(size=60),
            "day": pd.date_range("2024-01-01", periods=60),
            "word": rng.choice(["red", "green", "blue"], 60),
        }
    )


def write_xls(path: Path) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    frame = table().astype({"day": str})
    for row, cells in enumerate([list(frame.columns), *frame.to_numpy().tolist()]):
        for column, value in enumerate(cells):
            sheet.write(row, column, value)
    book.save(str(path))


def write_arrow(path: Path, codec: str | None) -> None:
    found = pa.Table.from_pandas(table().astype({"word": "category"}))
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(path, found.schema, options=options) as writer:
        writer.write_table(found)


FORMATS: dict[str, Callable[[Path], None]] = {
    "a.xlsx": lambda path: table().to_excel(path, index=False),
    "a.ods": lambda path: table().to_excel(path, index=False),
    "a.xls": write_xls,
    "a.parquet": lambda path: pq.write_table(pa.Table.from_pandas(table()), path),
    "plain.parquet": lambda path: pq.write_table(
        pa.Table.from_pandas(table()), path, compression="none", use_dictionary=False
    ),
    "a.arrow": lambda path: write_arrow(path, None),
    "packed.arrow": lambda path: write_arrow(path, "zstd"),
}


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a content with some bytes changed, or cut off."""
    found = bytearray(content)
    for at in rng.integers(len(found), size=rng.choice([1, 3, 10, 50])):
        found[at] = rng.integers(256)
    return bytes(found[: rng.integers(len(found))] if rng.random() < 0.1 else found)


def damage(source: Path, target: Path, rng: np.random.Generator) -> None:
    """Write a damaged copy of a file; of most archives, one of a file inside it."""
    if source.suffix not in (".xlsx", ".ods") or rng.random() < 0.2:
        target.write_bytes(flipped(source.read_bytes(), rng))
        return
    with ZipFile(source) as archive, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        names = [name for name in archive.namelist() if archive.read(name)]
        chosen = names[rng.integers(len(names))]
        for name in names:
            content = archive.read(name)
            copy.writestr(name, flipped(content, rng) if name == chosen else content)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(tmp_path: Path, name: str) -> None:
    """Workbooks, Parquet and Arrow files with flipped bytes: no reader ends the process"""
    source, folder = tmp_path / name, tmp_path / "damaged"
    FORMATS[name](source)
    folder.mkdir()
    rng = np.random.default_rng(len(name))
    for at in range(N_DAMAGED):
        damage(source, folder / f"{at:05d}{source.suffix}", rng)
    done = subprocess.run(
        [sys.executable, "-c", READS, str(folder)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-2000:])
    assert done.stdout.endswith("all\n")
