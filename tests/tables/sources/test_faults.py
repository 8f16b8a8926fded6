"""Every fault of a file is a ValueError of one sentence that names the file."""

from __future__ import annotations

import gzip
import resource
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from table_files import CONTENTS, RUBBISH, people, swollen_parquet, zstd

from qms22.tables import open_table, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def fault(path: Path) -> str:
    """Return the message, which is the same for a table read whole and in chunks."""
    with pytest.raises(ValueError, match=r".") as raised:
        read_table(path)
    message = str(raised.value)
    assert path.name in message
    assert "\n" not in message
    assert ". " not in message
    assert "; " in message
    with pytest.raises(ValueError, match=r".") as raised:
        read_chunks(path)
    assert str(raised.value) == message or "claims" in message
    return message


def read_chunks(path: Path) -> None:
    source = open_table(path)
    source.check()
    list(source.chunks())


def test_missing_and_directory(tmp_path: Path) -> None:
    assert "there is no file" in fault(tmp_path / "none.csv")
    assert "holds no table" in fault(tmp_path)


@pytest.mark.parametrize("expected", CONTENTS)
@pytest.mark.parametrize("name", ["a.csv", "a", "a.dat"])
def test_faulty_text(tmp_path: Path, name: str, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENTS[expected])
    assert " ".join(expected.split()) in fault(path)


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"a,b\n1,2\n" * 999)[:-20], b"\x1f\x8b" + RUBBISH, zstd(RUBBISH)[:-500]],
    ids=["gzip cut off", "no gzip", "zstd cut off"],  # compressed bytes hold the time
)
def test_damaged_compression(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(content)
    assert "cannot be decompressed" in fault(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow", "a.arff"])
@pytest.mark.parametrize(
    "content", [b"", RUBBISH, b"a,b\n1,2\n", b"PAR1PAR1", b"ARROW1\0\0", b"@data"]
)
def test_wrong_content(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert name in fault(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_truncated_and_damaged(tmp_path: Path, name: str) -> None:
    whole, path = tmp_path / name, tmp_path / f"damaged{name}"
    people().to_parquet(whole) if name == "a.parquet" else people().to_feather(whole)
    content = whole.read_bytes()
    for length in (5, 20, len(content) // 2, len(content) - 9, len(content) - 1):
        path.write_bytes(content[:length])
        assert "truncated or damaged" in fault(path)
    rng = np.random.default_rng(0)
    for _ in range(60):  # damage may go unnoticed, but not break anything
        bytes_ = np.frombuffer(content, np.uint8).copy()
        bytes_[rng.integers(len(bytes_), size=5)] = rng.integers(256, size=5)
        path.write_bytes(bytes_.tobytes())
        with suppress(ValueError):
            read_table(path)
            continue
        fault(path)


def test_footer_length(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    people().to_parquet(path)
    path.write_bytes(path.read_bytes()[:-8] + b"\xff\xff\xff\x7fPAR1")
    assert "truncated or damaged" in fault(path)


@pytest.mark.parametrize("n_claimed", [101, 10**9, 10**12, 2**60])
def test_footer_claims_rows(tmp_path: Path, n_claimed: int) -> None:
    path = swollen_parquet(tmp_path / "a.parquet", n_claimed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "damaged" in fault(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100_000  # kilobytes


def test_no_rows(tmp_path: Path) -> None:
    people().iloc[:0].to_parquet(tmp_path / "a.parquet")
    people().iloc[:0].to_feather(tmp_path / "a.feather")
    assert "0 rows" in fault(tmp_path / "a.parquet")
    assert "0 rows" in fault(tmp_path / "a.feather")
    (tmp_path / "a.arff").write_text("@relation a\n@attribute x real\n@attribute y real\n@data\n")
    assert "no rows" in fault(tmp_path / "a.arff")


def test_doubled_names(tmp_path: Path) -> None:
    table = pa.table([[1], [2]], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert "2 columns named 'a'" in fault(tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    assert "2 columns named 'a'" in fault(tmp_path / "a.arrow")
    head = "@relation a\n@attribute x real\n@attribute x real\n@data\n1,2\n"
    (tmp_path / "a.arff").write_text(head)
    assert "2 columns named 'x'" in fault(tmp_path / "a.arff")


@pytest.mark.parametrize("notes", [b"{broken", b"\xff\xfe", b'{"columns": 5}'])
def test_damaged_notes_of_pandas_do_not_matter(tmp_path: Path, notes: bytes) -> None:
    table = pa.table({"a": [1.5, 2.5], "b": ["x", "y"]})
    pq.write_table(table.replace_schema_metadata({b"pandas": notes}), tmp_path / "a.parquet")
    source = open_table(tmp_path / "a.parquet")
    expected = table.to_pandas()
    pd.testing.assert_frame_equal(source.read(), expected)
    for exact in (True, False):
        part = next(source.chunks(exact=exact))
        assert part.to_dict("list") == expected.to_dict("list")
