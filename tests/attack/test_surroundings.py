"""Unusual surroundings: options of Python, languages, homes, full disks, few files, forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND
from visits import N_BATCH, N_NORMAL, visits

DETECT = "detect normal.csv batch.csv --id visit -o o.csv"
PYTHON = sys.executable
NOT_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ALL = f"{DETECT} --report page.html --history h.sqlite --accept"


def write_tables(folder: Path) -> None:
    """Write tables whose words are not all ASCII."""
    for name, n_rows, seed in (("normal", N_NORMAL, 0), ("batch", N_BATCH, 1)):
        frame = visits(n_rows, seed).rename(columns={"ward": "Größe"})
        frame["Größe"] = frame["Größe"].map({"A": "groß", "B": "小さい", "C": "mittel"})
        frame.to_csv(folder / f"{name}.csv", index=False)


def shell(line: str, folder: Path, **env: str | None) -> subprocess.CompletedProcess[str]:
    """Run a line; variables that are None are not set."""
    surroundings = {**os.environ, **env}
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={name: value for name, value in surroundings.items() if value is not None},
        check=False,
    )


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The result in usual surroundings."""
    folder = tmp_path_factory.mktemp("usual")
    write_tables(folder)
    done = shell(f"{COMMAND} {DETECT}", folder)
    assert done.returncode == 0, done.stderr
    return (folder / "o.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("python", "env"),
    [
        (f"{PYTHON} -OO", {**NOT_UTF8, "PYTHONHASHSEED": "2", "HOME": "/proc"}),
        (f"{PYTHON} -I", {"HOME": "/no/such/home", "TZ": "Pacific/Chatham"}),
        (f"{PYTHON} -X dev", {"PYTHONHASHSEED": "1", "LC_ALL": "C", "HOME": None}),
        (f"ulimit -n 64; {PYTHON}", {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}),
        (f"ulimit -s 1024; umask 777; {PYTHON}", {}),
    ],
)
def test_same_results(tmp_path: Path, usual: str, python: str, env: dict[str, str | None]) -> None:
    """`python -OO`, hash seeds, LC_ALL=C, no or read-only HOME, 64 open files: the same result"""
    write_tables(tmp_path)
    done = shell(f"{python} -m qms22 {ALL}", tmp_path, **env)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "o.csv").read_text(encoding="utf-8") == usual


@pytest.mark.parametrize("kilobytes", [1, 4, 16, 64, 256])
def test_full_disks(tmp_path: Path, kilobytes: int) -> None:
    """A disk that is full after some kilobytes of an output"""
    write_tables(tmp_path)
    for name in ("o.csv", "page.html"):
        (tmp_path / name).write_text("old")
    done = shell(f"ulimit -f {kilobytes}; {COMMAND} {ALL}", tmp_path)
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob(".qms22-*"))
    if done.returncode == 0:
        assert kilobytes == 256  # there is room for all
        return
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert any(name in done.stderr.splitlines()[-1] for name in ("o.csv", "page.html", "h.sqlite"))
    written = (tmp_path / "o.csv").read_text(encoding="utf-8")
    assert written == "old" or len(written.splitlines()) == N_BATCH + 1
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == "old" or page.rstrip().endswith("</html>")


FORK = """
import multiprocessing, threading
import numpy as np
import qms22
def found(_):
    result = qms22.detect("normal.csv", "batch.csv", id="visit")
    return np.asarray(result.scores).tobytes()
if __name__ == "__main__":
    threads = [threading.Thread(target=found, args=(0,)) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    before = found(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        after = pool.map(found, range(4))
    assert after == [before] * 4, "other scores"
    print("same")
"""


def test_forks(tmp_path: Path) -> None:
    """Processes that are forked after threads have worked"""
    write_tables(tmp_path)
    (tmp_path / "fork.py").write_text(FORK)
    done = shell(f"timeout -s KILL 100 {sys.executable} fork.py", tmp_path)
    assert done.stdout.strip() == "same", done.stderr
