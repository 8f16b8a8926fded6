"""Tables read part by part hold what tables read whole hold, and complain alike."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import PACKERS, everything, people, swollen_parquet, write_arff
from test_read import WRITERS
from test_read_faults import CONTENTS, RUBBISH

from qms22.tables import csv_source, open_table, read_table
from qms22.tables.source import ArrowSource, ParquetSource, WholeSource

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def assert_same(path: Path) -> None:
    """Compare all ways to read a table with `read_table`."""
    expected = read_table(path)
    source = open_table(path)
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


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(tmp_path: Path, name: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    assert_same(tmp_path / name)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "utf16.csv"])
def test_compressed(tmp_path: Path, name: str, ending: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    path = tmp_path / (name + ending)
    path.write_bytes(PACKERS[ending]((tmp_path / name).read_bytes()))
    assert_same(path)


def test_columns_of_every_kind(tmp_path: Path) -> None:
    everything().to_parquet(tmp_path / "a.parquet", row_group_size=9)
    everything().to_csv(tmp_path / "a.csv")
    write_arff(people().drop(columns="member"), tmp_path / "a.arff")
    for path in tmp_path.iterdir():
        assert_same(path)


def test_many_small_and_one_large_batch(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(everything(), preserve_index=False)
    for size in (1, 3, 1000):
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=size)
        with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
            file.write_table(table, max_chunksize=size)
        assert isinstance(open_table(tmp_path / "a.parquet"), ParquetSource)
        assert isinstance(open_table(tmp_path / "a.arrow"), ArrowSource)
        assert_same(tmp_path / "a.parquet")
        assert_same(tmp_path / "a.arrow")


def test_arrow_without_room_for_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError(f"no room for {path}")

    people().to_feather(tmp_path / "a.feather")
    monkeypatch.setattr(pa, "memory_map", refuse)
    assert_same(tmp_path / "a.feather")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_read_whole(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=["x,y\n1,2\n3,4\n"])
    writer.start()
    source = open_table(tmp_path / "pipe")
    assert isinstance(source, WholeSource)
    assert source.n_bytes == 0
    assert source.take([1])["y"].tolist() == [4]
    writer.join()


# What the last cell makes of its column.
LAST = ["007", "", "2.5", "inf", "x", "true", "1e3", "-3", " 4 ", '"a\nb"', "?", "1" * 19]


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("first", ["1", "2.5", "True", "", "abc"])
def test_all_cells_have_a_say_in_the_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, last: str
) -> None:
    monkeypatch.setattr(csv_source, "BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_text("n,x\n" + "".join(f"{at},{first}\n" for at in range(40)) + f"9,{last}\n")
    assert_same(path)
    for chunk in open_table(path).chunks(n_rows=10):
        assert (chunk.dtypes == read_table(path).dtypes).all()


def test_a_late_decimal_point_speaks_for_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "BLOCK", 64)
    for last in ("2;2", "2;2.5", "2;2,5"):
        (tmp_path / "a.csv").write_text("x;y\n" + "1,5;1\n" * 40 + last + "\n")
        assert_same(tmp_path / "a.csv")


_CELLS = st.sampled_from(["1", "-2", "0.5", "1,5", "", "NA", "x", "a b", "true", "007", "é", "1e5"])


@settings(max_examples=60, deadline=None)
@given(
    separator=st.sampled_from([",", ";", "\t", " ", ", "]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    rows=st.lists(st.tuples(_CELLS, _CELLS, _CELLS), min_size=1, max_size=30),
)
def test_any_text(
    tmp_path_factory: pytest.TempPathFactory,
    separator: str,
    encoding: str,
    end: str,
    rows: list[tuple[str, ...]],
) -> None:
    path = tmp_path_factory.mktemp("text") / "a.csv"
    quoted = [[f'"{cell}"' for cell in row] for row in [("u", "v", "w"), *rows]]
    path.write_bytes(end.join(separator.join(row) for row in quoted).encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "BLOCK", 128)
        assert_same(path)


def complaint(path: Path) -> str:
    with pytest.raises(ValueError, match=r".") as raised:
        list(open_table(path).chunks())
    return str(raised.value)


@pytest.mark.parametrize("expected", CONTENTS)
@pytest.mark.parametrize("name", ["a.csv", "a"])
def test_faulty_text(tmp_path: Path, name: str, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENTS[expected])
    with pytest.raises(ValueError, match=r".") as raised:
        read_table(path)
    assert complaint(path) == str(raised.value)


def test_faults_far_into_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "BLOCK", 4096)
    rows = "".join(f"{at},{at % 7}\n" for at in range(5000))
    path = tmp_path / "a.csv"
    for last, words in {
        "1\n": "line 5002: the row has 1 cells where the header has 2",
        '1,"2\n' + rows: "is never closed",
        "1,\0\n": "is binary",
    }.items():
        path.write_text("x,y\n" + rows + last)
        assert words in complaint(path)
    path.write_bytes(b"x,y\n" + rows.encode() + b"1,\xe9\n")  # not UTF-8, as it turns out
    assert open_table(path).take([5000])["y"].tolist() == ["é"]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
@pytest.mark.parametrize("content", [RUBBISH, b"a,b\n1,2\n", b"PAR1PAR1", b"ARROW1\0\0"])
def test_wrong_content(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert "truncated or damaged" in complaint(tmp_path / name)


@pytest.mark.parametrize("n_claimed", [101, 10**12, 2**60])
def test_footer_claims_rows(tmp_path: Path, n_claimed: int) -> None:
    source = open_table(swollen_parquet(tmp_path / "a.parquet", n_claimed))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (lambda: source.take([5, n_claimed - 1]), lambda: list(source.chunks())):
        with pytest.raises(ValueError, match="damaged"):
            read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100_000  # kilobytes


def test_no_rows(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.feather"):
        WRITERS[name](people().iloc[:0], tmp_path / name)
        with pytest.raises(ValueError, match="has 0 rows of 4 columns"):
            open_table(tmp_path / name).check()


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    source = open_table(path)
    assert source.n_rows == 2
    path.write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="has changed while it was read"):
        list(source.chunks())
