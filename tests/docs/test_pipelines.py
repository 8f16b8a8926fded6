"""The examples of docs/pipelines.md name options and arguments that there are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from command_line import COMMAND
from pipeline_engines import DATES, GOOD, SPOILT, example, write_orders

from qms22.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/pipelines.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the source archive has no docs")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def known_options() -> set[str]:
    names = ("detect", "history", "mcp", "score", "verify")
    commands = [main.commands[name] for name in names]
    return {text for command in commands for each in command.params for text in each.opts}


def test_every_option_is_known() -> None:
    used = {
        *re.findall(
            r"(?<![\w-])--[a-z-]+",
            "".join(re.findall(r"qms22 .*?\n\n", PAGE.read_text(), re.DOTALL)),
        )
    }
    assert used - {"--select"} <= known_options()
    assert {"--fail-on", "--good", "--bad", "--json"} <= used


def test_keys_of_the_file_are_options() -> None:
    [text] = blocks("toml")
    assert {f"--{key}" for key in tomllib.loads(text)} <= known_options()


def test_python_and_yaml_can_be_read() -> None:
    yaml = pytest.importorskip("yaml", reason="needs what builds the documentation")
    for text in blocks("python"):
        compile(text, "pipelines.md", "exec")
    for text in blocks("json"):
        assert json.loads(text)["mcpServers"]["qms22"]["command"] == "qms22"
    for text in blocks("yaml"):
        assert yaml.safe_load(text)
    action = yaml.safe_load((ROOT / ".github/actions/detect/action.yml").read_text())
    used = blocks("yaml")[0].partition("with:")[2]
    assert {*yaml.safe_load(used)} <= action["inputs"].keys()


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    write_orders(tmp_path)
    options = blocks("toml")[0].replace("zip", "country").replace("note", "time")
    (tmp_path / "orders.toml").write_text(options)
    return tmp_path


def test_the_cron_script(orders: Path) -> None:
    script = example("cron", "sh").replace("/srv/orders || exit", f"{orders} || exit")
    programs = orders / "bin"
    programs.mkdir()
    (programs / "qms22").symlink_to(COMMAND)
    # Others stand for the calendar and the post.
    for name, text in (("date", "echo $DAY"), ("mail", 'echo "$@" >mail.txt; cat >>mail.txt')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    for number, code in ((GOOD, 0), (SPOILT, 1)):
        day = DATES[number]
        done = subprocess.run(
            ["sh", "-c", script],
            env={**os.environ, "DAY": day, "PATH": f"{programs}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
        parts = [pd.read_csv(orders / f"{name}/{day}.csv") for name in ("load", "look-at")]
        result = json.loads((orders / f"results/{day}.json").read_text())
        assert len(parts[1]) == result["counts"]["flagged"]
        assert len(parts[0]) + len(parts[1]) == result["counts"]["rows"]
        assert (orders / "mail.txt").exists() == (number == SPOILT)
    words = (orders / "mail.txt").read_text()
    assert words.startswith(f"-s orders of {DATES[SPOILT]}: exit code 1 me@example.org")
    assert "policy violated by anomalies" in words


def test_python_reads_the_same(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(orders)
    shutil.copy("normal.csv", "last-month.csv")
    shutil.copy(f"export/{DATES[SPOILT]}.csv", "today.csv")
    printed: list[str] = []
    exec(example("Results for programs", "python"), {"print": printed.append})
    assert "The batch contains anomalies" in printed[0][0]
    parts = pd.read_parquet("load.parquet"), pd.read_parquet("look-at.parquet")
    assert len(parts[0]) + len(parts[1]) == len(pd.read_csv("today.csv"))


@pytest.mark.parametrize(
    ("fail_on", "config", "project", "used"),
    [
        ("", "", "", "anomalies,drift,schema"),
        ("drift", "", "[tool.qms22]", "drift"),
        ("", "orders.toml", "", ""),
        ("", "", "[tool.qms22]", ""),
        ("", "", "[tool.other]", "anomalies,drift,schema"),
    ],
)
def test_the_rules_of_the_action(
    tmp_path: Path, fail_on: str, config: str, project: str, used: str
) -> None:
    yaml = pytest.importorskip("yaml", reason="needs what builds the documentation")
    action = yaml.safe_load((ROOT / ".github/actions/detect/action.yml").read_text())
    step = next(each for each in action["runs"]["steps"] if each.get("id") == "search")
    (tmp_path / "pyproject.toml").write_text(project)
    variables = {"FAIL_ON": fail_on, "CONFIG": config, "RUNNER_TEMP": str(tmp_path)}
    start = step["run"].partition('"$bin/qms22" detect')[0]
    done = subprocess.run(
        ["bash", "-euc", f'{start}\necho "$FAIL_ON"'],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{used}\n", done.stderr


def test_the_steps_of_the_action(orders: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs what builds the documentation")
    action = yaml.safe_load((ROOT / ".github/actions/detect/action.yml").read_text())
    step = next(each for each in action["runs"]["steps"] if each.get("id") == "search")
    # As the first step leaves it.
    (orders / "qms22/bin").mkdir(parents=True)
    (orders / "qms22/bin/qms22").symlink_to(COMMAND)
    (orders / "qms22/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (orders / "qms22/bin/python").chmod(0o755)
    given = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    given |= {"normal": "normal.csv", "config": "orders.toml"}
    for number, code, decision in ((GOOD, 0, "fine"), (SPOILT, 1, "anomalies"), (0, 2, "")):
        given["batch"] = f"export/{DATES.get(number)}.csv"
        variables = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)
            for name, text in step["env"].items()
        }
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            variables[name] = str(orders / f"{name}-{number}")
            Path(variables[name]).touch()
        # As a runner calls bash.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=orders,
            env={**os.environ, "RUNNER_TEMP": str(orders), **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        summary, outputs = (
            Path(variables[name]).read_text() for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
        )
        if code == 2:
            assert not summary + outputs
            continue
        result = json.loads((orders / "qms22.json").read_text())
        assert outputs == f"decision={decision}\nflagged={result['counts']['flagged']}\n"
        assert f"## export/{DATES[number]}.csv" in summary.replace("\\", "")
        assert ("policy violated by" in summary) == (code == 1)
