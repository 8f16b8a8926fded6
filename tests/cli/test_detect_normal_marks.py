"""`qms22 detect --normal-to-check`, and `--marks` about known-normal rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from command_line import assert_refused, run, words_of
from visits import write_visits

PLANTED = [7, 40, 41, 42, 43, 300]
DETECT = ("detect", "normal.csv", "batch.csv", "--n-jobs", "1", "-q", "--ignore", "sick")
BY_NAME = (*DETECT, "--id", "visit")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two tables; six of the known-normal rows are like the anomalies of the batch."""
    write_visits(tmp_path)
    normal = pd.read_csv(tmp_path / "normal.csv")
    normal.loc[PLANTED, ["weight", "pulse"]] += [90.0, 60.0]
    normal.to_csv(tmp_path / "normal.csv", index=False)
    return tmp_path


def fill_in(source: Path, target: Path, key: str, anomalies: list[object]) -> pd.DataFrame:
    """Do what an analyst does in a spreadsheet, which writes numbers and dates in its own way."""
    table = pd.read_csv(source)
    table["mark"] = table[key].isin(anomalies).map({True: "Anomaly", False: "normal"})
    table["day"] = pd.to_datetime(table["day"]).dt.strftime("%d.%m.%Y")
    table.to_csv(target, index=False, sep=";", decimal=",", encoding="latin-1")
    return table


@pytest.mark.parametrize("key", ["row", "visit"])
def test_look_mark_and_run_again(files: Path, key: str) -> None:
    command = (*(BY_NAME if key == "visit" else (*DETECT, "--ignore", "visit")), "-k", "8")
    result = run(*command, "--normal-to-check", "check.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    written = pd.read_csv(files / "check.csv")
    assert written.columns.tolist()[:5] == ["rank", key, "source", "score", "mark"]
    assert len(written) == 20  # 5 % of 400
    assert written["mark"].isna().all()
    normal = pd.read_csv(files / "normal.csv")
    names = PLANTED if key == "row" else normal["visit"][PLANTED].tolist()
    assert set(names) <= set(written[key])

    fill_in(files / "check.csv", files / "marks.csv", key, list(names))
    more = ("--normal-to-check", "again.parquet", "-o", "second.csv", "--report", "p.html")
    result = run(*command, "--marks", "marks.csv", *more, cwd=files)
    assert result.exit_code == 0, result.stderr
    used = "6 marks used: 6 anomalies, 0 normal; 6 of the known-normal rows taken out"
    assert used in result.stderr.splitlines()
    assert "note:" not in result.stderr
    assert used in (files / "p.html").read_text()
    # The rows that left are in the new file, which can be given to --marks as it is.
    again = pd.read_parquet(files / "again.parquet")
    assert sorted(again[key][again["mark"] == "anomaly"]) == sorted(names)
    result = run(*command, "--marks", "again.parquet", "-o", "third.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert (files / "third.csv").read_bytes() == (files / "second.csv").read_bytes()


def test_one_file_about_both_tables(files: Path) -> None:
    content = "row,source,mark\n7,normal,anomaly\n7,batch,normal\n40,,unsure\n20,Batch,anomaly\n"
    (files / "marks.csv").write_text(content)
    command = (*DETECT, "--ignore", "visit", "--preset", "paper")
    result = run(*command, "--marks", "marks.csv", "-o", "o.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    used = (
        "3 marks used: 2 anomalies, 1 normal; 1 of the known-normal rows taken out; the other 148 "
        "rows were searched"
    )
    assert used in result.stderr
    assert "they are taken for rows of normal.csv" in words_of(result.stderr)
    output = pd.read_csv(files / "o.csv")
    marked = output[output["mark"].notna()].set_index("row")["mark"]
    assert marked.to_dict() == {40: "unsure", 20: "anomaly", 7: "normal"}


def test_marks_of_another_table(files: Path) -> None:
    assert run(*DETECT, "--normal-to-check", "check.csv", cwd=files).exit_code == 0
    marks = pd.read_csv(files / "check.csv", dtype={"mark": object})
    marks["mark"] = marks["row"].isin(PLANTED).map({True: "anomaly", False: "normal"})
    marks.to_csv(files / "marks.csv", index=False)
    pd.read_csv(files / "normal.csv").iloc[::-1].to_csv(files / "normal.csv", index=False)
    result = run(*DETECT, "--preset", "paper", "--marks", "marks.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    note = "6 of 20 marked rows are not in normal.csv and are taken for rows of other tables (row"
    assert note in words_of(result.stderr)
    assert "6 marks used: 6 anomalies, 0 normal (6 of rows of other tables)" in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("visit,source,mark\nV0-00001,T,ok\n", "marks.csv has 'T' in its column 'source', which"),
        (
            "visit,source,mark\nV9,normal,anomaly\n",
            "marks.csv: normal.csv has no visit V9, and the file lacks columns",
        ),
        (
            "visit,source,mark\n" + "".join(f"V0-{row:05d},normal,anomaly\n" for row in range(81)),
            "marks.csv marks 81 of the 400 known-normal rows of normal.csv as anomalies, more than",
        ),
    ],
)
def test_refusals(files: Path, content: str, words: str) -> None:
    (files / "marks.csv").write_text(content)
    result = run(*BY_NAME, "--marks", "marks.csv", "--normal-to-check", "c.csv", cwd=files)
    assert_refused(result, words)
    assert not (files / "c.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("c.json",), "--normal-to-check c.json must end in .csv, .parquet or .xlsx"),
        (("normal.csv",), "--normal-to-check normal.csv would overwrite the input normal.csv"),
        (("c.csv", "--preset", "paper"), "--normal-to-check needs the preset recommended"),
    ],
)
def test_files_that_cannot_be_written(files: Path, options: tuple[str, ...], words: str) -> None:
    assert_refused(run(*BY_NAME, "--normal-to-check", *options, cwd=files), words)
