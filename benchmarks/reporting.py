"""Shared by the benchmarks: the terminal, the option --output, and CSV files naming the machine."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

import qms22
from qms22_bench.run import describe_machine

console = Console(width=140)


def output_option(files: str) -> Callable[[Any], Any]:
    """Return the option --output of a script that writes `files` into a directory."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("benchmarks/results"),
        show_default=True,
        help=f"Directory for {files}.",
    )


def machine() -> dict[str, str]:
    """Describe the machine, the versions and the compiled core."""
    info = qms22.build_info()
    return {
        **{name: str(value) for name, value in describe_machine().items()},
        "numpy": np.__version__,
        "qms22": qms22.__version__,
        "compiler": info["compiler"],
        "instruction set": info["chosen"],
    }


def write_csv(path: Path, headings: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table below lines that describe the machine; make the directory if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(["machine", name, text] for name, text in machine().items())
        writer.writerow(headings)
        writer.writerows(rows)
