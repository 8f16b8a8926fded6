"""Long cells take time in proportion to their length, whatever is in them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from table_files import write

from qms22.tables import TabularEncoder, open_table

pytest.importorskip("pyarrow")

LENGTH = 100_000
# Of the processor, whatever else runs. Quadratic time takes minutes for such a cell.
MOST_SECONDS = 10.0
REPEATED = [
    *(
        " ",
        "0",
        "1,",
        "1.",
        "1'",
        "1 ",
        "a",
        "A",
        "-",
        "+",
        ".",
        "'",
        "\\",
        "=",
        "_",
        "(",
        "$",
        "%",
    ),
    *(":", "/", "1:", "01/", "T", "é", "a ", "\u00a0", "total ", "Jan ", "| ", "1e", "\u0661"),
]
ENDS = ["", "!x", "xxxxx"]


@pytest.mark.parametrize("piece", REPEATED, ids=ascii)
def test_delimited_text(tmp_path: Path, piece: str) -> None:
    cells = [f"1{piece * (LENGTH // len(piece))}{end}" for end in ENDS]
    cells += [f"{piece * (LENGTH // len(piece))}{end}" for end in ENDS]
    rows = "".join(f'{at},"{cell}",7.5\n' for at, cell in enumerate(cells * 2))
    path = write(tmp_path / "a.csv", "id,x,y\n" + rows)
    began = time.process_time()
    source = open_table(path)
    assert source.n_rows >= 1
    TabularEncoder().fit(source.read())
    assert time.process_time() - began < MOST_SECONDS


@pytest.mark.parametrize("piece", [" ", "'", '"', "\\", "a", "a ", "{", "\t"], ids=ascii)
def test_arff(tmp_path: Path, piece: str) -> None:
    long = piece * (LENGTH // len(piece))
    head = "@relation r\n@attribute x string\n@attribute y {a, b}\n@data\n"
    path = write(tmp_path / "a.arff", f"{head}'q',a\n'q{long},b\nq{long}'{long}x,a\n")
    began = time.process_time()
    try:
        open_table(path).read()
    except ValueError as error:
        assert "a.arff, line" in str(error)  # noqa: PT017  (both are fine)
    assert time.process_time() - began < MOST_SECONDS


def test_blanks_around_values_of_arff_are_left_out(tmp_path: Path) -> None:
    head = "@relation r\n@attribute x string\n@attribute y {a, b}\n@data\n"
    path = write(tmp_path / "a.arff", head + " it's it  ,  a \n 'p, q' , 'b' \n")
    assert open_table(path).read().to_dict("list") == {"x": ["it's it", "p, q"], "y": ["a", "b"]}
