from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from qms22.tables import read_mixed


@pytest.mark.parametrize(
    ("marker", "values"),
    [
        ("status", ["Normal", "NORMAL ", "", "attack"]),
        ("status", ["ok", "ok", None, None]),
        ("is_normal", [1, 1, 0, 0]),
        ("is_normal", [1.0, 1.0, None, 0.0]),
        ("is_normal", [True, True, False, False]),
        ("known", ["x", "x", None, None]),
        ("known", ["yes", "yes", "no", None]),
        ("Class", ["negative", "negative", "positive", "positive"]),
        ("label", [" benign", "benign", "?", "malware"]),
    ],
)
def test_guessed(tmp_path: Path, marker: str, values: list[Any]) -> None:
    table = pd.DataFrame({"at": [10, 11, 12, 13], marker: values})
    table.to_csv(tmp_path / "a.csv", index=False)
    for normal, unlabeled in (
        read_mixed(table, marker),
        read_mixed(tmp_path / "a.csv", marker),
    ):
        assert normal.columns.tolist() == ["at"]
        assert normal["at"].tolist() == [10, 11]
        assert unlabeled["at"].tolist() == [12, 13]
        assert unlabeled.index.tolist() == [2, 3]


@pytest.mark.parametrize("normal", [0, "0", 0.0, [0], ("0",)])
def test_given(normal: Any) -> None:
    table = pd.DataFrame({"at": [10, 11, 12], "label": [0, 1, 0]})
    assert read_mixed(table, "label", normal=normal)[0]["at"].tolist() == [10, 12]


@pytest.mark.parametrize(
    ("marker", "values", "expected"),
    [
        ("label", [0, 1], "none surely mean normal"),
        ("is_outlier", [0, 1], "none surely mean normal"),
        ("kind", ["a", "b"], "'a', 'b', of which none surely"),
        ("kind", list("abcdefg"), "'e' and 2 more"),
        ("kind", ["ok", "good"], "several may mean normal"),
        ("kind", [None, None], "no values"),
        ("kind", ["ok", "ok"], "marks all 2 rows"),
        ("other", ["ok", None], "no column 'kind'"),
    ],
)
def test_doubtful(marker: str, values: list[Any], expected: str) -> None:
    table = pd.DataFrame({"at": range(len(values)), marker: values})
    with pytest.raises(ValueError, match=expected):
        read_mixed(table, "kind" if marker == "other" else marker)


def test_given_is_not_there() -> None:
    table = pd.DataFrame({"at": [1, 2], "label": ["a", "b"]})
    with pytest.raises(ValueError, match="no value 'c'"):
        read_mixed(table, "label", normal="c")
