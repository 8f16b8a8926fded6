"""Delimited text: layouts, storage types, and files that are larger than a block."""

from __future__ import annotations

import contextlib
import csv
import io
import mmap
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzzing import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from table_files import assert_same_in_parts, write

from qms22.tables import open_table, read_table
from qms22.tables.sources import compressed, csv_dialect, csv_file

pytest.importorskip("pyarrow")


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
    table = pd.DataFrame({"x": numbers, "big": 10**15 - 1 - np.arange(500)})
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


# Marks that nobody sees are no part of a name.
_TEXTS = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff\u200b"
    ),
    min_size=1,
    max_size=8,
).map(lambda text: f"t{text}".strip())


@settings(max_examples=examples(60), deadline=None)
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


# What the last cell makes of its column.
LAST = ["007", "", "2.5", "inf", "x", "true", "1e3", "-3", " 4 ", '"a\nb"', "?", "1" * 19]


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("first", ["1", "2.5", "True", "", "abc"])
def test_all_cells_have_a_say_in_the_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, last: str
) -> None:
    rows = "".join(f"{at},{first}\n" for at in range(40))
    path = write(tmp_path / "a.csv", f"n,x\n{rows}9,{last}\n")
    assert_same_in_parts(path, block=64)
    expected = read_table(path)
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    for chunk in open_table(path).chunks(n_rows=10):
        assert (chunk.dtypes == expected.dtypes).all()


@pytest.mark.parametrize(
    ("last", "expected"), [("2;2", [1.5, 2.0]), ("2;2.5", ["1,5", "2"]), ("2;2,5", [1.5, 2.0])]
)
def test_a_late_decimal_point_decides_for_the_table(
    tmp_path: Path, last: str, expected: list[object]
) -> None:
    path = write(tmp_path / "a.csv", "x;y\n" + "1,5;1\n" * 40 + last + "\n")
    assert_same_in_parts(path, block=64)
    assert read_table(path)["x"][39:].tolist() == expected


_CELLS = st.sampled_from(["1", "-2", "0.5", "1,5", "", "NA", "x", "a b", "true", "007", "é", "1e5"])


@settings(max_examples=examples(60), deadline=None)
@given(
    separator=st.sampled_from([",", ";", "\t", " ", ", "]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    rows=st.lists(st.tuples(_CELLS, _CELLS, _CELLS), min_size=1, max_size=30),
)
@example(" ", "utf-8", "\n", [("1", "1,5", "1,5"), ("1", "1", "1,5"), ("1", "1", "1,5")])
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
    assert_same_in_parts(path, block=128)


def test_faults_far_into_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 4096)
    monkeypatch.setattr(compressed, "SHARE_OF_MEMORY", 0.0)
    rows = "".join(f"{at},{at % 7}\n" for at in range(5000))
    path = tmp_path / "a.csv"
    for last, words in {
        "1\n" * 6000: "line 5002: the row has fewer cells than the header, which has 2",
        '1,"2\n' + rows: "is never closed",
        "1,\0\n": "is binary",
    }.items():
        path.write_text("x,y\n" + rows + last)
        with pytest.raises(ValueError, match=words):
            list(open_table(path).chunks())
    path.write_bytes(b"x,y\n" + rows.encode() + b"1,\xe9\n")  # not UTF-8, as it turns out
    assert open_table(path).take([5000])["y"].tolist() == ["é"]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    monkeypatch.setattr(compressed, "SHARE_OF_MEMORY", share)
    source = open_table(write(tmp_path / "a.csv", "x,y\n1,2\n3,4\n"))
    assert source.n_rows == 2
    (tmp_path / "a.csv").unlink()
    assert source.take([1], ["y"])["y"].tolist() == [4]
    assert source.read()["x"].tolist() == [1, 3]
    assert source.with_texts(["x"]).read()["x"].tolist() == ["1", "3"]


def test_words_for_true_and_false(tmp_path: Path) -> None:
    found = read_table(write(tmp_path / "a.csv", "x,y,z\nTRUE, true,True\nfalse,False,\n"))
    assert found["x"].tolist() == found["y"].tolist() == [True, False]
    assert found["z"][0] == "True"  # a missing value leaves texts


@pytest.mark.parametrize("above", ["", "Genes of May\n\n", "sep=,\n"])
@pytest.mark.parametrize("end", ["", "\nx"])
def test_a_header_longer_than_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str, end: str
) -> None:
    monkeypatch.setattr(csv_dialect, "SAMPLE", 256)
    names = [f"gene_{at:06d}_x" for at in range(100)]
    header = ",".join(f'"{name}{end}"' for name in names)
    row = ",".join(["1.5"] * 100)
    path = write(tmp_path / "a.csv", f"{above}{header}\n{row}\n{row}\n{row}\n")
    found = open_table(path).read()
    assert found.shape == (3, 100)
    assert found.columns[-1] == names[-1] + end


def test_names_and_cells_longer_than_the_csv_module_reads(tmp_path: Path) -> None:
    name, cell = "n" * 300_000, "c" * 200_000
    text = f"a,{name},c\n" + "1,2,x\n" * 5 + f"1,2,{cell}\n1,2\n" + "1,2,x\n" * 5
    found = open_table(write(tmp_path / "a.csv", text)).read()
    assert found.columns.tolist() == ["a", name, "c"]
    assert found["c"][5] == cell


def test_a_header_without_an_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "_HEAD", 1000)
    names = ",".join(f"name_{at}" for at in range(1 << 16))
    with pytest.raises(ValueError, match=r"a\.csv has column names of more than 1000 characters"):
        read_table(write(tmp_path / "a.csv", names))


@pytest.mark.parametrize("after", ["", "1,2,3\n"], ids=["interrupt", "error"])
def test_python_does_not_end_while_pyarrow_reads_ahead(tmp_path: Path, after: str) -> None:
    """An error may keep the reader until the end, when a thread of it would abort the process."""
    rows = b"0.12345,1.23456,2.34567,3.45678\n" * 10_000
    (tmp_path / "a.csv").write_bytes(b"x,y,z,u\n" + rows + after.encode() + rows * 250)
    code = """
from pathlib import Path
from qms22.tables.sources.compressed import TableFile
from qms22.tables.sources import csv_file
csv_file._LARGE_BLOCK = 1 << 20
text = csv_file._Text(TableFile(Path("a.csv")))
batches = text._parse(csv_file.Repair(text._dialect, "a.csv"), is_ragged=False)
next(batches)
next(batches)
raise KeyboardInterrupt
"""
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=300
        )
        assert done.returncode in (1, 130, -signal.SIGINT), done.stderr


@pytest.mark.parametrize("rows", ["1,a\n2,b\n", "1,a\n2\n3,c\n", '1,"a\n2,b\n'])
def test_no_thread_has_the_text_any_more(tmp_path: Path, rows: str) -> None:
    """A thread of Arrow that lets go of it while Python ends aborts the process."""
    for _ in range(200):
        text = b"x,y\n" + rows.encode()
        content: Any = mmap.mmap(-1, len(text))
        content[:] = text
        with contextlib.suppress(ValueError):
            csv_file.read_csv(compressed.TableFile(tmp_path / "a.csv", content))
        content.close()  # BufferError if someone still has it
