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
from qms22.cli.terminal import columns_that_matter, flagged_to_show, print_found
from qms22.detection import RowReason
from qms22.detection.findings.finding import Finding

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
    found = detect(orders(200, 1), batch, id="order", k=30, n_jobs=1)
    reasons = {
        row: [
            RowReason(("amount",), "amount 70012345; 99 % of normal rows are at most 95", 9.0),
            RowReason(("note", "country"), "note and country do not go together", 2.0),
        ]
        for row in range(100)
    }
    return replace(found, reasons=reasons, findings=())


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def with_finding(found: Detection, rows: list[int]) -> Detection:
    finding = Finding(
        "amount > 500, outside all normal rows",
        rows=np.array(rows),
        columns=("amount",),
        normal_share=0.0,
        p_value=1e-9,
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
    assert text.index("1 finding") < text.index("The 30 most suspicious rows")
    assert "at least" not in text
    assert "not certain" not in text
    assert "amount > 500, outside all normal rows" in text
    assert "A20000" in text
    assert "99 % of normal rows" in words_of(text)
    assert "and 10 more rows" in text
    assert "\x1b[2J" not in text
    assert ("70012345 " in text.replace("70012345;", "")) == (width > 60)


def test_few_rows_of_a_finding_are_shown(found: Detection) -> None:
    rows = [*range(3, 30)]
    names = flagged_to_show(with_finding(found, rows)).results[1][1]
    assert {"A20000", "A20001", "A20002"} <= {*names}
    assert len(names) == 6


def test_cells_are_shown_as_they_are_written(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = [RowReason(("note",), "note [red]:smile:; it is never so", 9.0)]
    reasons = dict.fromkeys(range(100), reason)
    text = shown(replace(found, reasons=reasons), 100, monkeypatch, capsys)
    assert "note [red]:smile:; it is never so" in text


def test_columns_that_matter_are_chosen_by_reasons_and_room(found: Detection) -> None:
    rows = flagged_to_show(found)
    assert columns_that_matter(rows, 60) == []
    assert columns_that_matter(rows, 80) == ["amount"]
    assert columns_that_matter(rows, 200) == ["amount", "note", "country"]


def test_if_nothing_is_flagged_the_first_rows_are_shown(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = replace(found, flagged=np.zeros(100, dtype=bool), fdr=0.1)
    text = words_of(shown(none, 100, monkeypatch, capsys))
    assert text.startswith("The most suspicious rows, not certain")
    assert text.count("99 % of normal rows") == 10
    assert "more rows" not in text


def test_below_few_flagged_rows_others_are_shown_up_to_ten(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flagged = np.isin(np.arange(100), found.ranking[:4])
    text = shown(replace(found, flagged=flagged, fdr=0.1), 100, monkeypatch, capsys)
    first, line, others = re.split("^(─+)$", text, flags=re.MULTILINE)
    assert first.startswith("4 flagged rows ")
    assert len(line) == 100
    assert others.strip().startswith("The next most suspicious rows, not certain")
    ranks = [
        [int(rank) for rank in re.findall(r"^ ?(\d+)  ", part, re.M)] for part in (first, others)
    ]
    assert ranks == [[1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]
    flagged = np.isin(np.arange(100), found.ranking[:12])
    text = shown(replace(found, flagged=flagged, fdr=0.1), 100, monkeypatch, capsys)
    assert "not certain" not in text


def test_findings_say_how_many_rows_are_anomalies_at_least(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (finding,) = with_finding(found, [0, 1, 2]).findings
    certain = replace(found, findings=(replace(finding, fewest_outliers=2),))
    assert "   3  at least 2  amount > 500" in shown(certain, 100, monkeypatch, capsys)


def test_titles(
    found: Detection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flagged = np.isin(np.arange(100), found.ranking[:1])
    assert found.verdict is not None
    fine = replace(found, verdict=replace(found.verdict, decision="fine"))
    for result, title in (
        (replace(found, fdr=0.2, flagged=flagged), "1 flagged row"),
        (replace(found, normal_table=None), "30 flagged rows"),
        (found, "The 30 most suspicious rows"),
        (fine, "The 30 most suspicious rows, not certain"),
    ):
        assert shown(result, 100, monkeypatch, capsys).splitlines()[0].strip() == title


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
            assert process.wait(timeout=300) == 0
        os.close(secondary)
        text = os.read(primary, 100_000).decode()
        for stage in ("reading normal.csv", "learning", "scoring", "writing page.html"):
            assert (f"\r\x1b[K{stage}" in text) == is_shown


def test_with_few_known_normal_rows_it_says_how_many_would_do(tmp_path: Path) -> None:
    orders(60, 1).to_csv(tmp_path / "normal.csv", index=False)
    batch = orders(80, 2)
    batch.loc[7, "amount"] = 70_000.0
    batch.to_csv(tmp_path / "batch.csv", index=False)
    command = ("detect", "normal.csv", "batch.csv", "--id", "order", "--n-jobs", "1")
    primary, secondary = pty.openpty()
    with subprocess.Popen(
        [str(COMMAND), *command],
        cwd=tmp_path,
        stdout=secondary,
        stderr=secondary,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    ):
        os.close(secondary)
        pieces = []
        try:
            while piece := os.read(primary, 100_000):
                pieces.append(piece)
        except OSError:  # the terminal is closed
            pass
    os.close(primary)
    text = words_of(re.sub(r"\x1b\[[\d;]*[mK]", "", b"".join(pieces).decode()))
    places = [
        text.index(words)
        for words in (
            "None of 80 rows is flagged (false discovery rate 0.1).",
            "to flag a single row takes 799 known-normal rows.",
            "The most suspicious rows, not certain",
            "1 A20007 0.016",
            "numbers: amount",
        )
    ]
    assert places == sorted(places)
