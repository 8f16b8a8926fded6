"""Tables in several files: lists, patterns, directories, archives, standard input."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from table_files import WRITERS, assert_same_in_parts, everything, people, write

from qms22.tables import open_table, read_table

pa = pytest.importorskip("pyarrow")


def write_parts(folder: Path, table: pd.DataFrame, suffix: str = "csv") -> list[Any]:
    """Write a table into three files, with the columns in other orders."""
    paths: list[Any] = [folder / f"{at}.{suffix}" for at in range(3)]
    cuts = (0, 11, 12, len(table))
    for at, path in enumerate(paths):
        part = table.iloc[cuts[at] : cuts[at + 1], :: -1 if at == 1 else 1]
        WRITERS[f"a.{suffix}"](part.reset_index(drop=True), path)
    return paths


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_all_ways_to_name_parts(tmp_path: Path, suffix: str) -> None:
    table = people()
    paths = write_parts(tmp_path, table, suffix)
    for place in (paths, tuple(map(str, paths)), tmp_path, str(tmp_path / f"[0-2].{suffix}")):
        source = open_table(place)
        pd.testing.assert_frame_equal(source.read(), table)
        assert source.notes == ()
    assert source.place(12) == f"{paths[2]}, row 0"
    assert source.place(11) == f"{paths[1]}, row 0"
    assert source.title == f"[0-2].{suffix} (3 files)"
    assert open_table(paths).title == f"0.{suffix}, 1.{suffix}, 2.{suffix}"
    assert_same_in_parts(tmp_path)
    assert open_table([paths[0]]).name == str(paths[0])


def test_columns_of_every_kind(tmp_path: Path) -> None:
    write_parts(tmp_path, everything(), "parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path), everything())
    assert_same_in_parts(tmp_path)


def test_parts_that_differ(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "a,b,c,z\n1,2,true,007\n3,4.5,false,008\n")
    write(tmp_path / "2.csv", "b,a\n7,x\n")
    write(tmp_path / "3.csv", "a,b,c,z\n")
    write(tmp_path / "4.csv", "a,b,c,z\n5,6,true,12\n")
    write(tmp_path / "readme.md", "about")
    source = open_table(tmp_path)
    found = source.read()
    assert found["a"].tolist() == ["1", "3", "x", "5"]
    assert found["b"].tolist() == [2, 4.5, 7, 6]
    assert found["z"].dropna().tolist() == ["007", "008", "12"]
    assert found["c"].dropna().tolist() == [True, False, True]
    assert found["c"].isna().tolist() == found["z"].isna().tolist() == [False, False, True, False]
    assert source.notes == (
        f"{tmp_path}: not tables, and left out: readme.md",
        f"without rows and left out: {tmp_path / '3.csv'}",
        "column 'a' is text in 2.csv, and read as text everywhere",
        "columns 'c', 'z' are not in 2.csv, and missing there",
        "column 'z' is text in 1.csv, and read as text everywhere",
    )
    assert source.take([2], ["z"])["z"].isna().all()


def test_names_that_are_written_in_other_ways(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "order_id,net,Net price\n1,2,3\n")
    write(tmp_path / "2.csv", "NET_PRICE,Order ID,net\n6,4,5\n")
    source = open_table(tmp_path)
    assert source.read().to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert source.names == ["order_id", "net", "Net price"]
    called = "'NET_PRICE' for 'Net price', 'Order ID' for 'order_id'"
    assert source.notes == (f"{tmp_path / '2.csv'}: columns are called {called}",)
    assert_same_in_parts(tmp_path)


def test_types_of_parquet_files(tmp_path: Path) -> None:
    day = pd.Timestamp("2024-03-01 12:00")
    first = pd.DataFrame({"n": [1], "t": [day], "c": pd.Categorical(["u"]), "x": ["a"], "l": [[1]]})
    second = pd.DataFrame(
        {
            "n": pd.array([2.5], "float32"),
            "t": [day.tz_localize("Asia/Tokyo")],
            "c": pd.Categorical(["v"]),
            "x": pd.Categorical(["b"]),
            "l": ["none"],
        }
    )
    first.to_parquet(tmp_path / "1.parquet")
    second.to_parquet(tmp_path / "2.parquet")
    source = open_table(tmp_path)
    found = source.read()
    assert len(source.notes) == 1  # about l
    assert found["n"].tolist() == [1, 2.5]
    assert found["t"].tolist() == [day, day]  # in local time
    assert found["c"].astype(str).tolist() == ["u", "v"]
    assert isinstance(found["c"].dtype, pd.CategoricalDtype)
    assert found["x"].tolist() == ["a", "b"]
    assert found["l"].tolist() == ["[1]", "none"]


def test_partitions(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    table = people().assign(month=[at % 3 for at in range(len(people()))])
    table["city"] = table["city"].replace({"Oslo": np.nan})
    pq.write_to_dataset(pa.Table.from_pandas(table), tmp_path, partition_cols=["month", "city"])
    found = read_table(tmp_path)
    assert sorted(found.columns) == sorted(table.columns)
    order = ["month", "age", "height"]
    expected = table.sort_values(order, ignore_index=True)[found.columns]
    found = found.sort_values(order, ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert_same_in_parts(tmp_path)


def test_archives(tmp_path: Path) -> None:
    table = people()
    paths = write_parts(tmp_path, table)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            archive.write(path, f"tables/{path.name}")
        archive.writestr("__MACOSX/tables/0.csv", "rubbish")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.zip"), table)
    assert_same_in_parts(tmp_path / "a.zip")
    one = open_table(f"{tmp_path / 'a.zip'}#tables/1.csv")
    assert one.read().to_dict("list") == table[11:12].to_dict("list")
    assert one.title == "1.csv"
    with pytest.raises(
        ValueError, match=r"a\.zip has no file '9\.csv'; its files are 'tables/0\.cs"
    ):
        open_table(f"{tmp_path / 'a.zip'}#9.csv")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("table", gzip.compress(paths[0].read_bytes()))
    (tmp_path / "no-suffix").write_bytes((tmp_path / "b.zip").read_bytes())
    for name in ("b.zip", "no-suffix"):
        assert len(read_table(tmp_path / name)) == 11
    table.to_parquet(tmp_path / "a.parquet")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.write(tmp_path / "a.parquet", "a.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "c.zip"), table)


def test_a_cut_off_file_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "x,y\n" + "1,2\n" * 999)
    content = (tmp_path / "a.zip").read_bytes()
    write(tmp_path / "a.zip", content.replace(b"1,2\n1,2\n", b"1,2\n1,3\n"))
    with pytest.raises(ValueError, match=r"a\.zip#a\.csv cannot be decompressed .* get it again"):
        read_table(tmp_path / "a.zip")
    write(tmp_path / "b.zip", content[:400])
    with pytest.raises(ValueError, match=r"b\.zip starts as a zip archive .* get it again"):
        read_table(tmp_path / "b.zip")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_standard_input(
    tmp_path: Path, name: str, is_packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[name](people(), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(content) if is_packed else content))
    monkeypatch.setattr(sys, "stdin", stream)
    source = open_table("-")
    assert source.name == "standard input"
    pd.testing.assert_frame_equal(source.read(), people())
    assert source.take([1])["age"].tolist() == people()["age"][1:2].tolist()
    with pytest.raises(ValueError, match="standard input is empty, or was read already; pipe"):
        open_table("-")


def test_faults(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, people())
    other = write(tmp_path / "other.csv", "u,v\n1,2\n")
    (tmp_path / "deeper").mkdir()
    people().to_parquet(tmp_path / "deeper" / "a.parquet")
    places: dict[str, Any] = {
        "no file matches .*2023-.*; correct the pattern": tmp_path / "2023-*.csv",
        r"holds tables of several formats \(0\.csv, a\.parquet\); name": tmp_path,
        r"other\.csv has no column in common with .*0\.csv": [*paths, other],
        "a list of tables is empty": [],
        "cannot hold data frames; join them": [open_table(people()), paths[0]],
        r"0\.csv is neither a workbook nor an archive; leave out '#x'": f"{paths[0]}#x",
        "there is no file": f"{tmp_path / 'none.xlsx'}#x",
    }
    for message, place in places.items():
        with pytest.raises(ValueError, match=message):
            read_table(place)
    for path in paths:
        write(path, "age,height\n")
    with pytest.raises(ValueError, match="has no rows; give a table"):
        read_table(paths)


def test_texts_of_a_column_are_those_of_the_files(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "a,b\nTRUE,1.10\nFALSE,1e3\n")
    write(tmp_path / "2.csv", "a,b\nRTUE,1.2b\n,1.10\n")
    for paths in (["1.csv", "2.csv"], ["2.csv", "1.csv"]):
        table = open_table([tmp_path / path for path in paths]).read()
        found = dict(zip(table["b"], table["a"], strict=False))
        assert sorted(table["a"].dropna()) == ["FALSE", "RTUE", "TRUE"]
        assert sorted(table["b"]) == ["1.10", "1.10", "1.2b", "1e3"]
        assert found["1e3"] == "FALSE"
