"""Marks of an analyst: which rows they are about, and what becomes of these."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from visits import FAST, LEFT_OUT, N_BATCH, SICK, visits

from qms22 import Detection, detect
from qms22.detection import score, streaming
from qms22.detection.marks.table_marks import TableMarks, read_marks
from qms22.models import load_model, save_model
from qms22.tables import open_table

SMALL = pd.DataFrame(
    {
        "name": ["a", "b", "c", "d"],
        "size": [1.0, 2.0, 3.0, 4.0],
        "score": [5.0, 6.0, 7.0, 8.0],
        "color": ["red", "-blue", "red", "green"],
    }
)
NORMAL = SMALL.assign(name=["n1", "n2", "n3", "n4"], size=[1.5, 2.5, 3.5, 4.5])
TABLES = open_table(NORMAL), open_table(SMALL)


def read(marks: Any, batch: Any = SMALL, id_name: str | None = "name", **more: Any) -> TableMarks:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ignore = more.get("ignore", [id_name])
        sources = [open_table(each) for each in (marks if isinstance(marks, list) else [marks])]
        return read_marks(sources, open_table(NORMAL), open_table(batch), id_name, ignore)


def words_of(marks: TableMarks) -> list[str]:
    return list(marks.words(np.arange(len(marks.codes))))


def marks_of(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize("key", [{"name": ["c", "a", "d"]}, {"row": [2, 0, 3]}])
def test_rows_by_name_or_number(key: dict[str, list[Any]]) -> None:
    found = read(marks_of(**key, mark=["Normal", " ANOMALY ", "unsure"], note=["x", "y", "z"]))
    assert words_of(found) == ["anomaly", "", "normal", "unsure"]
    assert found.decided.tolist() == [0, 2]
    assert str(found) == "2 marks used: 1 anomaly, 1 normal"


def test_several_tables_name_rows_in_several_ways() -> None:
    by_name = marks_of(name=["c"], mark=["normal"])
    by_number = marks_of(row=[0, 3], size=[1.0, 4.0], mark=["anomaly", "unsure"])
    of_normal = marks_of(name=["n1"], source=["normal"], mark=["normal"])
    later = marks_of(name=["d"], mark=["anomaly"])  # counts more than "unsure"
    found = read([by_name, by_number, of_normal, later])
    assert words_of(found) == ["anomaly", "", "normal", "anomaly"]
    assert list(found.words(np.arange(4), of_normal=True)) == ["normal", "", "", ""]


def test_tables_that_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="marks name c as anomaly, and another table of marks as "):
        read(
            [marks_of(name=["c"], mark=["normal"]), marks_of(row=[0], name=["c"], mark=["outlier"])]
        )
    earlier = SMALL.assign(name=["w", "x", "y", "z"])[:1]
    with pytest.raises(ValueError, match="mark the same row of another table, one as anomaly and"):
        read([earlier.assign(mark="anomaly"), earlier.assign(mark="normal")])


@pytest.mark.parametrize("name", ["Mark", " MARK", "mark"])
def test_headers_are_matched_without_case(name: str) -> None:
    marks = pd.DataFrame({"Row": [2], name: ["normal"], "Source": ["batch"]})
    assert words_of(read(marks)) == ["", "", "normal", ""]
    # A column of the batch says nothing about marks.
    batch = SMALL.assign(Source=["x", "y", "x", "y"])
    marks = pd.DataFrame({"name": ["c"], name: ["normal"], "Source": ["x"]})
    assert words_of(read(marks, batch)) == ["", "", "normal", ""]


def test_names_that_occur_twice() -> None:
    rng = np.random.RandomState(0)
    normal = pd.DataFrame({"name": range(40), "x": rng.normal(size=40)})
    twice = normal[:8].assign(name=[*"aabbcdef"])
    found = detect(normal, twice, id="Name", k=1)
    note = "column 'name': 2 names occur more than once, such as 'a'; marks of such rows"
    assert any(each.startswith(note) for each in found.notes)
    assert not any("occur" in each for each in detect(normal, normal[:8], id="name", k=1).notes)


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        *((word, "anomaly") for word in ("anomaly", "Anomalous", "OUTLIER")),
        *((word, "normal") for word in ("normal", "OK", "inlier ")),
        *((word, "unsure") for word in ("unsure", "Unknown")),
    ],
)
def test_words(word: str, meaning: str) -> None:
    assert words_of(read(marks_of(name=["b"], mark=[word]))) == ["", meaning, "", ""]


@pytest.mark.parametrize("names", [[7, 8, 9, 10], ["7", "8", "9", "10"], [7.0, 8.0, 9.0, 10.0]])
@pytest.mark.parametrize("marked", [8, 8.0, "8"])
def test_numbers_as_names(names: list[Any], marked: Any) -> None:
    found = read(marks_of(name=[marked], mark=["ok"]), SMALL.assign(name=names))
    assert found.decided.tolist() == [1]


def test_long_numbers_are_not_rounded() -> None:
    names = [12345678901234567, 12345678901234568, 1, 2]
    found = read(marks_of(name=[names[1]], mark=["ok"]), SMALL.assign(name=names))
    assert found.decided.tolist() == [1]


def test_the_table_of_a_result_is_a_table_of_marks(tmp_path: Path) -> None:
    """Its columns have other names where they clash, and apostrophes before formulas."""
    SMALL.to_csv(tmp_path / "batch.csv", index=False)
    (tmp_path / "marks.csv").write_text(
        "rank,name,score,flagged,reasons,mark,size,score_,color\n"
        "1,b,9.5,True,,anomaly,2,6,'-blue\n2,a,8,False,,,1,5,red\n3,c,7,False,,ok,3,7,red\n"
    )
    found = read(tmp_path / "marks.csv", tmp_path / "batch.csv")
    assert words_of(found) == ["", "anomaly", "normal", ""]


def test_rows_of_another_table_are_used_by_their_cells() -> None:
    other = SMALL.assign(size=9.0)
    found = read(other.assign(mark=["anomaly", "normal", None, "unsure"]))
    assert not found.codes.any()
    assert found.others[0].table["size"].tolist() == [9.0, 9.0]
    assert found.others[0].is_anomaly.tolist() == [True, False]
    assert str(found) == "2 marks used: 1 anomaly, 1 normal (2 of rows of other tables)"
    (part,) = found.parts(*TABLES)
    assert part.table["color"].tolist() == ["red", "-blue"]


@pytest.mark.parametrize("key", ["name", "row"])
def test_rows_of_both_tables(key: str) -> None:
    """The same names and numbers occur in two tables; the cells tell which is meant."""
    table = pd.concat([SMALL, SMALL.assign(size=9.0)], ignore_index=True)
    table = table.assign(row=[0, 1, 2, 3] * 2, mark=["ok", None, None, "anomaly"] * 2)
    table = table.drop(columns="row" if key == "name" else "name")
    with pytest.warns(UserWarning, match=f"2 of 4 marked rows .* \\({key} .* has size 9.0, but 1"):
        found = read_marks([open_table(table)], *TABLES, "name", ["name"])
    assert words_of(found) == ["normal", "", "", "anomaly"]
    assert found.others[0].is_anomaly.tolist() == [False, True]


def test_a_table_without_names_is_another_table() -> None:
    table = SMALL.drop(columns="name").assign(mark="anomaly")
    with pytest.warns(UserWarning, match="4 of 4 marked rows .* neither a column 'row' nor"):
        found = read_marks([open_table(table)], *TABLES, "name", ["name"])
    assert len(found.others[0].table) == 4
    assert not found.codes.any()


def test_a_decision_counts_more_than_unsure() -> None:
    found = read(marks_of(name=["a", "a", "b", "b"], mark=["unsure", "ok", "anomaly", "unsure"]))
    assert words_of(found)[:2] == ["normal", "anomaly"]


def test_row_numbers_alone_are_taken_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "marks.csv").write_text("row,mark\n1,ok\n")
    with pytest.warns(UserWarning, match=r"marks\.csv names rows by number only"):
        found = read_marks([open_table(tmp_path / "marks.csv")], *TABLES, None, [])
    assert found.decided.tolist() == [1]


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        (marks_of(name=["a"]), "has no column 'mark' with the marks; its columns are 'name'"),
        (marks_of(name=["a"], mark=[None]), "has no marks in its column 'mark'"),
        (marks_of(name=["a", "b"], mark=["", " "]), "has no marks in its column 'mark'"),
        (
            marks_of(name=["a", "b"], mark=["ok", "yes"]),
            "marks name b as 'yes', which is not a",
        ),
        (marks_of(name=["a"], mark=[1]), "marks name a as '1', which is not a mark"),
        (marks_of(mark=["bad"]), "marks row 0 of the file as 'bad'"),
        (
            marks_of(name=["a", "z"], mark=["ok", "ok"]),
            "has no name z, and the file lacks columns to learn from such rows ('size', 'score',",
        ),
        (marks_of(row=[4], mark=["ok"]), "the frame has no row 4, and the file lacks columns"),
        (marks_of(row=[-1], mark=["ok"]), "marks row '-1', which is not a row number"),
        (marks_of(row=[1.5], mark=["ok"]), "marks row '1.5', which is not a row number"),
        (marks_of(row=[1, None], mark=["ok", "ok"]), "row 1 of the file has no row, and the file"),
        (
            marks_of(name=["a"], size=[1.5], mark=["ok"]),
            "name a has size 1.5, but 1.0 in the frame, and the file lacks columns",
        ),
        (
            marks_of(name=["a", "b", "a"], mark=["ok", "ok", "anomaly"]),
            "marks name a both as anomaly and as normal; keep one of the marks",
        ),
        (
            pd.concat([SMALL.assign(size=9, mark="ok"), SMALL.assign(size=9, mark="anomaly")]),
            "marks name a both as anomaly and as normal",
        ),
        (SMALL.assign(mark="ok"), "marks every row of the frame, so no row is left to search"),
        (marks_of(size=[1.0], mark=["ok"]), "it has neither a column 'row' nor one that id names"),
    ],
)
def test_bad_marks(marks: pd.DataFrame, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read(marks)


def test_names_that_several_rows_have() -> None:
    batch = SMALL.assign(name=["a", "a", "b", "c"])
    with pytest.raises(ValueError, match=r"marks name a, which names several rows .*rows 0 and 1"):
        read(marks_of(name=["a"], mark=["ok"]), batch)
    # Other columns tell them apart.
    found = read(marks_of(name=["a"], size=[2.0], mark=["ok"]), batch)
    assert found.decided.tolist() == [1]


def test_a_batch_with_a_column_of_marks() -> None:
    with pytest.raises(ValueError, match="has a column 'mark' of its own"):
        read(marks_of(name=["a"], mark=["ok"]), SMALL.assign(mark=1))


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to find, and rows that are more unlike the normal ones but not of interest."""
    normal, batch = visits(400, 0), visits(N_BATCH, 1)
    batch.loc[SICK, "pulse"] += 40.0
    batch.loc[BORING, "weight"] -= 90.0
    batch["sick"] = np.isin(np.arange(N_BATCH), SICK).astype(int)
    return normal, batch


