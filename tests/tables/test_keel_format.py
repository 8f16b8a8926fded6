from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keel_files import HEADER

from qms22.tables.columns import Table, is_missing
from qms22.tables.keel_format import read_dat


def read(text: str) -> Table:
    return read_dat(text.encode(), "toy.dat")


def column(table: Table, name: str) -> list[Any]:
    return list(table.columns[table.names.index(name)])


def test_declared_numbers_are_numbers_and_sets_are_text() -> None:
    table = read(HEADER + "M,0.5,3,negative\nF, 5.0E-4 ,7,positive\n")
    assert table.names == ("Sex", "Length", "Rings", "Class")
    assert table.label == "Class"
    assert table.features == ("Sex", "Length", "Rings")
    assert column(table, "Sex") == ["M", "F"]
    assert column(table, "Length") == [0.5, 0.0005]
    assert column(table, "Rings") == [3.0, 7.0]
    assert list(table.labels) == ["negative", "positive"]


def test_line_ends_blanks_and_blank_lines_change_nothing() -> None:
    rows = "M,0.5,3,negative\nF,0.1,7,positive\n"
    plain = read(HEADER + rows)
    odd = HEADER.replace("\n", "  \r\n\r\n") + "\r\n M ,\t0.5, 3 , negative   \r\n\r\n  \r\n"
    odd += "F,0.1,7, positive"
    other = read(odd)
    assert other.names == plain.names
    for ours, theirs in zip(other.columns, plain.columns, strict=True):
        assert list(ours) == list(theirs)
    old_mac = read((HEADER + rows).replace("\n", "\r"))
    assert column(old_mac, "Rings") == [3.0, 7.0]


def test_header_in_the_forms_that_keel_uses() -> None:
    table = read(
        "% a comment\n@RELATION toy\n@Attribute S1 integer[1,4]\n@attribute 'a name' NUMERIC\n"
        "@attribute Class{positive,negative}   \n@input S1, a name,\n@output Class\n@DATA\n"
        "% another\n1,2.5,positive\n"
    )
    assert table.names == ("S1", "a name", "Class")
    assert column(table, "S1") == [1.0]


def test_missing_values() -> None:
    rows = ["?,0.5,3,negative", "F,<null>,7,positive", "I,0.5, ?,positive", "<NULL>,,1,negative"]
    table = read(HEADER + "\n".join(rows))
    assert column(table, "Sex") == [None, "F", "I", None]
    assert list(is_missing(table.columns[1])) == [False, True, False, True]
    assert list(is_missing(table.columns[2])) == [False, False, True, False]
    with pytest.raises(ValueError, match=r"all 4 rows of toy\.dat have missing values .* impute"):
        table.rows(np.zeros(4, dtype=np.bool_))


def test_rows_with_missing_values_are_left_out() -> None:
    table = read(HEADER + "M,0.5,3,negative\nF,<null>,7,positive\nI,0.6,1,positive\n")
    rows = table.rows(np.array([False, True, True]))
    assert [column.tolist() for column in rows.columns] == [["M", "I"], [0.5, 0.6], [3.0, 1.0]]
    assert rows.is_outlier.tolist() == [False, True]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings(encoding: str) -> None:
    # U+0085 ends a line for str.splitlines, but is only a letter gone wrong here.
    text = HEADER.replace("Sex", "Größe") + "é\x85b,0.5,3,negative\n"
    table = read_dat(text.encode(encoding), "toy.dat")
    assert table.names[0] == "Größe"
    assert column(table, "Größe") == ["é\x85b"]


def test_output_is_where_the_header_says_else_last() -> None:
    header = "@attribute Class {positive,negative}\n@attribute A real\n"
    assert read(header + "@outputs Class\n@data\npositive,1\n").features == ("A",)
    assert read(header + "@data\npositive,1\n").label == "A"


def test_columns_that_are_no_inputs_are_left_out() -> None:
    table = read(HEADER.replace("@inputs Sex, Length", "@inputs Sex") + "M,0.5,3,negative\n")
    assert table.features == ("Sex", "Rings")


