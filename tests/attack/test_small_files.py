"""Small files that unpack to more than memory has room for."""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import COMMAND, assert_refused, run_process, words_of
from detect import run_detect
from memory_limit import draw_orders, write_table
from pyarrow import csv

from qms22.tables import memory_limit, open_table, read_table
from qms22.tables.sources import compressed

REFUSED = r"takes [\d,.]+ .B of memory or more to read, and may take 50.0 MB.*; check the file, or "
LIMIT = 50_000_000


def lines() -> Iterator[bytes]:
    yield b"a,b,c\n"
    for _ in range(60):
        yield b"1,2,word\n" * (1 << 17)


def objects() -> Iterator[bytes]:
    yield b"["
    for _ in range(60):
        yield b'{"a": 1, "b": "word"},' * (1 << 16)
    yield b'{"a": 1, "b": "word"}]'


def write_zip(path: Path, pieces: Iterator[bytes]) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive, archive.open("a.csv", "w") as stream:
        stream.writelines(pieces)


def write_gzip(path: Path, pieces: Iterator[bytes]) -> None:
    with gzip.open(path, "wb") as stream:
        stream.writelines(pieces)


def write_xz(path: Path, pieces: Iterator[bytes]) -> None:
    with lzma.open(path, "wb", preset=0) as stream:
        stream.writelines(pieces)


@pytest.mark.parametrize(
    ("name", "write", "pieces"),
    [
        ("a.csv.gz", write_gzip, lines),
        ("a.csv.xz", write_xz, lines),
        ("a.zip", write_zip, lines),
        ("a.json.gz", write_gzip, objects),
        ("a.jsonl.gz", write_gzip, lambda: (b'{"a": 1, "b": "word"}\n' * 65536 for _ in range(60))),
    ],
)
def test_compressed_texts(
    tmp_path: Path,
    name: str,
    write: Callable[[Path, Iterator[bytes]], None],
    pieces: Callable[[], Iterator[bytes]],
) -> None:
    """Texts that decompress to hundreds of times their size"""
    path = tmp_path / name
    write(path, pieces())
    with memory_limit(LIMIT), pytest.raises(ValueError, match=f"{name}.* {REFUSED}"):
        read_table(path)


def test_the_limit_can_be_lifted(tmp_path: Path) -> None:
    """`--memory-limit` lifts and lowers the limit"""
    write_gzip(tmp_path / "n.csv.gz", lines())
    (tmp_path / "b.csv").write_text("a,b,c\n" + "1,2,word\n" * 300)

    def run(limit: str) -> subprocess.CompletedProcess[str]:
        return run_process("detect", "n.csv.gz", "b.csv", "--memory-limit", limit, cwd=tmp_path)

    done = run("50MB")
    assert_refused(done, "n.csv.gz takes")
    assert "raise the limit (--memory-limit)" in done.stderr
    assert "is not a size; write 500MB or 8GB" in run("much").stderr
    # All columns are constant, which is found only once all is read.
    assert "memory" not in run("8GB").stderr


def repeated_text() -> pa.Table:
    numbers = pa.array(np.zeros(2000, dtype=np.int32))
    return pa.table({"a": pa.DictionaryArray.from_arrays(numbers, ["x" * 10**6]), "b": range(2000)})


def zeros() -> pa.Table:
    return pa.table({name: np.zeros(1 << 22) for name in "abcd"})


def write_parquet(path: Path, table: pa.Table, **options: Any) -> None:
    options = {"compression": "zstd", "store_schema": False, "data_page_size": 1 << 30} | options
    pq.write_table(table, path, **options)


@pytest.mark.parametrize(
    ("table", "options"), [(repeated_text, {}), (zeros, {"use_dictionary": False}), (zeros, {})]
)
def test_parquet(tmp_path: Path, table: Callable[[], pa.Table], options: dict[str, Any]) -> None:
    """Parquet files in which one long text stands for many rows, or pages are all zeros"""
    path = tmp_path / "a.parquet"
    write_parquet(path, table(), **options)
    assert path.stat().st_size < 400_000
    with memory_limit(LIMIT), pytest.raises(ValueError, match=f"a.parquet {REFUSED}"):
        read_table(path)


def long_texts(n_rows: int) -> pa.Table:
    numbers = np.random.default_rng(n_rows).normal(size=n_rows)
    return pa.table({"a": numbers, "b": np.arange(n_rows) % 7, "t": ["words " * 4000] * n_rows})


def in_struct(n_rows: int) -> pa.Table:
    table = long_texts(n_rows)
    inner = pa.StructArray.from_arrays([table["t"].combine_chunks()], names=["t"])
    return table.set_column(2, "s", inner)


def in_lists(n_rows: int) -> pa.Table:
    return long_texts(n_rows).set_column(2, "s", pa.array([["words " * 200] * 20] * n_rows))


@pytest.mark.parametrize("draw", [long_texts, in_struct, in_lists])
@pytest.mark.parametrize(
    ("options", "is_refused"),
    [
        (["--memory-limit", "50MB"], True),
        (["--memory-limit", "50MB", "--max-samples", "50000"], True),
        (["--memory-limit", "300MB"], False),
    ],
)
def test_long_rows(
    tmp_path: Path, draw: Callable[[int], pa.Table], options: list[str], is_refused: bool
) -> None:
    """Parquet files and texts of rows that are long in themselves keep `--memory-limit`"""
    write_parquet(tmp_path / "n.parquet", draw(3000))
    second = "b.parquet"
    if draw is long_texts:
        second = "b.csv.gz"
        with gzip.open(tmp_path / second, "wb") as stream:
            csv.write_csv(draw(1000), stream)
    else:
        write_parquet(tmp_path / second, draw(1000))
    arguments = ["detect", "n.parquet", second, "-o", "o.csv", "--n-jobs", "1", *options]
    code, errors, peak = measured(tmp_path, arguments)
    assert code == (2 if is_refused else 0), errors
    assert not is_refused or "raise the limit (--memory-limit)" in errors
    # Python and its libraries take some 250 MB, and mapped files and what is read before a table is
    # refused count here; without a limit these take 800 MB.
    assert peak < 290e6 + (150e6 if is_refused else 300e6), errors


