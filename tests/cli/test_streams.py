"""Standard output that is full, closed or knows few letters, and texts that control a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import COMMAND, assert_refused, run, run_process

pytest.importorskip("pyarrow")

# It sets the title of the window, hides what follows, turns the writing and ends the line.
HOSTILE = "\x1b]0;owned\x07\x1b[8mhid\u202eden\r\nx\x9b31m"
DETECT = ("detect", "n.parquet", "b.parquet", "--id", "id", "-k", "3")
C_LOCALE = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"},
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, n_rows in (("n.parquet", 60), ("b.parquet", 30)):
        rng = np.random.default_rng(n_rows)
        table = pd.DataFrame(
            {
                "id": [f"é中{HOSTILE}{at}" for at in range(n_rows)],
                f"café {HOSTILE}": rng.normal(size=n_rows),
                "key": rng.choice(["中" + HOSTILE, "b"], n_rows),
            }
        )
        table.loc[0, f"café {HOSTILE}"] = 50.0 if name == "b.parquet" else 0.0
        table.to_parquet(tmp_path / name)
    return tmp_path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [(*DETECT, "-q"), ("detect", "--help"), ("--version",)])
def test_a_full_device_is_named_in_one_sentence(files: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, *command], cwd=files, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: standard output cannot be written (No space left on device); ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("outputs", ["standard output", "both"])
def test_a_reader_who_leaves_is_no_error(files: Path, outputs: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    errors = subprocess.PIPE if outputs == "standard output" else writing
    done = subprocess.run([COMMAND, *DETECT], cwd=files, stdout=writing, stderr=errors, text=True)
    os.close(writing)
    assert done.returncode == 0
    assert "Error" not in (done.stderr or "")


def test_a_pipe_gets_all_characters_in_the_c_locale(files: Path) -> None:
    done = run_process(*DETECT, "-q", cwd=files, env=C_LOCALE, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert f"é中{HOSTILE}0".replace("\r\n", "\n") in done.stdout


@pytest.mark.parametrize("environment", [{}, C_LOCALE], ids=["usual", "C"])
def test_no_text_controls_a_terminal(files: Path, environment: dict[str, str]) -> None:
    reading, writing = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *DETECT],
        cwd=files,
        stdout=writing,
        stderr=writing,
        env={**os.environ, **environment, "TERM": "dumb", "COLUMNS": "100"},
    )
    os.close(writing)
    shown = b""
    try:
        while part := os.read(reading, 1 << 16):
            shown += part
    except OSError:  # the end of a terminal
        pass
    os.close(reading)
    assert process.wait() == 0, shown
    text = shown.decode().replace("\r\x1b[K", "").replace("\r\n", "\n")
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(text)
    assert r"\u001b]0;owned" in text


def test_no_name_in_an_error_controls_a_terminal(files: Path) -> None:
    name = "b\x1b[2J\u202e\n.parquet"
    (files / "b.parquet").rename(files / name)
    result = run("detect", "n.parquet", name, "--id", "none", cwd=files)
    assert_refused(result, r"b\u001b[2J\u202e .parquet has no column 'none'")
