"""Every format and compression gives the same table."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pandas as pd
import pytest
from keel_files import real_keel
from table_files import PACKERS, WRITERS, people, write, write_arff

from qms22.tables import TabularEncoder, open_table, read_mixed, read_table
from qms22_bench.datasets.keel_sources import from_directory

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_frame(tmp_path: Path, name: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    pd.testing.assert_frame_equal(open_table(tmp_path / name).read(), people())


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather"])
def test_compressed(tmp_path: Path, name: str, ending: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    packed = PACKERS[ending]((tmp_path / name).read_bytes())
    for path in (tmp_path / (name + ending), tmp_path / f"{ending[1:]}-without-ending"):
        pd.testing.assert_frame_equal(read_table(write(path, packed)), people())


@pytest.mark.parametrize("name", ["a.arff", "a.dat", "arff-without-ending"])
def test_arff(tmp_path: Path, name: str) -> None:
    table = people().drop(columns="member")
    write_arff(table, tmp_path / name)
    found = read_table(tmp_path / name)
    pd.testing.assert_frame_equal(found, table, check_dtype=False)


def test_dat_need_not_be_keel(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.dat", "x   y\n1   2.5\n 10 3.5 \n"))
    assert found.to_dict("list") == {"x": [1, 10], "y": [2.5, 3.5]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather", "a.arrow"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_pipe_is_read_once(tmp_path: Path, name: str, ending: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    os.mkfifo(tmp_path / "pipe")
    packed = PACKERS[ending](content) if ending else content
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[packed])
    writer.start()
    source = open_table(tmp_path / "pipe")
    writer.join()
    assert source.n_bytes >= len(content)
    pd.testing.assert_frame_equal(source.read(), people())
    assert source.take([3])["city"].tolist() == people()["city"][3:4].tolist()


def test_a_source_is_returned_unchanged(tmp_path: Path) -> None:
    source = open_table(write(tmp_path / "a.csv", "x\n1\n2\n"))
    assert open_table(source) is source


def test_keel_abalone19() -> None:
    path = from_directory("abalone19", real_keel()).whole("abalone19")
    table = read_table(path)
    assert table.shape == (4174, 9)
    normal, unlabeled = read_mixed(path, table.columns[-1])
    assert (len(normal), len(unlabeled)) == (4142, 32)
    encoder = TabularEncoder().fit(normal)
    assert [column.kind for column in encoder.columns_] == ["category"] + ["number"] * 7
    matrix = encoder.transform(unlabeled)
    assert matrix.shape == (32, 11)
    assert (matrix[:, encoder.groups_["Sex"]].sum(axis=1) == 1).all()
    assert not matrix[:, 3].any()  # nothing unseen
