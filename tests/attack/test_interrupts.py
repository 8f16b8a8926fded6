"""Signals, closed streams and kills at any moment."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import cycle
from pathlib import Path
from zipfile import ZipFile

import pytest
from command_line import COMMAND, assert_refused, run_process
from visits import N_BATCH, N_NORMAL, visits

from qms22 import BatchHistory

DETECT = ("detect", "normal.csv", "batch.csv", "--id", "visit", "--n-jobs", "1")
JOB = ("--json", "r.json", "--good", "good.csv", "--bad", "bad.csv")
OUTPUTS = ("-o", "o.csv", "--report", "page.html", *JOB, "--save-model", "m.skops")
# `make attack` and `make kills` try more than `make test`.
N_KILLS = int(os.environ.get("QMS22_KILLS", "4"))
HISTORY = ("--history", "h.sqlite", "--accept")
INPUTS = {"normal.csv", "batch.csv"}
# Moments, as shares of the time that a whole run takes.
MOMENTS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95]


def write_tables(folder: Path) -> None:
    visits(N_NORMAL, 0).to_csv(folder / "normal.csv", index=False)
    visits(N_BATCH, 1).to_csv(folder / "batch.csv", index=False)


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The time that a run takes once its handlers are there."""
    folder = tmp_path_factory.mktemp("whole")
    write_tables(folder)
    return time_of(start(folder))


def time_of(process: subprocess.Popen[str]) -> float:
    began = time.perf_counter()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return time.perf_counter() - began


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a run with outputs and a history, and wait until it handles signals."""
    process = subprocess.Popen(
        [COMMAND, *DETECT, *OUTPUTS, *HISTORY],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    handled = 1 << (signal.SIGTERM - 1)
    status = Path(f"/proc/{process.pid}/status")
    while True:
        [caught] = [line for line in status.read_text().splitlines() if line.startswith("SigCgt")]
        if int(caught.split()[1], 16) & handled:
            return process
        time.sleep(0.001)


def assert_complete(folder: Path, *, temporary: bool) -> None:
    """No file is half-written; a killed process may leave hidden temporary files."""
    for path in folder.iterdir():
        if path.name.startswith(".qms22-") or path.name.endswith("-journal"):
            assert temporary, path
        elif path.name == "o.csv":
            assert len(path.read_text().splitlines()) == len(
                (folder / "batch.csv").read_text().splitlines()
            )
        elif path.name == "r.json":
            json.loads(path.read_text())
        elif path.name in ("good.csv", "bad.csv"):
            header, *rows = path.read_text().splitlines()
            assert all(row.count(",") >= header.count(",") for row in rows)
        elif path.name == "page.html":
            assert path.read_text().rstrip().endswith("</html>")
        elif path.name == "m.skops":
            with ZipFile(path) as archive:
                assert archive.testzip() is None
        elif path.name == "h.sqlite":
            assert len(BatchHistory(path).entries()) <= 2
            with closing(sqlite3.connect(path)) as database:
                assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
        else:
            assert path.name in INPUTS, path


@pytest.mark.parametrize(
    ("moment", "number"), [*zip(MOMENTS, cycle([signal.SIGINT, signal.SIGTERM]), strict=False)]
)
def test_interrupts(tmp_path: Path, seconds: float, number: int, moment: float) -> None:
    """SIGINT or SIGTERM at some moment of `detect` with all outputs and a history"""
    write_tables(tmp_path)
    process = start(tmp_path)
    time.sleep(moment * seconds)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    # A run that was quicker than the signal is complete.
    assert process.returncode in (130, 0), errors
    if process.returncode == 130:
        assert errors.splitlines()[-1] == "Interrupted"
    for word in ("Traceback", "Aborted", "Exception ignored"):
        assert word not in errors
    assert_complete(tmp_path, temporary=False)


def test_two_interrupts(tmp_path: Path, seconds: float) -> None:
    """Ctrl-C pressed ten times"""
    write_tables(tmp_path)
    process = start(tmp_path)
    time.sleep(0.1 * seconds)
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[-1]) == (130, "Interrupted")
    assert "Traceback" not in errors
    assert_complete(tmp_path, temporary=False)


LOSES_INTERRUPTS = """
import sys, time
import qms22.cli
from qms22.__main__ import main

def run():
    for _ in range(3):
        try:
            print("runs", flush=True)
            time.sleep(60)
        except BaseException:
            pass
    try:
        time.sleep(60)
    finally:
        try:
            raise KeyError("a fault while it cleans up")
        except KeyError:
            time.sleep(1)
            print("clean", flush=True)

