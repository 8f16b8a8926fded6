"""The examples of docs/pipelines.md name options and arguments that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from qms22.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/pipelines.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the source archive has no docs")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def known_options() -> set[str]:
    commands = [main.commands[name] for name in ("detect", "history", "score", "verify")]
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
    for text in blocks("yaml"):
        assert yaml.safe_load(text)
    action = yaml.safe_load((ROOT / ".github/actions/detect/action.yml").read_text())
    used = blocks("yaml")[0].partition("with:")[2]
    assert {*yaml.safe_load(used)} <= action["inputs"].keys()


def test_commands_have_help_for_each_option() -> None:
    for name in ("detect", "score", "verify"):
        for each in main.commands[name].params:
            assert not isinstance(each, click.Option) or each.help
