"""Cells that were taken for something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run

from qms22.tables import TabularEncoder, read_table

CONTROLS = [*range(1, 9), 11, 12, *range(14, 32), 127]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize("code", CONTROLS)
def test_control_characters(tmp_path: Path, code: int, encoding: str) -> None:
    """A control character in a cell of a text file, in three encodings"""
    path = tmp_path / "a.csv"
    text = f"name,x\né{chr(code)}b,1\ncd,2\n"
    path.write_text(text, encoding=encoding, newline="")
    frame = read_table(path)
    assert frame["x"].tolist() == [1, 2]
    assert frame["name"].tolist() == [f"é{chr(code)}b", "cd"]


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a"])
@pytest.mark.parametrize("content", [b"x,y\n1,2\x00\n3,4\n", bytes(range(1, 256)) * 20])
def test_what_is_not_text(tmp_path: Path, name: str, content: bytes) -> None:
    """Bytes that are no text, under names of text files"""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} is binary, not text"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("output", ["o.csv", "o.xlsx", "o.json", "o.jsonl", "o.parquet", "o.db#t"])
def test_control_characters_in_outputs(tmp_path: Path, output: str) -> None:
    """Control characters in cells and names of columns, in every kind of output and on the page"""
    odd = "".join(map(chr, CONTROLS))
    for name, n_rows in (("n.csv", 80), ("b.csv", 40)):
        frame = pd.DataFrame({f"a{odd}": range(n_rows), "b": [at * 7 % 11 for at in range(n_rows)]})
        frame["word"] = [f"{'xyz'[at % 3]}{odd}" for at in range(n_rows)]
        frame.to_csv(tmp_path / name, index=False)
    written = ("-o", output, "--report", "page.html", "--save-model", "m.skops")
    found = run("detect", "n.csv", "b.csv", "-k", 3, *written, cwd=tmp_path)
    assert found.exit_code == 0, found.output
    sheet = "#rows" if output.endswith(".xlsx") else ""
    assert len(read_table(f"{tmp_path}/{output}{sheet}")) == 40
    shown = set((tmp_path / "page.html").read_text()) & set(map(chr, CONTROLS))
    assert not shown


@pytest.mark.parametrize("n_digits", [16, 17, 18, 19, 20, 30])
def test_long_digits(tmp_path: Path, n_digits: int) -> None:
    """Strings of more than 15 digits, which floats would round"""
    path = tmp_path / "a.csv"
    codes = [f"{7 * 10 ** (n_digits - 1) + 13 * at}" for at in range(200)]
    pd.DataFrame({"card": codes, "x": [at * 7 % 11 for at in range(200)]}).to_csv(path, index=False)
    frame = read_table(path)
    assert frame["card"].tolist() == codes
    [column, _] = TabularEncoder().fit(frame).columns_
    assert column.kind == "identifier"


def test_long_digits_among_numbers(tmp_path: Path) -> None:
    """One string of 16 digits in a column of numbers keeps all its digits; decimals stay numbers"""
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,0.12345678901234567\n1234567890123456,2\n3,-7.5\n")
    frame = read_table(path)
    assert frame["x"].tolist() == ["1", "1234567890123456", "3"]
    assert frame["y"].tolist() == [0.12345678901234567, 2.0, -7.5]


@pytest.mark.parametrize(
    ("name", "texts", "kinds"),
    [
        ("cars", ["1 vehicle"] * 50 + ["2 vehicles"] * 5 + ["3 to 4", "5 to 8"], "category"),
        ("cars", ["1 vehicle"] * 50 + ["2 vehicles"] * 5 + ["3 vehicles"], "category"),
        ("term", ["36 months"] * 50 + ["60 months"] * 5, "number"),
        ("cid", [f"{2000 + at * 7919}" for at in range(40)], "category"),
        ("cars", ["1 vehicle"] * 50 + ["more than 8"] * 2, "category"),
        ("county", [f"{at:05d}" for at in range(1001, 30000, 1000)], "identifier"),
        ("fips", [f"{at}" for at in range(1001, 30000, 1000)], "category"),
        ("journal", [f"{at:04d}-{7 * at % 997:03d}X" for at in range(40)], "identifier"),
        ("issn", [f"{20000000 + at * 7919}" for at in range(40)], "category"),
    ],
)
def test_codes_and_bands(tmp_path: Path, name: str, texts: list[str], kinds: str) -> None:
    """Bands such as "5 to 8", "1 vehicle", and codes such as FIPS, ISSN and CID, are no numbers"""
    rng = np.random.RandomState(0)
    path = tmp_path / "a.csv"
    # Identifiers differ in all rows; of categories, rows have some.
    cells = texts if kinds == "identifier" else rng.choice(texts, 600)
    pd.DataFrame({name: cells, "x": rng.normal(size=len(cells))}).to_csv(path, index=False)
    [column, _] = TabularEncoder().fit(read_table(path)).columns_
    assert column.kind == kinds


def test_columns_alike(tmp_path: Path) -> None:
    """Two columns of the same things get the same kind, if one alone would be an identifier"""
    rng = np.random.RandomState(0)
    winners, losers = rng.choice(range(100_000, 100_040), 400), rng.permutation(400) + 100_000
    frame = pd.DataFrame({"winner_id": winners, "loser_id": losers, "x": rng.normal(size=400)})
    kinds = {each.name: each.kind for each in TabularEncoder().fit(frame).columns_}
    assert kinds == {"winner_id": "category", "loser_id": "category", "x": "number"}
    # Orders are not customers.
    frame = frame.rename(columns={"winner_id": "customer_id", "loser_id": "order_id"})
    frame["order_id"] += 500_000
    kinds = {each.name: each.kind for each in TabularEncoder().fit(frame).columns_}
    assert (kinds["customer_id"], kinds["order_id"]) == ("category", "identifier")


def test_missing_cells_of_databases(tmp_path: Path) -> None:
    r"""`\N`, which MySQL, PostgreSQL and Hive write for missing cells"""
    path = tmp_path / "a.tsv"
    path.write_text("x\tname\n1\ta\n\\N\t\\N\n3\tc\n")
    frame = read_table(path)
    assert frame["x"].isna().tolist() == [False, True, False]
    assert frame["name"].isna().tolist() == [False, True, False]
