"""A job that runs every day, as a shell plays it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from command_line import COMMAND
from weeks import BAD, day, write_week


@pytest.mark.slow
def test_a_week(tmp_path: Path) -> None:
    write_week(tmp_path)
    script = Path(__file__).with_name("week.sh")
    done = subprocess.run(
        ["sh", script, tmp_path, COMMAND, sys.executable], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    bad = pd.read_csv(tmp_path / "bad-6.csv")
    assert {*day(6)["order"][BAD]} <= {*bad["order"]}
    assert bad.columns[-1] == "reasons"
