"""Delimited text with more than a table in it: titles, footers, headers within, uneven rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import assert_same_in_parts, write

from qms22.tables import open_table, read_table
from qms22.tables.sources import compressed, csv_file
from qms22.tables.sources.header import find_header, unique_names

pytest.importorskip("pyarrow")

ROWS = "1,2.5,a\n2,3.5,b\n3,4.5,a\n"
TABLE = {"id": [1, 2, 3], "x": [2.5, 3.5, 4.5], "kind": ["a", "b", "a"]}
HEADER = "id,x,kind\n"


def read(folder: Path, text: str | bytes) -> tuple[dict[str, list[Any]], str]:
    """Return the columns and the notes, which are the same for a table read in parts."""
    path = folder / "a.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    assert_same_in_parts(path, block=64)
    source = open_table(path)
    frame = source.read()
    assert source.names == frame.columns.tolist()
    assert source.n_rows == len(frame)
    return frame.to_dict("list"), "; ".join(source.notes).replace(str(path), "a.csv")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (HEADER + ROWS, ""),
        ("Sales report\n\n" + HEADER + ROWS, "1 line above the header left out ('Sales report')"),
        ("Sales report,,\nMay,,\n,,\n" + HEADER + ROWS, "3 lines above the header left out"),
        ("From:,2024-01-01,\n" + HEADER + ROWS, "1 line above the header left out ('From:"),
        ("Report,Sales,\n" + HEADER + ROWS, "1 line above the header left out"),
        ("Sales, all regions\n" + HEADER + ROWS, "1 line above the header left out"),
        ('"Sales\nof May"\n' + HEADER + ROWS, "1 line above the header left out"),
        (HEADER + "--,---,----\n" + ROWS, ""),
        (HEADER + ROWS + "Total,10.5,\n", "1 line below the table left out ('Total,10.5,')"),
        (HEADER + ROWS + "\nGrand total:,10.5,\n", "1 line below the table left out ('Grand"),
        (HEADER + ROWS + "\nExported on 1 May 2024\n", "1 line below the table left out ('Exp"),
        (HEADER + ROWS + "(3 rows affected)\n\n", "1 line below the table left out"),
        (HEADER + ROWS + ",,\n,,\nend of file\n,,\n", "4 lines below the table left out ('end"),
        (HEADER + ROWS + ",,\n,,\n", "2 lines without any text at the end left out"),
        (HEADER + ROWS[:16] + HEADER + ROWS[16:], "has its header once more between the rows"),
        (HEADER + ROWS[:8] + HEADER + ROWS[8:] + HEADER, "has its header 2 times more"),
        (HEADER + ROWS + "\nExported today\n" + HEADER, "2 lines below the table left out"),
        (HEADER + ROWS[:8] + "Exported today\n" + HEADER + ROWS[8:], "line 3 has words in place"),
        ("sep=,\n" + HEADER + ROWS, ""),
        ("\ufeff" + HEADER + ROWS, ""),
        ((HEADER + ROWS).encode("utf-16-le"), "is read as UTF-16, though it has no mark"),
        ((HEADER + ROWS).encode("utf-16-be"), "is read as UTF-16, though it has no mark"),
        ((HEADER + ROWS + "Total,1,\n").encode("utf-16"), "1 line below the table left out"),
        (HEADER + ROWS.replace("\n", ",\n"), ""),
        ("id,x,kind,\n" + ROWS, ""),
        (HEADER + ROWS.replace("b\n", "b,,\n"), ""),
        (" id , x,kind\n" + ROWS, ""),
    ],
)
def test_the_table_is_found(tmp_path: Path, text: str | bytes, note: str) -> None:
    found, notes = read(tmp_path, text)
    assert found == TABLE
    assert note in notes
    assert bool(note) == bool(notes)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_everything_at_once(tmp_path: Path, end: str) -> None:
    text = "Sales\n\n" + HEADER + ROWS[:8] + HEADER + ROWS[8:] + "\nTotal,10.5,\nprinted today\n"
    found, notes = read(tmp_path, text.replace("\n", end))
    assert found == TABLE
    assert notes.count("left out") == 3


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("x,x,y\n1,2,3\n", {"x": [1], "x_2": [2], "y": [3]}, "column 2 is called 'x_2'"),
        ("x,x_2,x\n1,2,3\n", {"x": [1], "x_2": [2], "x_3": [3]}, "column 3 is called 'x_3'"),
        ("x,,y\n1,2,3\n", {"x": [1], "column 2": [2], "y": [3]}, "has no name, and is called"),
        (
            "x,,\n1,2,3\n",
            {"x": [1], "column 2": [2], "column 3": [3]},
            "columns 2, 3 have no name, and are called 'column 2', 'column 3'",
        ),
        (",x\n0,5\n1,6\n", {"x": [5, 6]}, "column 1 has no name and whole numbers, taken for row"),
        (",x\na,5\nb,6\n", {"column 1": ["a", "b"], "x": [5, 6]}, "is called 'column 1'"),
        ("x,y\n1,5,6\n2,7,8\n", {"x": [5, 7], "y": [6, 8]}, "taken for row numbers"),
        ("1.5,2\n3.5,4\n", {"x1": [1.5, 3.5], "x2": [2, 4]}, "has no column names"),
        ("5.1,a\n4.9,b\n4.8,a\n", {"x1": [5.1, 4.9, 4.8], "x2": ["a", "b", "a"]}, "called x1, x2"),
        ("0,1\n3.5,4\n", {"0": [3.5], "1": [4]}, ""),
        ("town,2023,2024\nA,1,2\n", {"town": ["A"], "2023": [1], "2024": [2]}, ""),
        ("town,1952,1957\nA,1,2\n", {"town": ["A"], "1952": [1], "1957": [2]}, ""),
        ("1962,1957\n1.5,2\n", {"1962": [1.5], "1957": [2]}, ""),
        (
            "ann,1952,1957\nbob,1949,1990\n",
            {"x1": ["ann", "bob"], "x2": [1952, 1949], "x3": [1957, 1990]},
            "has no column names",
        ),
        (
            "school,math,,art,\nclass,mean,max,mean,max\nA,3,4,5,6\n",
            {
                "school / class": ["A"],
                "math / mean": [3],
                "math / max": [4],
                "art / mean": [5],
                "art / max": [6],
            },
            "",
        ),
        (
            "person,,speed,\nname,age,mean,max\nann,3,4,6\n",
            {
                "person / name": ["ann"],
                "person / age": [3],
                "speed / mean": [4],
                "speed / max": [6],
            },
            "",
        ),
        (
            "person,person,speed,speed\nname,age,mean,max\nann,3,4,6\n",
            {
                "person / name": ["ann"],
                "person / age": [3],
                "speed / mean": [4],
                "speed / max": [6],
            },
            "",
        ),
        ("7\n8\n", {"x1": [7, 8]}, "has no column names"),
        ("word\nHello, you\nyes, you, too\n", {"word": ["Hello, you", "yes, you, too"]}, ""),
        ("x\n1,5\n2,5\n", {"x": [1.5, 2.5]}, ""),
    ],
)
def test_names(tmp_path: Path, text: str, expected: dict[str, list[Any]], note: str) -> None:
    found, notes = read(tmp_path, text)
    assert found == expected
    assert note in notes
    assert bool(note) == bool(notes)


@pytest.mark.parametrize(
    ("line", "row", "note"),
    [
        ("4,5.5", [4, 5.5, None], "line 5 has fewer cells than the header"),
        ("4", [4, None, None], "line 5 has fewer cells than the header"),
        ("4,5.5,Smith, John", [4, 5.5, "Smith, John"], "line 5 has more cells than the header"),
        ("4,5.5,c,,,", [4, 5.5, "c"], ""),
    ],
)
def test_uneven_rows(tmp_path: Path, line: str, row: list[Any], note: str) -> None:
    found, notes = read(tmp_path, f"{HEADER}{ROWS}{line}\n5,6.5,a\n")
    last = pd.DataFrame(found).astype(object).iloc[3]
    assert [None if pd.isna(cell) else cell for cell in last] == row
    assert note in notes


def test_cells_are_joined_where_columns_say_so(tmp_path: Path) -> None:
    rows = "".join(f"{at},Main Street {at},{at}.5\n" for at in range(20))
    found, notes = read(tmp_path, f"id,street,x\n{rows}20,Hill Road, flat B,4.5\n")
    assert found["street"][20] == "Hill Road, flat B"
    assert found["x"][20] == 4.5
    assert "line 22 has more cells" in notes


def test_rows_that_look_like_footers(tmp_path: Path) -> None:
    for last in ("4,,", "B7,,", "total,5.5,b", "4,total,b"):
        found, _ = read(tmp_path, f"id,x,kind\n1,2,a\ntotal,3,a\n3,4,b\n{last}\n")
        assert len(found["id"]) == 4


def test_a_footer_far_into_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 14)
    monkeypatch.setattr(compressed, "SHARE_OF_MEMORY", 0.0)
    rows = "".join(f"{at};{at % 7},5;ä\n" for at in range(40_000))
    for codec in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        path = tmp_path / f"{codec}.csv"
        path.write_bytes(f"Titel\n\nn;x;ö\n{rows}n;x;ö\n1;2\n\nSumme;7;\n".encode(codec))
        source = open_table(path)
        assert source.n_rows == 40_001
        assert sum(len(chunk) for chunk in source.chunks(["x"], n_rows=999)) == 40_001
        assert len(source.notes) == 4
        assert "line 40005 has fewer cells" in source.notes[-1]


def test_sums_between_rows(tmp_path: Path) -> None:
    week = "".join(f"{at},Berlin,{at % 7},{at}.50\n" for at in range(100, 112))
    text = f"id,town,day,cost\n{week}Subtotal week,,,120.50\n{week}North Total,,,$ 33\n{week}"
    found, note = read(tmp_path, text)
    assert found["id"] == 3 * list(range(100, 112))
    assert note == "a.csv: 2 rows with sums between the others left out ('Subtotal week')"


@pytest.mark.parametrize(
    "row",
    [
        "Subtotal,Berlin,3,12.5",  # has all cells
        "Subtotal,Berlin,,",  # its other cell is no number
        "Adam,,,12.5",
        "Totalis,,,12.5",
        "Total,,,",  # no sum
    ],
)
def test_rows_that_look_like_sums(tmp_path: Path, row: str) -> None:
    rows = "".join(f"A{at},Berlin,{at % 7},{at}.50\n" for at in range(6))
    found, note = read(tmp_path, f"id,town,day,cost\n{rows}{row}\n{rows}")
    assert len(found["id"]) == 13
    assert not note


def test_sums_of_tables_with_such_levels(tmp_path: Path) -> None:
    rows = "total,Berlin,3,12.5\npart,Berlin,2,1.5\n"
    found, _ = read(tmp_path, f"kind,town,day,cost\n{rows}{rows}total,,,13.5\n{rows}")
    assert len(found["kind"]) == 7


def test_titles_need_names_below(tmp_path: Path) -> None:
    assert find_header([["a", ""], ["1", "x"], ["2", "y"]])[0] == 0
    assert find_header([["kind", "town"], ["a", "b"], ["c", "d"]])[0] == 0
    assert find_header([["note"], ["so it is", "yes"], ["or not", "no"]])[0] == 0


def test_readers_warn(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="column 2 is called 'x_2'"):
        assert read_table(write(tmp_path / "a.csv", "x,x\n1,2\n")).shape == (1, 2)


_NAMES = st.lists(st.sampled_from(["a", "a_2", "a_3", "b", ""]), max_size=8)


@given(_NAMES)
def test_unique_names(names: list[str]) -> None:
    found, notes = unique_names(names, "a.csv")
    named = [name for name in found if name]
    assert len(set(named)) == len(named)
    assert [bool(name) for name in found] == [bool(name) for name in names]
    changed = [at for at, name in enumerate(names) if found[at] != name]
    assert len(notes) == len(changed)
    assert all(names[at] in names[:at] for at in changed)


_TITLES = st.sampled_from(["", "Report\n", "Report\n\nof May\n", "Report,,\n,,\n"])
_ENDS = st.sampled_from(["", "Total,9.5,\n", "\nExported by me\n", ",,\n"])
_CELLS = st.tuples(
    st.integers(0, 99).map(str), st.floats(0, 9).map(repr), st.sampled_from(["u", "v w", ""])
)


@settings(max_examples=examples(60), deadline=None)
@given(_TITLES, _ENDS, st.lists(_CELLS, min_size=2, max_size=20), st.sets(st.integers(0, 20)))
def test_any_untidy_text(
    tmp_path_factory: pytest.TempPathFactory,
    titles: str,
    ends: str,
    rows: list[tuple[str, ...]],
    repeats: set[int],
) -> None:
    lines = [",".join(row) for row in rows]
    for at in sorted(repeats, reverse=True):
        lines.insert(at + 1, HEADER.strip())
    path = write(
        tmp_path_factory.mktemp("text") / "a.csv", titles + HEADER + "\n".join(lines) + "\n" + ends
    )
    assert_same_in_parts(path, block=128)
    source = open_table(path)
    assert source.names == ["id", "x", "kind"]
    assert source.read()["id"].tolist() == [int(row[0]) for row in rows]
    n_changes = bool(titles) + bool(ends) + bool(repeats)
    assert len(source.notes) == n_changes
