"""Tables read in parts hold the same as tables read whole."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from table_files import (
    PACKERS,
    WRITERS,
    assert_same_in_parts,
    everything,
    people,
    swollen_parquet,
    write,
    write_arff,
)

from qms22.tables import open_table
from qms22.tables.sources.file_rows import ArrowRows, ParquetRows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

SIZES = [
    ("id", pa.int64()),
    ("size", pa.struct([("w", pa.float64()), ("in", pa.struct([("h", pa.int64())]))])),
]


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(tmp_path: Path, name: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    assert_same_in_parts(tmp_path / name)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "utf16.csv"])
def test_compressed(tmp_path: Path, name: str, ending: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    path = tmp_path / (name + ending)
    path.write_bytes(PACKERS[ending]((tmp_path / name).read_bytes()))
    assert_same_in_parts(path)


def test_columns_of_every_kind(tmp_path: Path) -> None:
    everything().to_parquet(tmp_path / "a.parquet", row_group_size=9)
    everything().to_csv(tmp_path / "a.csv")
    write_arff(people().drop(columns="member"), tmp_path / "a.arff")
    for path in tmp_path.iterdir():
        assert_same_in_parts(path)


def test_many_small_and_one_large_batch(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(everything(), preserve_index=False)
    for size in (1, 3, 1000):
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=size)
        with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
            file.write_table(table, max_chunksize=size)
        assert isinstance(open_table(tmp_path / "a.parquet").content.rows, ParquetRows)
        assert isinstance(open_table(tmp_path / "a.arrow").content.rows, ArrowRows)
        assert_same_in_parts(tmp_path / "a.parquet")
        assert_same_in_parts(tmp_path / "a.arrow")


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


def test_columns_as_texts(tmp_path: Path) -> None:
    source = open_table(write(tmp_path / "a.csv", "a,b,c\n1.10,TRUE,x\n1e3,false,y\n"))
    texts = source.with_texts(["a", "b"])
    assert texts.read()["a"].tolist() == ["1.10", "1e3"]
    assert texts.take([1], ["b", "a"]).iloc[0].tolist() == ["false", "1e3"]
    (chunk,) = texts.chunks(["c", "b"])
    assert chunk["b"].tolist() == ["TRUE", "false"]
    assert source.read()["a"].tolist() == [1.1, 1000.0]
    renamed = source.renamed({"a": "x"}).with_texts(["x"])
    assert renamed.read()["x"].tolist() == ["1.10", "1e3"]


def test_values_that_are_no_texts_become_some(tmp_path: Path) -> None:
    source = open_table(write(tmp_path / "a.json", '[{"a": true, "b": 1.5}, {"a": null, "b": 2}]'))
    texts = source.with_texts(["a", "b"]).read()
    assert texts["b"].tolist() == ["1.5", "2"]
    assert texts["a"].dropna().tolist() == ["true"]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrows"])
def test_structs_are_columns_of_their_own(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    rows = [{"id": 1, "size": {"w": 2.5, "in": {"h": 3}}}, {"id": 2, "size": None}]
    table = pa.Table.from_pylist(rows, pa.schema(SIZES))
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix == "feather":
        feather.write_feather(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    found = open_table(path)
    assert found.names == ["id", "size.w", "size.in.h"]
    frame = found.read()
    assert frame["size.w"].tolist()[0] == 2.5
    assert frame["size.in.h"].isna().tolist() == [False, True]
