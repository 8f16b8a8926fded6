"""Findings and rows on a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import COMMAND, words_of

from qms22 import Detection, detect
from qms22.cli.shared import in_options, say
from qms22.cli.terminal import columns_that_matter, print_found, rows_to_show, title_of
from qms22.detection import RowReason
from qms22.detection.findings import Finding

WIDTHS = (60, 80, 120)
LONG = "a very long note that nobody wants to read on a terminal [bold]x[/bold]\x1b[2J"


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "order": [f"A{seed}{at:04d}" for at in range(n_rows)],
            "amount": rng.gamma(4, 10, n_rows).round(2),
            "country": rng.choice(["US", "DE"], n_rows),
            "note": LONG,
        }
    )


@pytest.fixture(scope="module")
def found() -> Detection:
    batch = orders(100, 2)
    batch.loc[:29, "amount"] = 70_012_345.0
    found = detect(orders(200, 1), batch, id="order", k=30, preset="paper", n_jobs=1)
    reasons = {
        row: [
            RowReason(("amount",), "amount 70012345; 99 % of normal rows are at most 95", 9.0),
            RowReason(("note", "country"), "note and country do not go together", 2.0),
        ]
        for row in range(100)
    }
    return replace(found, reasons=reasons)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def with_finding(found: Detection, rows: list[int]) -> Detection:
    finding = Finding(
        "amount > 500, outside all normal rows",
        rows=np.array(rows),
        columns=("amount",),
        normal_share=0.0,
        n_normal_like=0,
        p_value=1e-9,
        n_normal=200,
        n_batch_like=30,
    )
    return replace(found, findings=(finding,))


def shown(found: Detection, width: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    print_found(found)
    text = str(capsys.readouterr().out)
    assert max(map(len, text.splitlines())) <= width
    return text


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_fits_the_width(
    found: Detection,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(with_finding(found, [0, 1]), width, monkeypatch, capsys)
    assert text.index("1 finding") < text.index("The 30 most suspicious of 100 rows")
    assert "amount > 500, outside all normal rows" in text
    assert "A20000" in text
    assert "99 % of normal rows" in words_of(text)
    assert "and 10 more rows" in text
    assert "\x1b[2J" not in text
    assert ("70012345 " in text.replace("70012345;", "")) == (width > 60)


def test_few_rows_of_a_finding_are_shown(found: Detection) -> None:
    rows = [*range(3, 30)]
    names = rows_to_show(with_finding(found, rows)).results[1][1]
    assert {"A20000", "A20001", "A20002"} <= {*names}
    assert len(names) == 6


def test_columns_that_matter_are_chosen_by_reasons_and_room(found: Detection) -> None:
    rows = rows_to_show(found)
    assert columns_that_matter(rows, 60) == []
    assert columns_that_matter(rows, 80) == ["amount"]
    assert columns_that_matter(rows, 200) == ["amount", "note", "country"]


def test_if_nothing_is_flagged_the_first_rows_are_shown(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = replace(found, flagged=np.zeros(100, dtype=bool), fdr=0.1, p_values=np.full(100, 0.5))
    text = words_of(shown(none, 100, monkeypatch, capsys))
    title = "No row is flagged at a false discovery rate of 0.1; the most suspicious of 100 rows"
    assert f"{title}, not certain" in text
    assert text.count("99 % of normal rows") == 10
    assert "more rows" not in text


def test_titles(found: Detection) -> None:
    flagged = np.arange(100) == 3
    assert title_of(replace(found, fdr=0.2, flagged=flagged)) == (
        "1 of 100 rows is flagged at a false discovery rate of 0.2"
    )
    assert title_of(replace(found, normal=None)) == "30 of 100 rows are flagged"
    assert found.verdict is not None
    fine = replace(found, verdict=replace(found.verdict, decision="fine"))
    assert title_of(fine) == "The 30 most suspicious of 100 rows, not certain"


def test_numbers_that_name_rows_are_not_rounded(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    by_number = replace(found, id="amount")
    assert "70012345 " in shown(by_number, 60, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("message", "on_command_line"),
    [
        ("k=9 is more than the 5 rows", "--top 9 is more than the 5 rows"),
        ("give a higher fdr", "give a higher --fdr"),
        ("set missing='impute'.", "set --missing impute."),
        ("(max_samples)", "(--max-samples)"),
        ("data/fdr.csv and k=5/part.csv", "data/fdr.csv and k=5/part.csv"),
        ("column 'fdr' or \"n_jobs\"", "column 'fdr' or \"n_jobs\""),
    ],
)
def test_messages_speak_in_options(message: str, on_command_line: str) -> None:
    assert in_options(message) == on_command_line


def test_long_lines_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    with redirect_stderr(Screen()) as screen:
        say("note: " + "known-normal " * 9 + "\x1b[2J")
    lines = screen.getvalue().splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith("  known-normal ")
    assert "\x1b" not in screen.getvalue()
    with redirect_stderr(io.StringIO()) as log:
        say("note: " + "known-normal " * 9)
    assert len(log.getvalue().splitlines()) == 1


def test_a_run_shows_its_stages_on_a_terminal(tmp_path: Path) -> None:
    orders(200, 1).to_csv(tmp_path / "normal.csv", index=False)
    orders(100, 2).to_csv(tmp_path / "batch.csv", index=False)
    command = [str(COMMAND), "detect", "normal.csv", "batch.csv", "--fdr", "0.1", "--n-jobs", "1"]
    for more, is_shown in (("--report=page.html", True), ("--quiet", False)):
        primary, secondary = pty.openpty()
        with subprocess.Popen(
            [*command, more], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=secondary
        ) as process:
            assert process.wait(timeout=120) == 0
        os.close(secondary)
        text = os.read(primary, 100_000).decode()
        for stage in ("reading normal.csv", "learning", "calibrating", "writing page.html"):
            assert (f"\r\x1b[K{stage}" in text) == is_shown


def test_notes_name_rows_by_their_id() -> None:
    rng = np.random.default_rng(0)
    normal, batch = (pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"]) for n in (150, 100))
    batch.loc[7, ["a", "b"]] = 9.0
    batch.loc[2, "c"] = np.nan  # dropped: positions among the rows that are left differ
    for names, expected in ((None, "7"), ("order", "A7")):
        named = batch if names is None else batch.assign(order=[f"A{at}" for at in range(100)])
        with pytest.warns(UserWarning, match="no row is flagged") as told:
            detect(normal, named, id=names, fdr=0.1, missing="drop", n_jobs=1)
        assert re.search(rf"look at rows? {expected}\b", str(told[0].message))
