"""Options from files: `--config`, and `[tool.qms22]` of a pyproject.toml."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from qms22.cli.shared import FILE, RulesType, parse_rules
from qms22.detection.policy import FAIL_ON

_PROJECT = Path("pyproject.toml")
_NOT_IN_FILES = ("config", "help")


def _read_options(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Take what files say as defaults, so that the command line has the last word."""
    defaults: dict[str, Any] = {}
    if _PROJECT.is_file():
        tool = _read(_PROJECT).get("tool", {})
        defaults |= _defaults(ctx, tool.get("qms22", {}), "pyproject.toml [tool.qms22]")
    if path is not None:
        defaults |= _defaults(ctx, _read(path), str(path))
    ctx.default_map = {**(ctx.default_map or {}), **defaults}


config_option = click.option(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=_read_options,
    help="Read options from a .toml file: long names without '--', such as fail-on = 'drift' or "
    "ignore = ['note']. [tool.qms22] of a pyproject.toml in the working directory is read as well. "
    "The command line comes first, then this file, then pyproject.toml.",
)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        words = f"--config {path} cannot be read ({error.strerror}); correct the path"
        raise click.UsageError(words) from error
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path} is not a TOML file: {error}; mend it") from error


def _defaults(ctx: click.Context, table: Any, where: str) -> dict[str, Any]:
    """Return the options of a file for this command, by the names of its parameters."""
    if not isinstance(table, dict):
        raise click.UsageError(f"{where} is no table of options; write names and values")
    ours = _options(ctx.command)
    assert isinstance(ctx.parent, click.Context)
    assert isinstance(ctx.parent.command, click.Group)
    # One file may serve several commands.
    known = {name for other in ctx.parent.command.commands.values() for name in _options(other)}
    found = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in known:
            close = get_close_matches(name, sorted(known), n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
            )
            raise click.UsageError(f"{where}: there is no option {key!r}; {hint}")
        if name in ours:
            found[ours[name].name or name] = _value(ctx, ours[name], value, f"{where}: {key}")
    return found


def _options(command: click.Command) -> dict[str, click.Option]:
    return {
        text.removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option)
        for text in option.opts
        if text.startswith("--") and text.removeprefix("--") not in _NOT_IN_FILES
    }


def _value(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    """Return the value of an option; raise UsageError with the file and the key if it is wrong."""
    if isinstance(value, dict):  # as = {zip = "category"}
        value = [f"{name}={each}" for name, each in value.items()]
    if option.multiple and not isinstance(value, list):
        value = [value]
    if isinstance(value, bool) != option.is_flag:
        wanted = "true or false" if option.is_flag else "a value"
        raise click.UsageError(f"{where} = {value!r}: write {wanted}")
    try:
        if isinstance(option.type, RulesType):
            # Without the rules that only another command has.
            return [rule for rule in parse_rules(value, FAIL_ON) if rule in option.type.known]
        option.type_cast_value(ctx, value)
    except (click.ClickException, TypeError, ValueError) as error:
        words = error.message if isinstance(error, click.ClickException) else str(error)
        raise click.UsageError(f"{where} = {value!r}: {words}") from error
    return value
