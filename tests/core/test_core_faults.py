"""The compiled core without memory, built by a test with the warnings of strict C++17."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "cpp"
PROGRAM = Path(__file__).with_name("faults.cpp")


def test_every_allocation_may_fail(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler}) to build the core with")
    program = tmp_path / "faults"
    flags = os.environ.get("CXXFLAGS", "").split()  # make sanitize has some
    flags += ["-std=c++17", "-O0", "-pedantic", "-Wall", "-Wextra", "-Werror", "-pthread"]
    flags += ["-DQMS22_SCALAR", "-DQMS22_ISA=scalar", f"-I{SOURCES}"]
    sources = [path for path in SOURCES.glob("*.cpp") if path.name != "bindings.cpp"]
    subprocess.run([compiler, *flags, PROGRAM, *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=300)
    n_failures = [int(line) for line in done.stdout.split()]
    assert len(n_failures) == 4
    assert min(n_failures) > 0, n_failures
