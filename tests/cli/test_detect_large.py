"""`qms22 detect` and `qms22 score` on files that are read part by part."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused, read_exactly, run, run_process, words_of
from visits import FAST, write_visits

from qms22 import detect
from qms22.detection import streaming
from qms22.tables import read_table

DETECT = ("detect", "normal.parquet", "batch.parquet", "--id", "visit", "--label", "sick")
QUICK = ("--n-jobs", "1", "-k", "8")
DRAWN = (*DETECT, *QUICK, "--max-samples", "100")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_visits(tmp_path)


def test_command(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", 300)
    result = run(*DRAWN, "-o", "o.csv", "--report", "p.html", "--save-model", "m.skops", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "by the labels: 8 of the 8 flagged rows are outliers" in result.stderr
    found = detect(files / "normal.parquet", files / "batch.parquet", max_samples=100, **FAST)
    flagged = found.summary()
    shown = pd.DataFrame(line.split(",")[:2] for line in result.stdout.splitlines()[1:])
    assert shown[1].tolist() == flagged["visit"].tolist()
    whole = read_exactly(files / "o.csv")
    assert whole["visit"].tolist() == read_table(files / "batch.csv")["visit"].tolist()
    np.testing.assert_array_equal(whole["score"], found.scores)
    assert whole["flagged"].sum() == 8
    assert (whole["reasons"].notna() == whole["flagged"]).all()
    assert "of these learned from" in (files / "p.html").read_text()
    result = run("score", "m.skops", "batch.csv", "--id", "visit", "-o", "s.parquet", cwd=files)
    assert result.exit_code == 0, result.stderr
    scored = pd.read_parquet(files / "s.parquet")
    assert scored["score"].is_monotonic_decreasing
    assert scored["visit"][:8].tolist() == flagged["visit"].tolist()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs /dev/stdin, as on Linux")
def test_pipes(files: Path) -> None:
    table = (files / "batch.csv").read_text()
    command = (*DRAWN[:2], "/dev/stdin", *DRAWN[3:], "-q", "--save-model", "m.skops")
    result = run_process(*command, cwd=files, input=table)
    assert result.returncode == 0, result.stderr
    scored = run_process("score", "m.skops", "/dev/stdin", "--id", "visit", cwd=files, input=table)
    # A model keeps no known-normal rows: it counts no combinations in them, and has no p-values.
    expected = re.sub(", as in (none|[0-9]+) of [0-9]+ normal rows", "", result.stdout)
    p_values = r",(p_value,false_at_most|[0-9.e-]+,[0-9]+)$"
    assert scored.stdout == re.sub(p_values, "", expected, flags=re.MULTILINE)


def test_large_files_are_read_part_by_part_by_themselves(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "memory_allowed", lambda: 1000)
    outputs = ("-o", "o.csv", "--save-model", "m.skops")
    result = run(*DETECT, *QUICK, *outputs, cwd=files)
    assert result.exit_code == 0, result.output
    words = words_of(result.stderr)
    assert "note: normal.parquet and batch.parquet are too large to hold in memory" in words
    assert "at most 1,000 rows of each are drawn to learn from (--max-samples)" in words
    names = read_table(files / "batch.csv")["visit"].tolist()
    assert pd.read_csv(files / "o.csv")["visit"].tolist() == names
    result = run("score", "m.skops", "batch.csv", "--id", "visit", "-o", "s.csv", cwd=files)
    assert result.exit_code == 0, result.output
    assert "note: batch.csv is too large to hold in memory" in words_of(result.stderr)
    assert pd.read_csv(files / "s.csv")["visit"].tolist() == names


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--max-samples", "0"], "0 is not in the range x>=1"),
        (
            ["--max-samples", "100", "--ignore", "height"],
            "there is no column 'height' to ignore; the columns are 'visit'",
        ),
        (
            ["--max-samples", "100", "--outlier", "7"],
            "--label sick: the column has the values 0, 1",
        ),
    ],
)
def test_refusals(files: Path, more: list[str], words: str) -> None:
    before = set(files.iterdir())
    assert_refused(run(*DETECT, "-o", "o.csv", *more, cwd=files), words)
    assert set(files.iterdir()) == before


def test_a_marker_needs_memory(files: Path) -> None:
    result = run("detect", "normal.csv", "--marker", "ward", "--max-samples", "9", cwd=files)
    assert_refused(result, "--max-samples needs two files")


def test_full_disk(files: Path) -> None:
    before = set(files.iterdir())
    result = run_process(
        *(*DRAWN, "-q", "-o", "o.parquet"),
        cwd=files,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert_refused(result, "cannot write o.parquet: ")
    assert set(files.iterdir()) == before


def test_help_tells_of_order_and_memory(tmp_path: Path) -> None:
    words = words_of(run("detect", "--help", cwd=tmp_path).stdout)
    assert "they may be larger than memory" in words
    assert "keeps its order" in words
    words = words_of(run("score", "--help", cwd=tmp_path).stdout)
    assert "keeps its order" in words
