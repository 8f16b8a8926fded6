"""What `qms22.detect` passes on to its detector, and what it reports of the detector's draw."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from visits import N_BATCH, PLAIN, SICK, visits

from qms22 import QMS22Ensemble, detect
from qms22.estimators import ensemble


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    normal, batch = visits(400, 0), visits(N_BATCH, 1)
    batch.loc[SICK, "pulse"] += 60.0
    return normal, batch


def test_the_groups_of_the_encoder_reach_the_detector(
    tables: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, seen = QMS22Ensemble._learn, []

    def noted(detector: Any, inputs: Any) -> None:
        seen.append((inputs.normal.shape[1], inputs.groups))
        learn(detector, inputs)

    monkeypatch.setattr(QMS22Ensemble, "_learn", noted)
    found = detect(*tables, fdr=0.3, ignore=["visit"])
    ((n_columns, groups),) = seen
    assert groups == tuple(map(tuple, found.encoder.groups_.values()))
    assert sorted(column for group in groups for column in group) == list(range(n_columns))
    assert max(map(len, groups)) > 1


def test_the_device_is_checked_before_anything_is_read(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    with pytest.raises(ValueError, match="device must be one of 'cpu', 'cuda', 'auto'; got 'tpu'"):
        detect("nothing.csv", "nothing.csv", device="tpu")
    assert detect(*tables, **PLAIN, device="auto").detector.device == "auto"


def test_rows_that_the_detector_leaves_out_are_reported(
    tables: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = detect(*tables, k=8)
    assert whole.n_drawn == N_BATCH
    assert "of these learned from" not in whole.facts()
    monkeypatch.setattr(ensemble, "AUTO_SAMPLES", 100)
    drawn = detect(*tables, k=8)
    assert drawn.n_scored == N_BATCH
    assert drawn.facts()["of these learned from"] == "100"
    assert detect(*tables, k=8, max_samples=120).n_drawn == 120
