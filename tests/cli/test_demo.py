"""`qms22 demo`: its tables, what it prints, and that it is the command that it shows."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result
from command_line import assert_coherent, assert_refused, run, run_process, words_of

from qms22.cli.expenses import make_expenses

README = Path(__file__).parents[2] / "README.md"
FILES = {"expenses-checked.csv", "expenses-new.csv", "expenses.html"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> Result:
    result = run("demo", cwd=folder)
    assert result.exit_code == 0, result.stderr
    return result


def test_all_anomalies_are_found(shown: Result) -> None:
    assert "The batch contains anomalies" in shown.stderr
    assert "department = sales, kind = taxi" in words_of(shown.stdout)
    assert "24 of 300 rows are flagged (false discovery rate 0.1); at most" in shown.stderr
    assert "city Las Vegas; never seen in 2,400 normal rows" in words_of(shown.stdout)
    assert "21 of the 21 hidden anomalies are among the 24 flagged rows of 300." in shown.stdout


def test_the_command_that_it_shows_finds_the_same_rows(shown: Result, folder: Path) -> None:
    assert {path.name for path in (folder / "qms22-demo").iterdir()} == FILES
    line = next(line for line in shown.stderr.splitlines() if line.startswith("$ qms22 "))
    found = run(*line.removeprefix("$ qms22 ").split(), cwd=folder)
    assert found.exit_code == 0, found.stderr
    hidden = {claim for claims in make_expenses().hidden.values() for claim in claims}
    claims = [line.split(",")[1] for line in found.stdout.splitlines() if line[:1].isdigit()]
    assert line.endswith("expenses-new.csv --id claim --report qms22-demo/expenses.html")
    assert len(claims) == 24
    assert set(claims) >= hidden
    assert set(shown.stdout.split()) & hidden <= set(claims)


@pytest.mark.skipif(not README.is_file(), reason="an installed package has no README")
def test_the_readme_shows_what_its_commands_print(tmp_path: Path) -> None:
    commands, sample = README.read_text(encoding="utf-8").split("```")[1:4:2]
    demo, search = (line.split("#")[0].split() for line in commands.strip().splitlines())
    assert demo == ["qms22", "demo"]
    shown = run_process("demo", cwd=tmp_path, env={**os.environ, "COLUMNS": "100"})
    printed = {line.rstrip() for line in (shown.stdout + shown.stderr).splitlines()}
    assert {line for line in sample.splitlines() if "…" not in line} <= printed
    found = run(*search[1:], cwd=tmp_path)
    assert found.exit_code == 0, found.stderr


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_results_agree_with_each_other(seed: int, tmp_path: Path) -> None:
    expenses = make_expenses(seed)
    expenses.checked.to_csv(tmp_path / "n.csv", index=False)
    expenses.new.to_csv(tmp_path / "b.csv", index=False)
    result = run("detect", "n.csv", "b.csv", "--id", "claim", "-o", "o.csv", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv(tmp_path / "o.csv")
    assert_coherent(table)
    flagged = table[table["flagged"]]
    hidden = {claim for claims in expenses.hidden.values() for claim in claims}
    assert len(hidden - {*flagged["claim"]}) <= 2
    n_false = flagged["false_at_most"].iloc[-1]
    answer = f"{len(flagged)} of 300 rows are flagged (false discovery rate 0.1); at most {n_false}"
    assert answer in result.stderr
    assert len({*flagged["claim"]} - hidden) <= n_false


def test_page(shown: Result, folder: Path) -> None:
    page = (folder / "qms22-demo" / "expenses.html").read_text(encoding="utf-8")
    assert "Suspicious rows of expenses-new.csv" in page
    assert "written: qms22-demo/expenses.html" in shown.stderr


def test_tables() -> None:
    first, again, other = make_expenses(), make_expenses(0), make_expenses(1)
    pd.testing.assert_frame_equal(first.new, again.new)
    assert not first.new.equals(other.new)
    assert list(first.checked.columns) == list(first.new.columns)
    assert not set(first.checked["claim"]) & set(first.new["claim"])
    hidden = [claim for claims in first.hidden.values() for claim in claims]
    assert len(hidden) == len(set(hidden)) == 21
    assert set(hidden) <= set(first.new["claim"])


def test_without_a_terminal_the_tables_still_fit(tmp_path: Path) -> None:
    result = run_process(
        "demo", "-o", "x", "--seed", 1, cwd=tmp_path, env={**os.environ, "COLUMNS": "60"}
    )
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 60
    assert {path.name for path in (tmp_path / "x").iterdir()} == FILES


@pytest.mark.parametrize("has_terminal", [True, False])
@pytest.mark.parametrize("screen", ["", ":0"])
def test_the_page_opens_only_if_someone_sees_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_terminal: bool, screen: str
) -> None:
    from qms22.cli.demo import _show_page

    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: has_terminal, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    _show_page(tmp_path / "page.html")
    assert opened == ([(tmp_path / "page.html").as_uri()] if has_terminal and screen else [])


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert_refused(run("demo", "--seed", -1, cwd=tmp_path), "-1 is not in the range")
    assert_refused(run("demo", "-o", "file", cwd=tmp_path), "'file' is a file")
    assert_refused(run("demo", "-o", "file/x", cwd=tmp_path), "cannot create the directory file/x")
    assert (tmp_path / "file").read_text() == "mine"
