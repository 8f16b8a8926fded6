"""The verdict that `qms22 detect` prints, and where."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_coherent, run, words_of

DETECT = ("detect", "normal.csv", "batch.csv", "--n-jobs", "1")


def readings(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "series": rng.integers(1, 3, n_rows),
            **{f"sensor {at}": rng.normal(10, 2, n_rows) for at in range(15)},
            "mode": rng.choice(["run", "idle"], n_rows),
        }
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    readings(400, 1).to_csv(tmp_path / "normal.csv", index=False)
    readings(200, 2).to_csv(tmp_path / "batch.csv", index=False)
    return tmp_path


def test_the_verdict_comes_before_the_rows_on_standard_error(files: Path) -> None:
    readings(200, 2).assign(series=3).to_csv(files / "batch.csv", index=False)
    result = run(*DETECT, "--top", "5", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert len(list(csv.reader(result.stdout.splitlines()))) == 6
    assert result.stdout.startswith("rank,")
    said = words_of(result.stderr)
    assert "The batch has drifted as a whole: series" in said
    assert "advice: 'series' was left out" in said
    assert said.count("The columns that moved were left out") == 1
    # The answer comes first, notes and kinds of columns last.
    assert said.startswith("The batch has drifted")
    assert said.index("5 of 200 rows are flagged; ") < said.index("advice: ")
    assert said.index("advice: ") < said.index("numbers: sensor 0")


def test_flags_in_a_drifted_batch_come_with_one_warning(files: Path) -> None:
    batch = readings(200, 2)
    batch.iloc[:, 1:16] += 4.0
    # Beyond what all of the batch does.
    batch.iloc[:8, 1:4] += 40.0
    batch.to_csv(files / "batch.csv", index=False)
    result = run(*DETECT, "--fdr", "0.2", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) > 8
    assert words_of(result.stderr).count("The rows may be flagged only because") == 1
    assert result.stderr.count("only because the batch has drifted") == 1
    # The sentence names three columns; ten of the others are listed, and the rest counted.
    assert result.stderr.count("  moved: sensor") == 10
    assert "  moved: 2 more" in result.stderr


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_of_a_fine_batch_nothing_is_flagged_and_the_first_words_say_so(
    files: Path, seed: int
) -> None:
    readings(200, seed).to_csv(files / "batch.csv", index=False)
    result = run(*DETECT, "-o", "o.csv", cwd=files)
    verdict, answer, remark, *_ = result.stderr.splitlines()
    assert verdict.startswith("The batch looks fine: its rows and columns (200 rows)")
    assert answer == "None of 200 rows is flagged (false discovery rate 0.1)."
    assert remark.startswith("With 400 known-normal rows, a false discovery rate of 0.1 flags")
    assert remark.endswith("to flag a single row takes 1,999 known-normal rows.")
    assert result.stderr.count("1,999 known-normal rows") == 1
    assert len(result.stdout.splitlines()) == 1
    assert_coherent(pd.read_csv(files / "o.csv"))


def test_rows_that_are_flagged_by_order_of_a_fine_batch_may_all_be_normal(files: Path) -> None:
    result = run(*DETECT, "--top", "5", cwd=files)
    assert result.stderr.startswith("The batch looks fine: ")
    assert "5 of 200 rows are flagged; all of them may be normal." in result.stderr
    paper = run(*DETECT, "--preset", "paper", cwd=files)
    assert paper.stderr.startswith("The batch looks fine: its columns (200 rows)")
    assert "50 of 200 rows are flagged." in paper.stderr


def test_a_quiet_run_prints_the_verdict_that_its_note_is_about(files: Path) -> None:
    batch = readings(200, 2)
    batch.iloc[:, 1:16] += 4.0
    # Beyond what all of the batch does.
    batch.iloc[:8, 1:4] += 40.0
    batch.to_csv(files / "batch.csv", index=False)
    result = run(*DETECT, "--fdr", "0.2", "--quiet", cwd=files)
    assert "follow the advice before" in result.stderr
    assert "The batch has drifted as a whole" in result.stderr
    assert "  advice: " in result.stderr


def test_a_summary_and_a_workbook_say_what_the_terminal_does(files: Path) -> None:
    batch = readings(200, 2)
    batch.iloc[:, 1:16] += 4.0
    batch.iloc[:8, 1:4] += 40.0
    batch.to_csv(files / "batch.csv", index=False)
    outputs = ("--summary", "s.md", "-o", "o.xlsx", "--json", "r.json")
    result = run(*DETECT, "--fdr", "0.2", *outputs, cwd=files)
    data = json.loads((files / "r.json").read_text())
    assert data["remark"] in result.stderr
    assert data["verdict"]["advice"]
    sheet = pd.read_excel(files / "o.xlsx", sheet_name="result", header=None, engine="calamine")
    lines = {*zip(sheet[0], sheet[1], strict=True)}
    assert {("verdict", data[name]) for name in ("answer", "remark")} < lines
    assert {("advice", advice) for advice in data["verdict"]["advice"]} < lines
    summary = (files / "s.md").read_text()
    assert data["remark"] in summary
    assert all(f"- advice: {advice}" in summary for advice in data["verdict"]["advice"])


def test_quiet_says_nothing(files: Path) -> None:
    result = run(*DETECT, "--top", "5", "--quiet", cwd=files)
    assert result.exit_code == 0
    assert not result.stderr
    assert len(result.stdout.splitlines()) == 6
    shown = run("detect", "--help", cwd=files).stdout
    assert "no verdict" in " ".join(shown.split())


def test_texts_of_a_table_cannot_control_the_terminal(files: Path) -> None:
    for name, mode in (("normal", ["run", "idle"]), ("batch", ["\x1b[31mred\u202e", "run"])):
        table = readings(200, 3).assign(mode=mode[0])
        table.loc[::40, "mode"] = mode[1]
        table.to_csv(files / f"{name}.csv", index=False)
    result = run(*DETECT, "--top", "5", cwd=files)
    verdict = next(line for line in result.stderr.splitlines() if "drifted as a whole" in line)
    assert "mode" in verdict
    assert "\x1b" not in verdict
    assert "\u202e" not in verdict


def test_a_saved_model_prints_no_verdict(files: Path) -> None:
    assert run(*DETECT, "--save-model", "model.skops", cwd=files).exit_code == 0
    result = run("score", "model.skops", "batch.csv", cwd=files)
    assert result.exit_code == 0
    assert "The batch" not in result.stderr
