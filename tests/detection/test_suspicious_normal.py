"""Known-normal rows of a table that look like the anomalies found."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run

from qms22 import detect


@pytest.fixture
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Known-normal rows, and a batch with ten outliers."""
    rng = np.random.RandomState(0)
    normal = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    batch = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    batch.iloc[:10] += 6
    return normal, batch


PLANTED = [17, 203, 204, 205, 206]


def test_rows_have_the_index_of_their_table(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    clean = detect(normal, batch, k=10).suspicious_normal
    assert clean is not None
    assert clean.empty
    normal.iloc[PLANTED] += 6
    normal.iloc[5, 0] = np.nan  # dropped: rows after it have another position
    normal.index = [f"n{number}" for number in range(300)]
    found = detect(normal, batch, k=10, missing="drop").suspicious_normal
    assert found is not None
    assert len(found) >= 3
    assert set(found.index) <= {f"n{row}" for row in PLANTED}
    pd.testing.assert_frame_equal(found, normal.loc[found.index])


def test_the_paper_detector_has_none(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    assert detect(*tables, k=10, preset="paper").suspicious_normal is None


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("known-normal rows")]


def test_the_command_names_them(tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path) -> None:
    normal, batch = tables
    batch.to_csv(tmp_path / "batch.csv", index=False)
    normal.to_csv(tmp_path / "clean.csv", index=False)
    normal.iloc[PLANTED] += 6
    normal.to_csv(tmp_path / "dirty.csv", index=False)
    options = ("batch.csv", "-k", "10", "--n-jobs", "1")
    assert not lines_of(run("detect", "clean.csv", *options, cwd=tmp_path).stderr)
    result = run("detect", "dirty.csv", *options, cwd=tmp_path)
    (line,) = lines_of(result.stderr)
    named = [int(number) for number in re.findall(r"\d+", line.split("(")[0])]
    assert len(named) >= 3
    assert set(named) <= set(PLANTED)
    assert line.endswith("mark those that are not normal")
    assert not lines_of(result.stdout)
    assert not lines_of(run("detect", "dirty.csv", *options, "--quiet", cwd=tmp_path).stderr)