def measured(folder: Path, arguments: list[str]) -> tuple[int, str, float]:
    """Run a command; return its exit code, its errors and the most bytes that it had."""
    peak = 0.0
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [COMMAND, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=errors
        )
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if found := re.search(r"VmHWM:\s*(\d+)", status):  # not once it has ended
                peak = max(peak, 1024 * float(found[1]))
            time.sleep(0.005)
    return process.returncode, (folder / "errors").read_text(), peak


@pytest.mark.parametrize("draw", [long_texts, in_struct, in_lists, lambda _: zeros()])
def test_sizes(tmp_path: Path, draw: Callable[[int], pa.Table]) -> None:
    """The size of the values of a Parquet file is known before they are read"""
    table = draw(500)
    write_parquet(tmp_path / "a.parquet", table)
    assert 0.9 < open_table(tmp_path / "a.parquet").n_bytes / table.nbytes < 1.3


def test_small_limits(tmp_path: Path) -> None:
    """`--memory-limit` below what a search takes says the least, and the least is kept"""
    for name in ("n.csv", "b.csv"):
        write_table(tmp_path / name, draw_orders, 300, np.random.default_rng(0))
    program = run_detect(tmp_path, ["n.csv", "b.csv", "-o", "o.csv"]).own
    for name, n_rows in (("n.csv", 10_000), ("b.csv", 80_000)):
        write_table(tmp_path / name, draw_orders, n_rows, np.random.default_rng(1))
    done = run_process("detect", "n.csv", "b.csv", "--memory-limit", "50MB", cwd=tmp_path)
    assert_refused(
        done, "may take 50.0 MB (it has 80,000 rows to score and 15 columns)", "--memory-limit"
    )
    [least] = re.findall(r"takes ([\d.]+ MB) of memory", words_of(done.stderr))
    run = run_detect(tmp_path, ["n.csv", "b.csv", "-o", "o.csv", "--memory-limit", least])
    assert "read part by part" in words_of(run.words)
    assert run.own - program < 1e6 * float(least.split()[0])


def test_tiny_limits(tmp_path: Path) -> None:
    """A limit too small for anything names the input, and no temporary file"""
    for name in ("n.csv", "b.csv"):
        (tmp_path / name).write_text("a,b\n" + "".join(f"{at},{at % 7}\n" for at in range(3000)))
    done = run_process("detect", "n.csv", "b.csv", "--memory-limit", "10", cwd=tmp_path)
    assert_refused(done, ".csv takes")
    assert "may take 10 bytes" in done.stderr
    assert "arrow" not in done.stderr


def test_parquet_in_parts(tmp_path: Path) -> None:
    """One long text for many rows is read in parts"""
    write_parquet(tmp_path / "a.parquet", repeated_text())
    table = open_table(tmp_path / "a.parquet")
    sizes = [batch.num_rows for batch in map(pa.Table.from_pandas, table.chunks(["a"], n_rows=100))]
    assert sizes == [100] * 20


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("codec", ["zstd", "lz4", None])
def test_arrow(tmp_path: Path, kind: str, codec: str | None) -> None:
    """Arrow files with batches that unpack to gigabytes, or have rows but no bytes"""
    path = tmp_path / "a.arrow"
    table = zeros() if codec else pa.table({name: pa.nulls(10**9) for name in "ab"})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(path, table.schema, options=options) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 1_000_000
    with memory_limit(LIMIT), pytest.raises(ValueError, match=f"a.arrow {REFUSED}"):
        read_table(path)


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_reads(tmp_path: Path, kind: str) -> None:
    """Arrow files with dictionaries and compressed batches still read"""
    table = pa.table({"a": range(1000), "b": pa.array(["x", "y"] * 500).dictionary_encode()})
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with new(tmp_path / "a.arrow", table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=100)
    with memory_limit(100_000):
        assert read_table(tmp_path / "a.arrow").shape == (1000, 2)


def test_standard_input(tmp_path: Path) -> None:
    """A compressed table on standard input that unpacks to hundreds of times its size"""
    write_gzip(tmp_path / "n.csv.gz", lines())
    (tmp_path / "b.csv").write_text("a,b,c\n" + "1,2,word\n" * 300)
    line = f"{COMMAND} detect - b.csv --memory-limit 50MB < n.csv.gz"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert_refused(done, "standard input takes")


@pytest.mark.parametrize("gigabytes", [2, 4])
def test_short_memory(tmp_path: Path, gigabytes: int) -> None:
    """A file that unpacks to 400 times its size, where the process may take 2 or 4 GB"""
    write_gzip(tmp_path / "n.csv.gz", lines())
    (tmp_path / "b.csv").write_text("a,b,c\n" + "1,2,word\n" * 300)
    line = f"ulimit -v {gigabytes}000000; {COMMAND} detect n.csv.gz b.csv --n-jobs 1"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


def test_memory_that_is_freed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON lines read while memory runs short or is freed: no row is lost"""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"a": {at}}}\n' for at in range(30_000)))
    for answers in ([True, False], [False, True]):
        allowed = cycle([0 if is_large else 10**12 for is_large in answers])
        monkeypatch.setattr(compressed, "memory_allowed", lambda allowed=allowed: next(allowed))
        assert read_table(path)["a"].tolist() == list(range(30_000))
