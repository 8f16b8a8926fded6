from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keel_files import real_keel
from table_files import PACKERS, people, write_arff, write_stream

from qms22.datasets.keel_sources import from_directory
from qms22.tables import TabularEncoder, read_mixed, read_table

pa = pytest.importorskip("pyarrow")

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


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_frame(tmp_path: Path, name: str) -> None:
    WRITERS[name](people(), tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), people())


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


def test_blanks_after_commas(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", 'x, y, z\n1, "a, b", 2\n3, c, 4\n'))
    assert found.to_dict("list") == {"x": [1, 3], "y": ["a, b", "c"], "z": [2, 4]}


def test_formulas_and_markup_survive(tmp_path: Path) -> None:
    cells = [
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-2+3",
        "@SUM(1+1)",
        "\t=1+1",
        "<script>alert(1)</script>",
    ]
    table = pd.DataFrame({"<b>name</b>": cells, "=x": range(len(cells))})
    table.to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.csv"), table)


def test_missing_cells(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", "x,y,z\n1,a,\nNA,?,\n3,,\n"))
    assert found["x"].isna().tolist() == [False, True, False]
    assert found["y"].isna().tolist() == [False, True, True]
    assert found["z"].isna().all()


def test_numbers_are_exact(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    table = pd.DataFrame({"x": numbers, "big": 2**53 + np.arange(500)})
    table.to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.csv"), table, check_exact=True)


def test_codes_stay_text(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", "zip,hex,n\n01234,0x1F,+5\n99999,0x20,1e3\n"))
    assert found["zip"].tolist() == ["01234", "99999"]
    assert found["hex"].tolist() == ["0x1F", "0x20"]
    assert found["n"].tolist() == [5.0, 1000.0]


def test_decimal_commas_need_agreement(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", "x;y\n1,5;1.5\n2,5;2.5\n"))
    assert found["x"].tolist() == ["1,5", "2,5"]
    assert found["y"].tolist() == [1.5, 2.5]


def test_trailing_separators(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", "x;y;\n1;2;\n3;4;\n"))
    assert found.to_dict("list") == {"x": [1, 3], "y": [2, 4]}


def test_line_breaks_in_quotes(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", '"x\nin m",y\r\n1,"a\nb"\r\n2,c\r\n\x1a'))
    assert found.to_dict("list") == {"x\nin m": [1, 2], "y": ["a\nb", "c"]}


def test_one_column(tmp_path: Path) -> None:
    assert read_table(write(tmp_path / "a.csv", "x\n1\n2\n"))["x"].tolist() == [1, 2]


_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8
).map(lambda text: f"t{text}".strip())


@settings(max_examples=60, deadline=None)
@given(
    separator=st.sampled_from(",;\t|"),
    names=st.lists(
        _TEXTS.filter(lambda name: " " not in name), min_size=2, max_size=5, unique=True
    ),
    data=st.data(),
)
def test_separators_are_found(separator: str, names: list[str], data: st.DataObject) -> None:
    others = ",;\t|".replace(separator, "")
    names = [name.translate(str.maketrans("", "", others)) for name in names]
    if len(set(names)) < len(names):
        return
    row = st.lists(_TEXTS, min_size=len(names), max_size=len(names))
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows([names, *rows])
    with tempfile.TemporaryDirectory() as folder:
        found = read_table(write(Path(folder, "a.csv"), text.getvalue()))
    assert found.columns.tolist() == names
    assert found.to_numpy().tolist() == rows


def test_keel_abalone19(tmp_path: Path) -> None:
    files = from_directory("abalone19", real_keel())
    content = files.contents[files.whole("abalone19")]
    path = write(tmp_path / "abalone19.dat", content)
    table = read_table(path)
    assert table.shape == (4174, 9)
    normal, unlabeled = read_mixed(path, table.columns[-1])
    assert (len(normal), len(unlabeled)) == (4142, 32)
    encoder = TabularEncoder().fit(normal)
    assert [column.kind for column in encoder.columns_] == ["categorical"] + ["numeric"] * 7
    matrix = encoder.transform(unlabeled)
    assert matrix.shape == (32, 11)
    assert (matrix[:, encoder.groups_["Sex"]].sum(axis=1) == 1).all()
    assert not matrix[:, 3].any()  # nothing unseen
