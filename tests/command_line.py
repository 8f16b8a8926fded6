"""The command line within the process of the tests, and as a process of its own."""

from __future__ import annotations

import subprocess
import sysconfig
from contextlib import chdir
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from click.testing import CliRunner, Result

from qms22.cli import main

COMMAND = Path(sysconfig.get_path("scripts")) / "qms22"


def run(*arguments: object, cwd: Path) -> Result:
    """Run a command in a directory; what goes wrong inside is raised."""
    with chdir(cwd):
        return CliRunner(catch_exceptions=False).invoke(main, [str(each) for each in arguments])


def run_process(*arguments: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as a process, for what signals, pipes and limits do."""
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


def read_exactly(path: Path) -> pd.DataFrame:
    """Read CSV with all digits of numbers; pandas 2 rounds them unless it is told not to."""
    is_old = pd.__version__.startswith("2.")
    return pd.read_csv(path, float_precision="round_trip" if is_old else None)


def without_reasons(printed: str) -> str:
    """Leave out the reasons of printed rows: these have a number as its file has it."""
    table = pd.read_csv(StringIO(printed), dtype=str).drop(columns="reasons")
    return str(table.to_csv(index=False))


def words_of(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def assert_coherent(table: pd.DataFrame) -> None:
    """Flags are the first rows of the ranking, and the rows with the lowest p-values."""
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert table["score"].is_monotonic_decreasing
    assert table["p_value"].is_monotonic_increasing
    n_flagged = int(table["flagged"].sum())
    assert table["flagged"][:n_flagged].all()
    assert (
        table["p_value"][:n_flagged].max() <= table["p_value"][n_flagged:].min()
    ) or not n_flagged
    assert table["false_at_most"].is_monotonic_increasing
    assert (table["false_at_most"] <= table["rank"]).all()


def assert_refused(result: Result | subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, one sentence, and nothing else."""
    sentence = words_of(result.stderr)
    code = result.exit_code if isinstance(result, Result) else result.returncode
    assert code == 2, sentence
    assert "Traceback" not in result.stderr
    assert not result.stdout
    assert result.stderr.strip().splitlines()[-1].startswith("Error: ")
    for word in words:
        assert word in sentence
