"""A fit on request tells of itself in lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import qms22
from qms22 import QMS22, QMS22Ensemble

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 4, "random_state": 0}

Rows = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def rows() -> Rows:
    rng = np.random.RandomState(0)
    return rng.normal(size=(120, 3)), rng.normal(size=(50, 3))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fits.jsonl"


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_lines(n_jobs: int | None, rows: Rows, log: Path) -> None:
    detector = QMS22(**QUICK, n_restarts=2, n_jobs=n_jobs, log=str(log))
    detector.fit(rows[0], unlabeled=rows[1])
    start, *sweeps, end = lines_of(log)
    assert start["event"] == "start"
    assert (start["detector"], start["version"]) == ("QMS22", qms22.__version__)
    assert start["parameters"]["max_iter"] == 4
    assert (start["rows"], start["unlabeled"], start["features"]) == (170, 50, 3)
    assert (start["device"], start["fits_side_by_side"]) == ("cpu", n_jobs or 1)
    assert [(line["fit"], line["sweep"]) for line in sorted(sweeps, key=_order)] == [
        (fit, sweep) for fit in range(2) for sweep in range(1, 5)
    ]
    for line in sweeps:
        assert line["seconds"] > 0
        assert line["row_trials_per_second"] == pytest.approx(3 * 2 * 4 * line["rows_per_second"])
        assert 0 <= line["accepted"] <= 3 * 2 * 4
    losses = [line["loss"] for line in sorted(sweeps, key=_order)]
    assert losses[:4] == sorted(losses[:4], reverse=True)
    assert end["event"] == "end"
    assert end["sweeps"] == [4, 4]
    assert end["losses"] == [losses[3], losses[7]]


def _order(line: dict[str, Any]) -> tuple[int, int]:
    return line["fit"], line["sweep"]


def test_ensembles_append(rows: Rows, log: Path) -> None:
    for seed in (0, 1):
        parameters = {**QUICK, "random_state": seed}
        QMS22Ensemble(**parameters, n_splits=2, log=log).fit(rows[0], unlabeled=rows[1])
    events = [line["event"] for line in lines_of(log)]
    assert events == ["start", *["sweep"] * 8, "end"] * 2


def test_fits_in_other_processes(rows: Rows, log: Path) -> None:
    with joblib.parallel_config(backend="loky", n_jobs=2):
        QMS22(**QUICK, n_restarts=2, n_jobs=2, log=log, verbose=1).fit(rows[0], unlabeled=rows[1])
    _, *sweeps, end = lines_of(log)
    assert [(line["fit"], line["sweep"], line["seconds"]) for line in sweeps] == [
        (0, 4, None),
        (1, 4, None),
    ]
    assert end["sweeps"] == [4, 4]


def test_a_fit_that_fails(rows: Rows, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qms22._cpm.fit_log.sweep_words", fail)
    with pytest.raises(KeyboardInterrupt):
        QMS22(**QUICK, log=log).fit(rows[0], unlabeled=rows[1])
    _, end = lines_of(log)
    assert (end["event"], end["error"]) == ("failed", "KeyboardInterrupt: ")
    assert end["sweeps"] == [1]


def test_bad_paths(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="log must be a path or None; got 3"):
        QMS22(**QUICK, log=3).fit(rows[0], unlabeled=rows[1])  # type: ignore[arg-type]
    with pytest.raises(OSError, match=r"cannot write the log '.*': Is a directory"):
        QMS22(**QUICK, log=tmp_path).fit(rows[0], unlabeled=rows[1])


def test_the_bar_shows_loss_and_rate(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    QMS22(**QUICK, verbose=1).fit(rows[0], unlabeled=rows[1])
    shown = " ".join(capsys.readouterr().err.split())
    assert "4/4" in shown
    assert "loss" in shown
    assert "rows/s" in shown
