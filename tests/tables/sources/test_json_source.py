"""JSON documents and JSON Lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import assert_same_in_parts, people, write

from qms22.tables import open_table, read_table
from qms22.tables.sources import json_file

RECORDS: list[dict[str, Any]] = [
    {"n": 1, "place": {"city": "Rome", "at": {"x": 1.5}}, "tags": ["a", 1]},
    {"n": 2, "place": {"city": "Oslo"}, "late": True},
    {"n": None, "tags": [], "late": False, "place": {}},
]


def lines(records: list[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(RECORDS)),
        ("a.json", json.dumps(RECORDS, indent=2)),
        ("no-suffix", "\ufeff" + json.dumps(RECORDS)),
        ("a.csv", json.dumps(RECORDS)),
        ("a.json", json.dumps({"status": "ok", "rows": RECORDS, "pages": [1, 2]})),
        ("a.jsonl", lines(RECORDS)),
        ("a.ndjson", lines(RECORDS).replace("\n", "\r\n\r\n")),
        ("a.json", lines(RECORDS)),
        ("no-suffix", lines(RECORDS)[:-1]),
    ],
)
def test_records(tmp_path: Path, name: str, content: str) -> None:
    found = open_table(write(tmp_path / name, content)).read()
    assert found.columns.tolist() == ["n", "place.city", "place.at.x", "tags", "late"]
    assert found["n"].tolist()[:2] == [1, 2]
    assert found["place.city"].tolist()[:2] == ["Rome", "Oslo"]
    assert found["place.at.x"].tolist()[0] == 1.5
    assert found["late"].tolist()[1:] == [True, False]
    assert found["tags"].map(lambda tags: None if tags is None else list(tags)).tolist()[0] == [
        "a",
        "1",
    ]
    assert found.isna().sum().tolist() == [1, 1, 2, 1, 1]


@pytest.mark.parametrize("orient", ["records", "split", "list"])
def test_forms_of_documents(tmp_path: Path, orient: str) -> None:
    table = people()
    content: Any = table.to_dict(orient)
    write(tmp_path / "a.json", json.dumps(content))
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.json"), table)
    assert_same_in_parts(tmp_path / "a.json")


def test_lines_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = lines(people().to_dict("records")).encode()
    for name, packed in (("a.jsonl", content), ("a.jsonl.gz", gzip.compress(content))):
        write(tmp_path / name, packed)
        pd.testing.assert_frame_equal(read_table(tmp_path / name), people())
        assert_same_in_parts(tmp_path / name)
    monkeypatch.setattr(json_file, "_RECORDS", 7)
    assert_same_in_parts(tmp_path / "a.jsonl")


def test_values_of_different_types(tmp_path: Path) -> None:
    records = [
        {"a": 1, "b": 1, "c": 2**70, "d": "N/A", "e": [1], "f": True},
        {"a": "x", "b": 2.5, "c": 5, "d": 7, "e": {"k": 1}, "f": 0},
    ]
    source = open_table(write(tmp_path / "a.jsonl", lines(records)))
    found = source.read()
    assert source.names == ["a", "b", "c", "d", "e", "f", "e.k"]
    assert found["a"].tolist() == ["1", "x"]
    assert found["b"].tolist() == [1.0, 2.5]
    assert found["c"].tolist() == [str(2**70), "5"]
    assert found["d"].isna().tolist() == [True, False]
    assert found["d"][1] == 7
    assert found["f"].tolist() == ["true", "0"]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc"),
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text()
            | st.lists(st.text()),
            min_size=1,
        ),
        min_size=1,
        max_size=9,
    )
)
@settings(max_examples=examples(60), deadline=None)
def test_lines_and_document_agree(tmp_path_factory: pytest.TempPathFactory, records: Any) -> None:
    folder = tmp_path_factory.mktemp("json")
    one = read_table(write(folder / "a.json", json.dumps(records)))
    two = read_table(write(folder / "a.jsonl", lines(records)))
    pd.testing.assert_frame_equal(one, two)
    assert len(one) == len(records)


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 10**400])
def test_whole_numbers_beside_fractions_may_be_large(tmp_path: Path, whole: int) -> None:
    records = [{"a": whole}, {"a": 0.5}, {"a": "n/a"}]
    one = read_table(write(tmp_path / "a.json", json.dumps(records)))
    two = read_table(write(tmp_path / "a.jsonl", lines(records)))
    pd.testing.assert_frame_equal(one, two)
    expected = float(whole) if abs(whole) < 10**300 else np.inf
    np.testing.assert_array_equal(one["a"], [expected, 0.5, np.nan])


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", '[{"a": "é"}]'), ("a.jsonl", '{"a": "é"}\n')]
)
@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path: Path, name: str, text: str, codec: str) -> None:
    path = write(tmp_path / name, text.encode(codec))
    assert read_table(path)["a"].tolist() == ["é"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            '{"a": 1}\n{"a": \n',
            r"a\.jsonl, line 2: this is not JSON .* correct that line",
        ),
        ("a.jsonl", '{"a": 1}\n\n[1]\n', r"a\.jsonl, line 3: expected an object .*'\[1\]'; write"),
        ("a.jsonl", "\n\n", r"a\.jsonl is empty"),
        ("a.json", '[{"a": 1}, 5]', r"a\.json: item 1 is 5, not an object; give"),
        ("a.json", '[{"a": 1}', r"a\.json is not valid JSON .* correct the file"),
        ("a.json", "[]", r"a\.json has no records"),
        ("a.json", "3", r"a\.json is JSON but not a table; give a list of objects"),
        ("a.json", '{"a": [{"b": 1}], "c": [{"d": 1}]}', "it has the lists a, c"),
        ("a.json", '{"columns": ["a"], "data": [[1], [2, 3]]}', "row 1 of 'data' is not a list as"),
        ("a.json", '{"columns": 1, "data": [[1], [2, 3]]}', "'columns' and 'data' are not"),
        ("a.json", "[" * 5000, "is not valid JSON"),
    ],
)
def test_faults(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / name, content))
