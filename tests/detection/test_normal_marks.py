"""Marks on known-normal rows: which rows leave, and what becomes of them."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22 import detect
from qms22.detection.marks.table_marks import TableMarks, read_marks
from qms22.detection.results.result_table import rows_to_check
from qms22.tables import open_table

NORMAL = pd.DataFrame(
    {
        "name": [f"n{row}" for row in range(10)],
        "size": np.arange(10.0),
        "source": ["web", "shop"] * 5,
    }
)
BATCH = NORMAL.assign(name=[f"b{row}" for row in range(10)], size=np.arange(20.0, 30.0))


def read(
    marks: pd.DataFrame | Path, normal: pd.DataFrame = NORMAL, batch: pd.DataFrame = BATCH
) -> TableMarks:
    return read_marks([open_table(marks)], open_table(normal), open_table(batch), "name", ["name"])


def words_of(marks: TableMarks) -> list[str]:
    return list(marks.words(np.arange(len(marks.normal_codes)), of_normal=True))


@pytest.mark.parametrize("key", ["name", "row"])
def test_one_table_of_marks_for_both(key: str) -> None:
    """The same row number occurs in both tables; the column "source" says which is meant."""
    names = ["n3", "b3", "n4", "b5"] if key == "name" else [3, 3, 4, 5]
    marks = pd.DataFrame(
        {
            key: names,
            "source": ["Normal ", "batch", "normal", None],
            "mark": ["anomaly", "normal", "ok", "anomaly"],
        }
    )
    found = read(marks, NORMAL.drop(columns="source"), BATCH.drop(columns="source"))
    assert words_of(found) == ["", "", "", "anomaly", "normal", *[""] * 5]
    assert found.removed.tolist() == [3]
    assert found.removed_rows["size"].tolist() == [3.0]
    assert found.decided.tolist() == [5, 3]
    assert str(found) == "3 marks used: 2 anomalies, 1 normal; 1 of the known-normal rows taken out"


def test_without_the_column_marks_are_about_the_batch() -> None:
    found = read(BATCH[2:3].assign(mark="anomaly"))  # the column "source" is that of the batch
    assert found.decided.tolist() == [2]
    assert not found.normal_codes.any()


def test_a_table_with_a_column_of_that_name(tmp_path: Path) -> None:
    table = rows_to_check(NORMAL, np.arange(10), np.arange(10.0), None, "name", 3)
    assert table.columns.tolist() == ["rank", "name", "source", "score", "mark", "size", "source_"]
    assert table["source"].tolist() == ["normal"] * 3
    assert table["name"].tolist() == ["n9", "n8", "n7"]
    table["mark"] = ["unsure", "anomaly", ""]
    table.to_csv(tmp_path / "marks.csv", index=False)
    found = read(tmp_path / "marks.csv")
    assert words_of(found)[7:] == ["", "anomaly", "unsure"]


def test_rows_that_are_not_there() -> None:
    """Anomalies are rows of another table; others may still be in this one, and must not teach."""
    rows = NORMAL.rename(columns={"source": "source_"}).assign(source="normal")
    marks = rows.assign(size=99.0, mark=["anomaly", "normal", "unsure"] + [None] * 7)
    with pytest.warns(UserWarning, match="1 of 3 marked rows is not in the frame and is taken"):
        found = read(marks)
    assert not found.normal_codes.any()
    (others,) = found.others
    assert others.table["size"].tolist() == [99.0]
    assert others.is_anomaly.tolist() == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not read(marks[1:]).others


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"name": ["n0"], "source": ["T"], "mark": ["ok"]},
            "has 'T' in its column 'source', which is not understood; write normal",
        ),
        (
            {"name": ["n0", "n1", "n2"], "source": ["normal"] * 3, "mark": ["anomaly"] * 3},
            "marks 3 of the 10 known-normal rows of the frame as anomalies, more than 20%",
        ),
        (
            {"name": ["n0", "n0"], "source": ["normal"] * 2, "mark": ["anomaly", "ok"]},
            "marks name n0 both as anomaly and as normal",
        ),
        (
            {"name": ["b0"], "source": ["normal"], "mark": ["anomaly"]},
            "the frame has no name b0, and the file lacks columns to learn from such rows ('size')",
        ),
    ],
)
def test_refusals(columns: dict[str, Any], words: str) -> None:
    tables = (NORMAL.drop(columns="source"), BATCH.drop(columns="source"))
    with pytest.raises(ValueError, match=re.escape(words)):
        read(pd.DataFrame(columns), *tables)


PLANTED = [17, 103, 104, 105, 106]
FAST: dict[str, Any] = {"k": 8, "n_jobs": 1}
PAPER: dict[str, Any] = {**FAST, "preset": "paper"}


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Known-normal rows of which five are not, and a batch with eight like these."""
    rng = np.random.RandomState(0)
    normal = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    batch = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    batch.iloc[:8] += 6
    normal.iloc[PLANTED] += 6
    normal.index = [f"index {row}" for row in range(200)]
    return normal, batch


