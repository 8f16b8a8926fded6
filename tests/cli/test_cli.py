"""The commands as a whole: help, version, the demo."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from command_line import assert_refused, run, run_process

import qms22
from qms22.cli import main
from qms22.cli.shared import require


def test_demo(tmp_path: Path) -> None:
    result = run("demo", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "malignant" in result.stdout
    assert "TPR at k = 200" in result.stdout
    auc = next(line for line in result.stdout.splitlines() if "AUC" in line)
    assert float(auc.split("│")[2]) > 0.95
    assert [path.name for path in tmp_path.iterdir()] == ["demo-roc.png"]
    assert (tmp_path / "demo-roc.png").read_bytes().startswith(b"\x89PNG")


def test_demo_options(tmp_path: Path) -> None:
    result = run("demo", "-k", "5", "--show", "3", "--seed", "7", "-o", "x.svg", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "malignant in the top 5" in result.stdout
    assert result.stdout.count("│    ") >= 3
    assert "<svg" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--top", "392"], "--top 392 is more than the 391 unlabeled rows"),
        (["--top", "0"], "0 is not in the range x>=1"),
        (["--seed", "-1"], "-1 is not in the range 0<=x<=4294967295"),
        (["--output", "picture.doc"], "must end in .png, .pdf or .svg"),
        (["--output", "nowhere/x.png"], "there is no directory nowhere"),
    ],
)
def test_demo_refuses(arguments: list[str], words: str, tmp_path: Path) -> None:
    assert_refused(run("demo", *arguments, cwd=tmp_path), words)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc, as on Linux")
def test_demo_cannot_write(tmp_path: Path) -> None:
    result = run("demo", "-o", "/proc/x.png", cwd=tmp_path)
    assert result.exit_code == 2
    assert "cannot write /proc/x.png" in result.stderr


def all_commands(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Every command below `command`, by what is typed after "qms22"."""
    found = {" ".join(path): command}
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            found |= all_commands(child, (*path, name))
    return found


@pytest.mark.parametrize(("words", "command"), all_commands(main).items())
def test_every_command_is_documented(words: str, command: click.Command, tmp_path: Path) -> None:
    result = run(*words.split(), "--help", cwd=tmp_path)
    assert result.exit_code == 0
    assert "Example:" in result.stdout
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"option {parameter.name} of 'qms22 {words}' has no help"


def test_a_missing_package_is_named_with_its_extra() -> None:
    require("detect", "table", "numpy", "sklearn")
    with pytest.raises(click.UsageError, match=r"detect needs no_such, .* 'qms22\[table\]'"):
        require("detect", "table", "numpy", "no_such")


def test_version(tmp_path: Path) -> None:
    result = run_process("--version", cwd=tmp_path)
    assert result.stdout.strip() == f"qms22, version {qms22.__version__}"


def test_unknown_command(tmp_path: Path) -> None:
    assert_refused(run("detonate", cwd=tmp_path), "No such command 'detonate'")


def test_without_a_terminal_the_table_still_fits(tmp_path: Path) -> None:
    result = run_process("demo", cwd=tmp_path, env={**os.environ, "COLUMNS": "60"})
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 60
