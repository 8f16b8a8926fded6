"""The command line: thin commands over the library."""

from __future__ import annotations

import click

from qms22 import __version__
from qms22.cli.commands import Commands
from qms22.cli.demo import demo
from qms22.cli.detect import detect, score
from qms22.cli.history import history
from qms22.cli.mcp import mcp
from qms22.cli.verify import verify


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="qms22")
def main() -> None:
    """Find the anomalies in a batch of records, given known-normal records.

    \b
    Example:
        qms22 detect last-month.csv today.csv --report today.html
    """


for command in (demo, detect, history, mcp, score, verify):
    main.add_command(command)