def test_quoted_values_may_hold_commas() -> None:
    table = read(
        "@attribute A {'x, y', z}\n@attribute B string\n@attribute C {p,q}\n@data\n"
        "'x, y', \"it's\", p\nz, o'clock, q\n'a\\'b', 'c', \n"
    )
    assert column(table, "A") == ["x, y", "z", "a'b"]
    assert column(table, "B") == ["it's", "o'clock", "c"]
    assert column(table, "C") == ["p", "q", None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("@data\n", ""), r"toy\.dat has no @data line .* at line 8; .* truncated"),
        ("", r"toy\.dat has no @data line"),
        (HEADER, r"toy\.dat has no rows after @data; .* truncated"),
        (
            HEADER + "M,0.5,3,negative\nF,0.1",
            r"toy\.dat, line 10: the row has 2 values for 4 attributes; .* get it anew",
        ),
        (HEADER + "M,0.5,3,negative,1\n", r"line 9: the row has 5 values for 4"),
        (HEADER + "{0 M, 1 0.5}\n", r"toy\.dat, line 9: this is a sparse ARFF row; .* dense"),
        (
            HEADER.replace("@outputs Class", "@outputs Target") + "M,0.5,3,negative\n",
            r"toy\.dat, line 7: the class column 'Target' is missing .* \(Sex, .*\); correct",
        ),
        (
            HEADER.replace("@outputs Class", "@outputs Class, Sex") + "M,0.5,3,negative\n",
            r"toy\.dat, line 7: 2 outputs are declared \(Class, Sex\); leave the class",
        ),
        (
            HEADER.replace("@inputs Sex", "@inputs Age") + "M,0.5,3,negative\n",
            r"toy\.dat, line 6: the input column 'Age' is missing",
        ),
        ("@attribute Class {a}\n@data\na\n", r"toy\.dat declares 1 attributes .* truncated"),
        (
            HEADER + "M,0.5,3,negative\n\nF,half,3,negative\n",
            r"toy\.dat, line 11: column 'Length' is declared as numbers but holds 'half'; correct",
        ),
        (HEADER + "M,-inf,3,negative\n", r"line 9: column 'Length' .* holds '-inf'"),
        (
            HEADER.replace("real [0.0, 1.0]", "relational"),
            r"toy\.dat, line 3: attribute 'Length' has the type 'relational'; declare it as real",
        ),
        ("<html>not found</html>", r"toy\.dat, line 1: expected .* got '<html>.*'; give a KEEL"),
    ],
)
def test_faults_are_named_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


WORDS = (
    st.text(st.characters(categories=["L", "Nd"], include_characters="_-.,'\" \\%@{}?"), min_size=1)
    .map(str.strip)
    .filter(lambda text: text.lower() not in {"", "?", "<null>"})
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
KINDS: st.SearchStrategy[st.SearchStrategy[Any]] = st.sampled_from([NUMBERS, WORDS])
BLANKS = st.sampled_from(["", " ", "\t", "  "])


def quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@st.composite
def written_tables(draw: st.DrawFn) -> tuple[list[str], list[list[Any]], str]:
    names = draw(st.lists(WORDS, min_size=2, max_size=5, unique=True))
    n_rows = draw(st.integers(1, 6))
    columns = [
        draw(st.lists(st.none() | kind, min_size=n_rows, max_size=n_rows))
        for kind in draw(st.lists(KINDS, min_size=len(names), max_size=len(names)))
    ]
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = ["@relation made-up"]
    for name, values in zip(names, columns, strict=True):
        texts = sorted({quote(value) for value in values if isinstance(value, str)})
        kind = "{" + ", ".join(texts) + "}" if texts else "real"
        lines.append(f"@attribute {quote(name)} {kind}")
    lines.append("@data")
    for row in zip(*columns, strict=True):
        cells = []
        for value in row:
            missing = draw(st.sampled_from(["?", "<null>", ""]))
            text = quote(value) if isinstance(value, str) else repr(value)
            cells.append(draw(BLANKS) + (missing if value is None else text) + draw(BLANKS))
        lines.append(",".join(cells))
    return names, columns, line_end.join(lines) + draw(st.sampled_from(["", line_end]))


@settings(max_examples=150, deadline=None)
@given(written_tables())
def test_what_was_written_is_read(written: tuple[list[str], list[list[Any]], str]) -> None:
    names, columns, text = written
    table = read(text)
    assert list(table.names) == names
    assert table.label == names[-1]
    for expected, found in zip(columns, table.columns, strict=True):
        assert list(is_missing(found)) == [value is None for value in expected]
        present = [value for value in expected if value is not None]
        assert list(found[~is_missing(found)]) == present
