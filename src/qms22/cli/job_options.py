"""Options for jobs: rules that decide the exit code, and results for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from qms22.cli.config import config_option
from qms22.cli.shared import FILE, SHARE, TableType, say
from qms22.detection.policy import FAIL_ON, MODEL_FAIL_ON, Rule, verdict_of_rules
from qms22.tables.databases.database_place import DatabasePlace

if TYPE_CHECKING:
    from qms22.detection import Detection

# Exit code of a command whose result does not meet the policy; 2 is bad input or usage.
_VIOLATED = 1
_STANDARD_OUTPUT = Path("-")


class RulesType(click.ParamType):  # type: ignore[type-arg]  # old versions take none
    """Names of rules, separated by commas."""

    name = "rules"

    def __init__(self, known: Sequence[str]) -> None:
        self.known = known

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        """Return the names, each once."""
        texts = value.split(",") if isinstance(value, str) else value
        names = tuple(dict.fromkeys(str(text).strip() for text in texts))
        for name in names:
            if name not in self.known:
                self.fail(f"{name!r} is not one of {', '.join(self.known)}")
        return names


class Job(NamedTuple):
    """The rules of a job, and the files that it writes for programs."""

    fail_on: tuple[str, ...]
    max_flagged: int | None
    max_share: float | None
    json: Path | None
    junit: Path | None
    summary: Path | None
    good: Path | DatabasePlace | None
    bad: Path | DatabasePlace | None

    @property
    def prints_json(self) -> bool:
        """Whether standard output gets JSON in place of the flagged rows."""
        return self.json == _STANDARD_OUTPUT

    def outputs(self) -> dict[str, Path | DatabasePlace | None]:
        """Return the files to write, by their options."""
        if self.junit is not None and not self._has_rules:
            raise click.UsageError(
                "--junit has one case per rule; give --fail-on, --max-flagged or --max-share, too"
            )
        return {
            "--json": None if self.prints_json else self.json,
            "--junit": self.junit,
            "--summary": self.summary,
            "--good": self.good,
            "--bad": self.bad,
        }

    @property
    def _has_rules(self) -> bool:
        return bool(self.fail_on) or (self.max_flagged, self.max_share) != (None, None)

    def check(self, found: Detection) -> tuple[Rule, ...]:
        """Compare a result with the rules."""
        return found.check(
            fail_on=self.fail_on, max_flagged=self.max_flagged, max_share=self.max_share
        )

    def write(self, found: Detection, rules: Sequence[Rule]) -> str:
        """Write the files; return the JSON that standard output gets, or nothing."""
        from qms22._runtime.files import atomic_write
        from qms22.detection.results.job_files import json_text, junit_text, markdown_text

        found.write_parted(self.good, self.bad)
        if not (self.json or self.junit or self.summary):
            return ""
        data = found.to_dict(rules)
        for path, text_of in ((self.junit, junit_text), (self.summary, markdown_text)):
            if path is not None:
                atomic_write(path, text_of(data).encode())
        if self.json is None or self.prints_json:
            return json_text(data) if self.prints_json else ""
        atomic_write(self.json, json_text(data).encode())
        return ""


def end_job(rules: Sequence[Rule]) -> None:
    """Say which rule decided, as the last line, and end with its exit code."""
    if not rules:
        return
    sys.stdout.flush()
    say(verdict_of_rules(rules))
    if not all(rule.is_met for rule in rules):
        raise click.exceptions.Exit(_VIOLATED)


def job_options(*, has_verdict: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a `Job` to a command, which gets it as `job`."""
    rules = FAIL_ON if has_verdict else MODEL_FAIL_ON
    texts = {
        "anomalies": "the verdict is that the batch contains anomalies",
        "drift": "it is that the batch has drifted",
        "flagged": "a row is flagged",
        "volume": "the number of rows is not that of earlier batches or days",
        "schema": "columns are new, gone or of another kind",
    }
    when = "; ".join(f"{name}: {texts[name]}" for name in rules)
    file = TableType(new=True)
    options = [
        click.option(
            "--fail-on",
            type=RulesType(rules),
            default=(),
            metavar="RULE,...",
            help=f"End with exit code 1 if one of these rules is broken. {when}. The last line on "
            "standard error says which rule decided.",
        ),
        click.option(
            "--max-flagged",
            type=click.IntRange(min=0),
            metavar="N",
            help="End with exit code 1 if more rows are flagged.",
        ),
        click.option(
            "--max-share",
            type=SHARE,
            metavar="SHARE",
            help="End with exit code 1 if a larger share of the rows is flagged, such as 1%.",
        ),
        click.option(
            "--json",
            type=FILE,
            help="Write the whole result as data to a .json file, or with '-' to standard output "
            "in place of the flagged rows. 'qms22 verify' can repeat the search from it.",
        ),
        click.option("--junit", type=FILE, help="Write one test case per rule to an .xml file."),
        click.option(
            "--summary", type=FILE, help="Write a summary for job pages to a Markdown file, .md."
        ),
        click.option(
            "--good",
            type=file,
            help="Write the rows that are not flagged, as they are, to a file or table as --output "
            "does. Each row is either in --good or in --bad.",
        ),
        click.option(
            "--bad", type=file, help="Write the flagged rows with their reasons in the same way."
        ),
        config_option,
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def collected(**given: Any) -> None:
            job = Job(**{name: given.pop(name) for name in Job._fields})
            command(job=job, **given)

        for option in reversed(options):
            collected = option(collected)
        return collected

    return decorate
