from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from keel_files import HEADER

from qms22.tables import Table, open_table
from qms22.tables.sources.compressed import TableFile
from qms22.tables.sources.keel_file import read_keel


def read(text: str, encoding: str = "utf-8") -> Table:
    file = TableFile(Path("toy.dat"), text.encode(encoding))
    source = Table("toy.dat", lambda: read_keel(file))
    assert source.n_rows
    return source


def column(table: Table, name: str) -> list[Any]:
    return list(table.columns([name])[name].to_array())


def test_declared_numbers_are_numbers_and_sets_are_text() -> None:
    table = read(HEADER + "M,0.5,3,negative\nF, 5.0E-4 ,7,positive\n")
    assert table.names == ["Sex", "Length", "Rings", "Class"]
    assert table.label == "Class"
    assert column(table, "Sex") == ["M", "F"]
    assert column(table, "Length") == [0.5, 0.0005]
    assert column(table, "Rings") == [3.0, 7.0]
    assert column(table, "Class") == ["negative", "positive"]


def test_line_ends_blanks_and_blank_lines_change_nothing() -> None:
    rows = "M,0.5,3,negative\nF,0.1,7,positive\n"
    plain = read(HEADER + rows)
    odd = HEADER.replace("\n", "  \r\n\r\n") + "\r\n M ,\t0.5, 3 , negative   \r\n\r\n  \r\n"
    odd += "F,0.1,7, positive"
    other = read(odd)
    assert other.names == plain.names
    for name in plain.names:
        assert column(other, name) == column(plain, name)
    old_mac = read((HEADER + rows).replace("\n", "\r"))
    assert column(old_mac, "Rings") == [3.0, 7.0]


def test_header_in_the_forms_that_keel_uses() -> None:
    table = read(
        "% a comment\n@RELATION toy\n@Attribute S1 integer[1,4]\n@attribute 'a name' NUMERIC\n"
        "@attribute Class{positive,negative}   \n@input S1, a name,\n@output Class\n@DATA\n"
        "% another\n1,2.5,positive\n"
    )
    assert table.names == ["S1", "a name", "Class"]
    assert column(table, "S1") == [1.0]


def test_missing_values() -> None:
    rows = ["?,0.5,3,negative", "F,<null>,7,positive", "I,0.5, ?,positive", "<NULL>,,1,negative"]
    table = read(HEADER + "\n".join(rows))
    assert column(table, "Sex") == [None, "F", "I", None]
    assert list(table.columns()["Length"].missing) == [False, True, False, True]
    assert list(table.columns()["Rings"].missing) == [False, False, True, False]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings(encoding: str) -> None:
    # U+0085 ends a line for str.splitlines, but is only a letter gone wrong here.
    text = HEADER.replace("Sex", "Größe") + "é\x85b,0.5,3,negative\n"
    table = read(text, encoding)
    assert table.names[0] == "Größe"
    # Bytes that are not UTF-8 are read as Windows-1252, as in other text files.
    assert column(table, "Größe") == ["é…b" if encoding == "latin-1" else "é\x85b"]


def test_output_is_where_the_header_says_else_last() -> None:
    header = "@attribute Class {positive,negative}\n@attribute A real\n"
    assert read(header + "@outputs Class\n@data\npositive,1\n").label == "Class"
    assert read(header + "@data\npositive,1\n").label == "A"


def test_columns_that_are_no_inputs_are_left_out() -> None:
    table = read(HEADER.replace("@inputs Sex, Length", "@inputs Sex") + "M,0.5,3,negative\n")
    assert table.names == ["Sex", "Rings", "Class"]


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
        (HEADER.replace("@data\n", ""), r"toy\.dat has no @data line .* at line 7; .* truncated"),
        ("", r"toy\.dat has no @data line"),
        (HEADER, r"toy\.dat has no rows after @data; .* truncated"),
        (
            HEADER + "M,0.5,3,negative\nF,0.1",
            r"toy\.dat, line 10: the row has 2 values for 4 attributes; .* get it again",
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
        ("<html>not found</html>", r"toy\.dat is a web page; give .* KEEL"),
        ("not found", r"toy\.dat, line 1: expected .* got 'not found'; give a KEEL"),
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


@settings(max_examples=examples(150), deadline=None)
@given(written_tables())
def test_what_was_written_is_read(written: tuple[list[str], list[list[Any]], str]) -> None:
    expected_names, columns, text = written
    table = read(text)
    assert table.names == expected_names
    assert table.label == expected_names[-1]
    for expected, found in zip(columns, table.columns().values(), strict=True):
        assert list(found.missing) == [value is None for value in expected]
        present = [value for value in expected if value is not None]
        assert list(found.to_array()[~found.missing]) == present


def test_a_source_knows_the_class_and_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "toy.dat"
    path.write_text(HEADER + "M,0.5,3,negative\n\n?,nan,7,positive\n")
    source = open_table(path)
    assert source.label == "Class"
    assert source.place(1) == f"{path}, line 11"
    table = source.read()
    assert table["Sex"].isna().tolist() == table["Length"].isna().tolist() == [False, True]
    assert table["Rings"].tolist() == [3, 7]