BORING = [*range(40, 52)]
LOOKED_AT = [*SICK[:4], *BORING[:6]]


def marks_for(batch: pd.DataFrame, rows: list[int] = LOOKED_AT) -> pd.DataFrame:
    words = np.where(np.isin(rows, SICK), "anomaly", "normal")
    return batch.iloc[rows].assign(mark=words)


@pytest.fixture(scope="module")
def marked(tables: tuple[pd.DataFrame, pd.DataFrame]) -> Detection:
    return detect(*tables, marks=marks_for(tables[1]), **FAST)


def test_marked_rows_are_not_searched(marked: Detection) -> None:
    assert np.flatnonzero(np.isnan(marked.scores)).tolist() == LOOKED_AT
    assert not marked.flagged[LOOKED_AT].any()
    assert marked.n_scored == N_BATCH - len(LOOKED_AT)
    assert marked.n_dropped == 0
    assert np.count_nonzero(marked.flagged) == 8
    assert not set(marked.reasons) & set(LOOKED_AT)
    assert "10 marks used: 4 anomalies, 6 normal" in marked.facts()["marks"]


def test_marked_rows_come_last_with_their_marks(
    marked: Detection, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    table = marked.table()
    assert len(table) == N_BATCH
    assert table.columns.tolist()[:8] == [
        *("rank", "visit", "score", "flagged", "reasons", "p_value", "false_at_most", "mark")
    ]
    assert table.index[-10:].tolist() == LOOKED_AT
    assert table["mark"].tolist() == [""] * 140 + ["anomaly"] * 4 + ["normal"] * 6
    assert table["rank"][:140].tolist() == [*range(1, 141)]
    assert table["rank"][140:].isna().all()
    pd.testing.assert_frame_equal(
        table[tables[1].columns], tables[1].loc[table.index], check_dtype=False
    )
    assert len(marked.table(only_flagged=True)) == len(marked.summary()) == 8


def test_marks_improve_the_ranking_of_the_rest(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """What is like the rows marked as normal falls back behind what is like the anomalies."""
    rest = np.delete(np.arange(N_BATCH), LOOKED_AT)

    def area(marks: pd.DataFrame | None) -> float:
        found = detect(*tables, marks=marks, k=8, n_jobs=1, **LEFT_OUT)
        return float(roc_auc_score(np.isin(rest, SICK), found.scores[rest]))

    assert area(marks_for(tables[1])) > area(None) + 0.01


def test_the_result_is_marked_further_and_given_again(
    marked: Detection, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    table = marked.table()
    table.loc[table.index[0], "mark"] = "unsure"
    again = detect(*tables, marks=table, **FAST)
    np.testing.assert_array_equal(again.scores, marked.scores)
    assert again.table()["mark"].iloc[0] == "unsure"
    assert again.table()["rank"].iloc[0] == 1


@pytest.mark.filterwarnings("ignore:no row is flagged")
def test_false_discovery_rate(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    found = detect(*tables, marks=marks_for(tables[1]), fdr=0.3, n_jobs=1, **LEFT_OUT)
    assert found.p_values is not None
    assert np.isnan(found.p_values[LOOKED_AT]).all()
    assert np.count_nonzero(np.isnan(found.p_values)) == len(LOOKED_AT)
    assert not found.flagged[LOOKED_AT].any()


@pytest.mark.filterwarnings("ignore:no row is flagged")
def test_what_only_marked_rows_have(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """A level, a missing value and a value of another kind."""
    normal, batch = tables
    batch = batch.copy()
    batch.loc[SICK[0], "ward"] = "Z"
    batch.loc[BORING[0], "ward"] = "Y"
    marks = marks_for(batch)
    options = {**LEFT_OUT, "fdr": 0.3}
    assert detect(normal, batch, marks=marks, **options).n_scored == 140
    batch.loc[BORING[0], "weight"] = np.nan
    marks = marks_for(batch)
    with pytest.raises(ValueError, match=r"the batch \(marked\): 1 column has missing \(NaN\) val"):
        detect(normal, batch, marks=marks, missing="error", **options)
    imputed = detect(normal, batch, marks=marks, **options)
    with pytest.warns(UserWarning, match="missing values in 1 of 10 marked rows") as warned:
        dropped = detect(normal, batch, marks=marks, missing="drop", **options)
    assert {warning.filename for warning in warned} == {__file__}
    assert imputed.n_scored == dropped.n_scored == 140
    assert dropped.n_dropped == 0
    assert not np.array_equal(imputed.scores, dropped.scores, equal_nan=True)
    other = visits(3, 5).assign(sick=0, mark="normal", weight=["1", "heavy", "2"])
    with pytest.warns(UserWarning, match="3 of 3 marked rows are not in"):
        detect(*tables, marks=other, **FAST)


def test_drawn_rows_do_not_include_marked_ones(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", 300)
    paths = [tmp_path / "normal.parquet", tmp_path / "batch.parquet"]
    for table, path in zip(tables, paths, strict=True):
        table.to_parquet(path, row_group_size=37)
    found = detect(*paths, marks=marks_for(tables[1]), max_samples=120, **FAST)
    assert np.flatnonzero(np.isnan(found.scores)).tolist() == LOOKED_AT
    assert found.n_drawn < 120
    parts = pd.concat(found.tables())
    assert parts["visit"].tolist() == tables[1]["visit"].tolist()  # the order of the file
    assert parts["rank"].isna().to_numpy().nonzero()[0].tolist() == LOOKED_AT
    assert parts["mark"].iloc[SICK[0]] == "anomaly"


def test_more_to_flag_than_there_are(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    found = detect(*tables, marks=marks_for(tables[1]), **{**FAST, "k": 500})
    assert len(found.top) == 140


def test_models_that_learned_from_marks(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    found = detect(*tables, marks=marks_for(tables[1]), k=8, n_jobs=1, **LEFT_OUT)
    save_model(tmp_path / "m.skops", found.detector, encoder=found.encoder, checks=found.checks)
    again = score(load_model(tmp_path / "m.skops"), tables[1], id="visit")
    rest = np.delete(np.arange(N_BATCH), LOOKED_AT)
    np.testing.assert_array_equal(again.scores[rest], found.scores[rest])
