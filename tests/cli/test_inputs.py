"""Several files, patterns, directories, workbooks and standard input on the command line."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from contextlib import chdir
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from command_line import COMMAND, assert_refused, read_exactly, run
from visits import write_visits

from qms22._runtime import stages
from qms22.cli import main
from qms22.detection.results import result_workbook
from qms22.detection.results.result_files import write_tables
from qms22.tables import open_table, read_table

OPTIONS = ("--id", "visit", "--ignore", "sick", "--preset", "paper", "--n-jobs", "1", "-k", "5")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables as they are, and the known-normal rows in two parts."""
    folder = write_visits(tmp_path_factory.mktemp("visits"))
    normal = read_exactly(folder / "normal.csv")
    (folder / "parts").mkdir()
    normal[:150].to_csv(folder / "parts" / "1.csv", index=False)
    normal[150:].to_csv(folder / "parts" / "2.csv", index=False)
    with pd.ExcelWriter(folder / "book.xlsx", engine="xlsxwriter") as book:
        normal.to_excel(book, sheet_name="known", index=False)
        pd.read_csv(folder / "batch.csv").to_excel(book, sheet_name="new", index=False)
    return folder


@pytest.fixture(scope="module")
def expected(files: Path) -> str:
    result = run("detect", "normal.csv", "batch.csv", *OPTIONS, "-q", cwd=files)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "tables",
    [
        ("parts/1.csv", "parts/2.csv", "batch.csv"),
        ("parts/*.csv", "batch.csv"),
        ("parts", "batch.csv"),
        ("book.xlsx", "book.xlsx#new"),
    ],
)
def test_all_ways_to_name_tables(files: Path, tables: tuple[str, ...], expected: str) -> None:
    result = run("detect", *tables, *OPTIONS, "-q", cwd=files)
    assert result.exit_code == 0, result.stderr
    found, wanted = (pd.read_csv(StringIO(text)) for text in (result.stdout, expected))
    if "book.xlsx" in tables:
        # A reason has a number as its file has it.
        found, wanted = found.drop(columns="reasons"), wanted.drop(columns="reasons")
    # A workbook has 16 digits of a number.
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-12)


def test_standard_input(files: Path, expected: str) -> None:
    with chdir(files):
        content = Path("batch.csv").read_bytes()
        result = CliRunner().invoke(main, ["detect", "normal.csv", "-", *OPTIONS, "-q"], content)
    assert result.stdout == expected


def test_roles_are_shown(files: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    tables = ("parts/1.csv", "parts/2.csv", "batch.csv")
    result = run("detect", *tables, *OPTIONS, "--report", page, cwd=files)
    assert "known-normal: 1.csv, 2.csv; searched: batch.csv" in result.stderr
    assert "1.csv, 2.csv, batch.csv" in page.read_text()


def test_score_takes_parts(files: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.skops"
    run("detect", "normal.csv", "batch.csv", *OPTIONS, "--save-model", model, "-q", cwd=files)
    options = ("--id", "visit", "-k", "4")
    several = run("score", model, "parts/1.csv", "parts/2.csv", *options, cwd=files)
    one = run("score", model, "normal.csv", *options, cwd=files)
    assert one.exit_code == 0, one.stderr
    assert several.stdout == one.stdout


@pytest.mark.parametrize("normal", ["parts", "parts/*.csv", "parts/2.csv"])
def test_no_part_is_overwritten(files: Path, normal: str) -> None:
    result = run("detect", normal, "batch.csv", *OPTIONS, "-o", "parts/2.csv", cwd=files)
    assert_refused(result, "would overwrite the input parts/2.csv")


def test_a_sheet_has_few_rows(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_workbook, "MOST_SHEET_ROWS", 30)
    arguments = ("detect", "normal.csv", "batch.csv", *OPTIONS, "-q", "-o", "out.xlsx")
    assert_refused(run(*arguments, cwd=files), "an Excel sheet holds 30 rows below its header")
    assert not (files / "out.xlsx").exists()
    assert run(*arguments, "--only-flagged", cwd=files).exit_code == 0
    assert len(read_table(f"{files}/out.xlsx#rows")) == 5
    (files / "out.xlsx").unlink()


def test_cells_of_a_workbook(tmp_path: Path) -> None:
    moments = pd.to_datetime(["2024-03-01 12:30", None, "2024-03-02 00:00"])
    table = pd.DataFrame(
        {
            "=n": [2**53 + 1, 1, 0],
            "x": [1 / 3, float("inf"), float("nan")],
            "when": moments,
            "zone": moments.tz_localize("Asia/Tokyo"),
            "old": [pd.Timestamp("1815-06-18"), None, None],
            "word": ["=1+1", "https://x.org", "7" * 40_000],
            "ok": [True, False, True],
            "any": [[1, None], {"a": 1}, None],
        }
    )
    write_tables([table, table[:1]], tmp_path / "a.xlsx")
    found = open_table(tmp_path / "a.xlsx").read()
    assert found["=n"].tolist() == [str(2**53 + 1), "1", "0", str(2**53 + 1)]
    assert found["x"][0] == pytest.approx(1 / 3, rel=1e-15)
    assert found["x"].isna().tolist() == [False, True, True, False]
    for name in ("when", "zone"):
        assert found[name][:3].tolist() == [moments[0], pd.NaT, moments[2]]
    assert found["old"][0] == "1815-06-18 00:00:00"
    assert found["word"][:2].tolist() == ["=1+1", "https://x.org"]
    assert len(found["word"][2]) == 32_767
    assert found["ok"].tolist() == [True, False, True, True]
    assert found["any"][0] == "[1, None]"


def test_slow_reading_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 999_999)
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 2)
    read_table(tmp_path / "a.csv")
    assert capsys.readouterr().err == ""
    with stages.stages_shown(enabled=True):
        read_table(tmp_path / "a.csv")
    assert capsys.readouterr().err == "reading a.csv (2.0 MB)\n"


def test_reading_on_a_terminal(files: Path) -> None:
    """The line is cleared before results come."""
    own, other = pty.openpty()
    code = (
        "from qms22._runtime.stages import report_reading, stages_shown\n"
        "with stages_shown(enabled=True):\n"
        "    report_reading('a.csv', 5 * 10**6, 10**7, silent=0)\n"
    )
    python = str(Path(COMMAND).with_name("python"))
    with subprocess.Popen([python, "-c", code], stderr=other) as process:
        os.close(other)
        assert process.wait(300) == 0
    assert os.read(own, 999) == b"\r\x1b[Kreading a.csv: 5.0 MB of 10.0 MB\r\x1b[K"
    os.close(own)