def marks_for(normal: pd.DataFrame, rows: list[int], word: str) -> pd.DataFrame:
    return normal.iloc[rows].assign(row=rows, source="normal", mark=word)


@pytest.mark.parametrize("options", [FAST, {"fdr": 0.2, "n_jobs": 1}])
def test_removed_rows_are_known_anomalies(
    tables: tuple[pd.DataFrame, pd.DataFrame], options: dict[str, Any]
) -> None:
    """The result is that of a table without these rows, and marks of an earlier batch."""
    normal, batch = tables
    found = detect(normal, batch, marks=marks_for(normal, PLANTED, "anomaly"), **options)
    left = normal.drop(index=normal.index[PLANTED])
    marks = normal.iloc[PLANTED].assign(mark="anomaly")
    with pytest.warns(UserWarning, match="5 of 5 marked rows are not in"):
        expected = detect(left, batch, marks=marks, **options)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.flagged, expected.flagged)
    pd.testing.assert_frame_equal(found.normal, left)
    assert found.facts()["known-normal rows"] == "195"
    assert found.facts()["marks"].endswith("; 5 of the known-normal rows taken out")
    assert found.n_marked == 0


@pytest.mark.parametrize("word", ["normal", "unsure"])
def test_other_marks_change_nothing(tables: tuple[pd.DataFrame, pd.DataFrame], word: str) -> None:
    found = detect(*tables, marks=marks_for(tables[0], [3, *PLANTED], word), **PAPER)
    expected = detect(*tables, **PAPER)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.facts()["marks"] == "0 marks used: 0 anomalies, 0 normal"


def test_look_mark_and_run_again(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    normal = normal.copy()
    normal.iloc[5, 0] = np.nan  # dropped: rows after it have another position
    first = detect(normal, batch, missing="drop", **FAST)
    table = first.normal_to_check()
    assert table.columns.tolist() == ["rank", "row", "source", "score", "mark", *"abcd"]
    assert len(table) == 10  # 5 %
    assert set(PLANTED) <= set(table["row"])
    assert table.index.tolist() == [f"index {row}" for row in table["row"]]
    pd.testing.assert_frame_equal(table[list("abcd")], normal.loc[table.index])
    scores = np.sort(first.detector.score_normals())[::-1]
    np.testing.assert_array_equal(table["score"], scores[:10])
    assert len(first.normal_to_check(3)) == 3
    with pytest.raises(ValueError, match="k=200 is more than the 199 known-normal rows"):
        first.normal_to_check(200)

    table["mark"] = np.where(table["row"].isin(PLANTED), "anomaly", "normal")
    second = detect(normal, batch, missing="drop", marks=table, **FAST)
    again = second.normal_to_check()
    assert again["row"].tolist()[-5:] == PLANTED
    assert again["mark"].tolist()[-5:] == ["anomaly"] * 5
    assert again["rank"].isna().tolist() == [False] * 10 + [True] * 5
    kept = set(table["row"]) - set(PLANTED)
    assert set(again["row"][again["mark"] == "normal"]) == kept & set(again["row"])
    third = detect(normal, batch, missing="drop", marks=again, **FAST)
    np.testing.assert_array_equal(third.scores, second.scores)


def test_the_paper_detector_ranks_none(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    with pytest.raises(ValueError, match="only by detect with the preset 'recommended'"):
        detect(*tables, **PAPER).normal_to_check()


def test_drawn_rows_do_not_include_removed_ones(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    normal, batch = tables
    for table, name in ((normal, "normal"), (batch, "batch")):
        table.to_parquet(tmp_path / f"{name}.parquet", row_group_size=37, index=False)
    paths = [tmp_path / "normal.parquet", tmp_path / "batch.parquet"]
    marks = marks_for(normal, PLANTED, "anomaly")
    found = detect(*paths, marks=marks, max_samples=150, **FAST)
    assert found.normal is not None
    assert not set(found.normal.index) & set(PLANTED)
    assert 150 - len(PLANTED) <= len(found.normal) <= 150
    table = found.normal_to_check(150 - len(PLANTED))
    np.testing.assert_array_equal(table["a"], normal["a"].iloc[table["row"]])
    whole = detect(*paths, marks=marks, max_samples=200, **FAST)
    assert whole.facts()["known-normal rows"] == "195"
