"""`qms22 detect --marks`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused, run, words_of
from visits import write_visits

from qms22.tables import read_table

DETECT = ("detect", "normal.csv", "batch.csv", "--n-jobs", "1", "-q")
BY_NAME = (*DETECT, "--id", "visit", "--label", "sick")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_visits(tmp_path)


def mark_first(source: Path, target: Path, n_rows: int) -> pd.DataFrame:
    """Do what an analyst does in a spreadsheet, which writes numbers and dates in its own way."""
    table = pd.read_csv(source)
    marks = table["mark"].copy() if "mark" in table else pd.Series(index=table.index, dtype=object)
    left = table.index[table["rank"].notna() & marks.isna()][:n_rows]
    marks[left] = np.where(table["sick"][left] == 1, "Anomaly", "normal")
    table["mark"] = marks
    table["day"] = pd.to_datetime(table["day"]).dt.strftime("%d.%m.%Y")
    table["pulse"] = table["pulse"].round(7)
    table.to_csv(target, index=False, sep=";", decimal=",", encoding="latin-1")
    return table


def test_look_mark_and_run_again(files: Path) -> None:
    result = run(*BY_NAME, "-k", "8", "-o", "first.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    first = mark_first(files / "first.csv", files / "marks.csv", 5)
    n_sick = int(first["sick"][:5].sum())
    result = run(*BY_NAME, "-k", "8", "--marks", "marks.csv", "-o", "second.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("rank,visit,score,flagged,reasons,p_value,false_at_most,mark\n")
    used = (
        f"5 marks used: {n_sick} anomalies, {5 - n_sick} normal; the other 145 rows were searched"
    )
    assert used in result.stderr
    assert "note:" not in result.stderr
    second = pd.read_csv(files / "second.csv")
    assert set(second["visit"][-5:]) == set(first["visit"][:5])
    assert second["rank"][:-5].tolist() == [*range(1, 146)]
    assert second["mark"].notna().tolist() == [False] * 145 + [True] * 5
    # A third time, with the marks of both.
    mark_first(files / "second.csv", files / "more.csv", 3)
    outputs = ("-o", "third.parquet", "--report", "p.html", "--save-model", "m.skops")
    result = run(*BY_NAME, "-k", "3", "--marks", "more.csv", *outputs, cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "8 marks used: " in result.stderr
    assert pd.read_parquet(files / "third.parquet")["rank"].count() == 142
    assert "8 marks used: " in (files / "p.html").read_text()
    assert run("score", "m.skops", "batch.csv", cwd=files).exit_code == 0


def test_marks_of_an_earlier_batch(files: Path) -> None:
    assert run(*BY_NAME, "-o", "first.csv", cwd=files).exit_code == 0
    marks = pd.read_csv(files / "first.csv").assign(mark=None)[:6]
    marks["mark"] = "anomaly"
    marks.to_csv(files / "marks.csv", index=False)
    later = read_table(files / "batch.csv").iloc[::-1].assign(visit=[f"W{at}" for at in range(150)])
    later.assign(pulse=later["pulse"] + 1).to_csv(files / "later.csv", index=False)
    command = [part if part != "batch.csv" else "later.csv" for part in BY_NAME]
    result = run(*command, "--marks", "marks.csv", "-k", "5", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert (
        "6 of 6 marked rows are not in later.csv and are taken for rows of other" in result.stderr
    )
    assert "6 marks used: 6 anomalies, 0 normal (6 of rows of other tables)" in result.stderr


def test_one_file_with_a_marker(files: Path) -> None:
    normal, batch = (pd.read_csv(files / f"{name}.csv") for name in ("normal", "batch"))
    mixed = pd.concat([batch.drop(columns="sick").assign(seen=""), normal.assign(seen="ok")])
    mixed.to_csv(files / "mixed.csv", index=False)
    command = ("detect", "mixed.csv", "--marker", "seen", *DETECT[3:], "--id", "visit")
    (files / "marks.csv").write_text("visit,mark\nV1-00020,anomaly\nV1-00003,ok\n")
    result = run(*command, "--marks", "marks.csv", "-o", "o.json", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "2 marks used: 1 anomaly, 1 normal" in result.stderr
    assert pd.read_json(files / "o.json")["mark"].tolist()[-2:] == ["anomaly", "normal"]


def test_several_files(files: Path) -> None:
    (files / "one.csv").write_text("visit,mark\nV1-00020,anomaly\n")
    (files / "two.csv").write_text("visit,mark,note\nV1-00003,ok,again\nV1-00020,unsure,\n")
    result = run(*BY_NAME, "--marks", "one.csv", "--marks", "two.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "2 marks used: 1 anomaly, 1 normal" in result.stderr
    (files / "three.csv").write_text("visit,mark\nV1-00020,normal\n")
    result = run(*BY_NAME, "--marks", "one.csv", "--marks", "three.csv", cwd=files)
    assert_refused(result, "three.csv marks visit V1-00020 as normal, and another table of marks")
    result = run(*BY_NAME, "--marks", "one.csv", "--marks", "two.csv", "-o", "two.csv", cwd=files)
    assert_refused(result, "--output two.csv would overwrite the input two.csv")


def test_row_numbers_alone(files: Path) -> None:
    (files / "marks.csv").write_text("row,mark\n20,anomaly\n")
    result = run(*DETECT, "--ignore", "sick", "--marks", "marks.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    note = "note: marks.csv names rows by number only, and they are taken for rows of batch.csv"
    assert note in words_of(result.stderr)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("visit,mark\nV1-00001,yes\n", "marks.csv marks visit V1-00001 as 'yes', which is not"),
        ("visit,note\nV1-00001,ok\n", "marks.csv has no column 'mark' with the marks"),
        ("visit,mark\nV1-00001,\n", "marks.csv has no marks in its column 'mark'"),
        ("visit,mark\nV9,ok\n", "marks.csv: batch.csv has no visit V9, and the file lacks"),
        (
            "visit,mark\nV1-00001,ok\nV1-00001,anomaly\n",
            "marks.csv marks visit V1-00001 both as anomaly and as normal",
        ),
        ("visit,age,mark\nV1-00001,7,ok\n", "visit V1-00001 has age 7, but"),
        ("age,mark\n7,ok\n", "it has neither a column 'row' nor one that id names"),
        ("", "marks.csv is empty"),
        (None, "marks.csv"),
    ],
)
def test_refusals(files: Path, content: str | None, words: str) -> None:
    if content is not None:
        (files / "marks.csv").write_text(content)
    before = set(files.iterdir())
    outputs = ("-o", "o.csv", "--report", "p.html", "--save-model", "m.skops")
    assert_refused(run(*BY_NAME, "--marks", "marks.csv", *outputs, cwd=files), words)
    assert set(files.iterdir()) == before


def test_marks_are_not_overwritten(files: Path) -> None:
    (files / "marks.csv").write_text("visit,mark\nV1-00001,ok\n")
    result = run(*BY_NAME, "--marks", "marks.csv", "-o", "marks.csv", cwd=files)
    assert_refused(result, "--output marks.csv would overwrite the input marks.csv")
