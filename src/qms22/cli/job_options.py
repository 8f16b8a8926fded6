"""Options of searches: rules that decide the exit code, and the files to write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from qms22._runtime.stages import begin_stage
from qms22.cli.config import config_option
from qms22.cli.shared import (
    FILE,
    NEW_TABLE,
    SHARE,
    RulesType,
    check_goes_with,
    memory_limit_option,
    quiet_option,
    say,
)
from qms22.detection.policy import FAIL_ON, MODEL_FAIL_ON, Rule, verdict_of_rules
from qms22.tables.databases.database_place import DatabasePlace

if TYPE_CHECKING:
    from qms22.detection import Detection
    from qms22.tables import Table

# Exit code of a command whose result does not meet the policy; 2 is bad input or usage.
_VIOLATED = 1
_STANDARD_OUTPUT = Path("-")
_RULES = {
    "anomalies": "the verdict is that the batch contains anomalies",
    "drift": "it is that the batch has drifted",
    "flagged": "a row is flagged",
    "volume": "the number of rows is not that of earlier batches or days",
    "schema": "columns are new, gone or of another kind",
}


class Job(NamedTuple):
    """The rules of a search, and the files that it writes."""

    output: Path | DatabasePlace | None
    only_flagged: bool
    fail_on: tuple[str, ...]
    max_flagged: int | None
    max_share: float | None
    json: Path | None
    junit: Path | None
    summary: Path | None
    good: Path | DatabasePlace | None
    bad: Path | DatabasePlace | None

    def outputs(self) -> dict[str, Path | DatabasePlace | None]:
        """Return the files to write, by their options."""
        check_goes_with("--only-flagged", self.only_flagged, "--output", self.output)
        has_rules = self.fail_on or (self.max_flagged, self.max_share) != (None, None)
        if self.junit is not None and not has_rules:
            raise click.UsageError(
                "--junit has one case per rule; give --fail-on, --max-flagged or --max-share, too"
            )
        names = ("output", "json", "junit", "summary", "good", "bad")
        files = {f"--{name}": getattr(self, name) for name in names}
        return files | ({"--json": None} if self.json == _STANDARD_OUTPUT else {})

    def check_sizes(self, batch: Table) -> None:
        """Raise ValueError if the rows of a batch do not fit into a sheet that is to be written."""
        from qms22.detection.results.result_workbook import check_sheet_size

        for path in (None if self.only_flagged else self.output, self.good):
            check_sheet_size(path, batch)

    def check(self, found: Detection) -> tuple[Rule, ...]:
        """Compare a result with the rules."""
        return found.check(
            fail_on=self.fail_on, max_flagged=self.max_flagged, max_share=self.max_share
        )

    def write(self, found: Detection, rules: Sequence[Rule]) -> str:
        """Write the files; return the JSON that standard output gets, or nothing."""
        from qms22._runtime.files import atomic_write
        from qms22.detection.results.job_files import json_text, junit_text, markdown_text

        if self.output is not None:
            begin_stage(f"writing {self.output}")
            found.write(self.output, only_flagged=self.only_flagged)
        found.write_parted(self.good, self.bad)
        texts = (self.json, json_text), (self.junit, junit_text), (self.summary, markdown_text)
        wanted = [(path, text_of) for path, text_of in texts if path is not None]
        data = found.to_dict(rules) if wanted else {}
        printed = ""
        for path, text_of in wanted:
            if path == _STANDARD_OUTPUT:
                printed = text_of(data)
            else:
                atomic_write(path, text_of(data).encode())
        return printed


def end_job(rules: Sequence[Rule]) -> None:
    """Print which rule decided, as the last line, and end with its exit code."""
    if not rules:
        return
    sys.stdout.flush()
    say(verdict_of_rules(rules))
    if not all(rule.is_met for rule in rules):
        raise click.exceptions.Exit(_VIOLATED)


def job_options(*, has_verdict: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that searches share to a command, which gets those of a `Job` as `job`."""
    rules = FAIL_ON if has_verdict else MODEL_FAIL_ON
    when = "; ".join(f"{name}: {_RULES[name]}" for name in rules)
    options = [
        memory_limit_option,
        quiet_option,
        click.option(
            "-o",
            "--output",
            type=NEW_TABLE,
            help="Write all rows with rank, score, flag, reasons and p-value to a .csv, .xlsx, "
            ".parquet, .json or .jsonl file, or to a new table of a database, such as "
            "results.db#scores. The most suspicious rows come first; a file that is read part by "
            "part keeps its order.",
        ),
        click.option(
            "--only-flagged", is_flag=True, help="With --output: write only the flagged rows."
        ),
        click.option(
            "--good",
            type=NEW_TABLE,
            help="Write the rows that are not flagged, as they are, to a file or table as --output "
            "does. Each row is either in --good or in --bad.",
        ),
        click.option(
            "--bad",
            type=NEW_TABLE,
            help="Write the flagged rows with their reasons in the same way.",
        ),
        click.option(
            "--json",
            type=FILE,
            help="Write the whole result as data to a .json file, or with '-' to standard output "
            "in place of the flagged rows. 'qms22 verify' can repeat the search from it.",
        ),
        click.option(
            "--summary", type=FILE, help="Write a summary for job pages to a Markdown file, .md."
        ),
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
        click.option("--junit", type=FILE, help="Write one test case per rule to an .xml file."),
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
