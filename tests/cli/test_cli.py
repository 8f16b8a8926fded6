"""The commands as a whole: help and version."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from command_line import assert_refused, run, run_process

import qms22
from qms22.cli import main


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


def test_version(tmp_path: Path) -> None:
    result = run_process("--version", cwd=tmp_path)
    assert result.stdout.strip() == f"qms22, version {qms22.__version__}"


def test_without_a_command_the_help_is_shown(tmp_path: Path) -> None:
    result = run(cwd=tmp_path)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0].endswith(" [OPTIONS] COMMAND [ARGS]...")
    assert "  detect   Find the most suspicious rows of a table." in result.stderr.splitlines()


def test_unknown_command(tmp_path: Path) -> None:
    assert_refused(run("detonate", cwd=tmp_path), "No such command 'detonate'")