qms22.cli.main = run
main()
"""


def test_a_lost_interrupt(tmp_path: Path) -> None:
    """Code that loses an exception delays the end, and nothing cuts short what cleans up."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOSES_INTERRUPTS],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "runs\n"
    time.sleep(0.2)  # it has finished writing
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert output.splitlines() == ["runs", "runs", "clean"]
    assert (process.returncode, errors) == (130, "Interrupted\n")


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A folder with results and a history, and the time that the next run there takes."""
    folder = tmp_path_factory.mktemp("first")
    write_tables(folder)
    visits(N_BATCH, 2).to_csv(folder / "first.csv", index=False)
    done = run_process(
        "detect", "normal.csv", "first.csv", *DETECT[3:], *OUTPUTS, *HISTORY, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    (folder / "first.csv").unlink()
    copy = tmp_path_factory.mktemp("second")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return folder, time_of(start(copy))


@pytest.mark.parametrize("seed", range(N_KILLS))
def test_kills(tmp_path: Path, first_run: tuple[Path, float], seed: int) -> None:
    """SIGKILL at a random moment of `--history H --accept` with all outputs: nothing lost"""
    folder, seconds = first_run
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    before = BatchHistory(tmp_path / "h.sqlite").entries()
    process = start(tmp_path)
    # Most files are written at the end.
    time.sleep(random.Random(seed).uniform(0, 1.02) ** 0.5 * seconds)
    process.kill()
    process.communicate(timeout=60)
    first, *second = BatchHistory(tmp_path / "h.sqlite").entries()
    assert (first,) == before
    assert_complete(tmp_path, temporary=True)
    if second and second[0].accepted:
        result = json.loads((tmp_path / "r.json").read_text())
        assert (result["batch"], result["history"]["number"]) == ("batch.csv", 2)
        parts = [
            len((tmp_path / f"{name}.csv").read_text().splitlines()) for name in ("good", "bad")
        ]
        assert sum(parts) - 2 == N_BATCH
    if seed % 4 == 0:
        again = run_process(*DETECT, *OUTPUTS, *HISTORY, cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        first, other = BatchHistory(tmp_path / "h.sqlite").entries()
        assert (first,) == before
        if second and second[0].accepted:  # once only
            assert other.accepted == second[0].accepted


@pytest.mark.parametrize("command", [DETECT, ("--help",), ("detect", "--help"), ("--version",)])
@pytest.mark.parametrize("closed", ["stdout", "stderr", "stdin", "all", "pipe", "both"])
def test_closed_streams(tmp_path: Path, command: tuple[str, ...], closed: str) -> None:
    """Standard streams that are closed, or a pipe that nobody reads"""
    write_tables(tmp_path)
    shell = {
        "stdout": ">&-",
        "stderr": "2>&-",
        "stdin": "<&-",
        "all": "<&- >&- 2>&-",
        "pipe": "| true",
        "both": "2>&1 | true",
    }[closed]
    outputs = OUTPUTS if command == DETECT else ()
    line = " ".join(map(str, ("set -o pipefail;", COMMAND, *command, *outputs, shell)))
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert_complete(tmp_path, temporary=False)
    assert len(list(tmp_path.iterdir())) == len(INPUTS) + (6 if outputs else 0)


@pytest.mark.parametrize("stream", ["", "2>&1"])
def test_a_pipe_that_ends_early_changes_nothing(tmp_path: Path, stream: str) -> None:
    """The policy decides the exit code, and the batch is accepted, though nobody reads"""
    write_tables(tmp_path)
    visits(N_BATCH, 2).to_csv(tmp_path / "fine.csv", index=False)
    codes = []
    for batch, rules in (("fine.csv", "anomalies"), ("batch.csv", "flagged --max-flagged 0 -k 1")):
        job = f"{COMMAND} detect normal.csv {batch} --id visit --n-jobs 1 --fail-on {rules}"
        history = "--history h.sqlite --accept" if batch == "fine.csv" else ""
        line = f"set -o pipefail; {job} {history} {stream} | true"
        codes.append(subprocess.run(["bash", "-c", line], cwd=tmp_path, timeout=120).returncode)
    assert codes == [0, 1]
    [entry] = BatchHistory(tmp_path / "h.sqlite").entries()
    assert entry.accepted


def test_a_closed_standard_input_is_no_table(tmp_path: Path) -> None:
    """`-` while standard input is closed"""
    write_tables(tmp_path)
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} detect normal.csv - <&-"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )
    assert_refused(done, "standard input is empty")
