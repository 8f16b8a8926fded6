"""Results of real tables: the folder QMS22_REAL has folders with normal.csv and batch.csv.

Without this variable, a few small ones beside the checkout are tried, if they are there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from command_line import assert_coherent, run, run_process
from result_schema import valid

REAL = Path(os.environ.get("QMS22_REAL", Path(__file__).parents[3] / "shared/real"))
_FEW = ("beers", "dgov_no_grocery", "vega_airports")
PAIRS = sorted(
    path.parent
    for path in REAL.glob("*/normal.csv")
    if "QMS22_REAL" in os.environ or path.parent.name in _FEW
)

pytestmark = pytest.mark.skipif(not PAIRS, reason="QMS22_REAL names no folder with real tables")


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_results_are_complete_and_can_be_repeated(pair: Path, tmp_path: Path) -> None:
    tables = pair / "normal.csv", pair / "batch.csv"
    files = ("--json", "r.json", "--junit", "j.xml", "--summary", "s.md")
    parts = ("--good", "good.parquet", "--bad", "bad.parquet", "-o", "found.xlsx")
    rules = ("--fail-on", "anomalies,drift,flagged,volume,schema")
    result = run("detect", *tables, *files, *parts, *rules, "--n-jobs", "1", "-q", cwd=tmp_path)
    assert result.exit_code in (0, 1), result.stderr
    data = valid(tmp_path / "r.json")
    rows = [len(pd.read_parquet(tmp_path / f"{name}.parquet")) for name in ("good", "bad")]
    assert rows == [data["counts"]["rows"] - data["counts"]["flagged"], data["counts"]["flagged"]]
    assert (result.exit_code == 0) == data["policy"]["is_met"]
    assert_coherent(pd.read_excel(tmp_path / "found.xlsx", engine="calamine"))
    there = {"QMS22_ISA": "scalar", "OPENBLAS_NUM_THREADS": "2"}
    again = ("verify", "r.json", *tables, "--n-jobs", "2")
    done = run_process(*again, cwd=tmp_path, env={**os.environ, **there})
    assert done.returncode == 0, done.stderr
    assert "are the same to the bit" in done.stderr
