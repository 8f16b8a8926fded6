"""Compile a C++ file of this directory and load it, for benchmarks and tests only."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

# All that helps a compiler to vectorize a plain loop on this machine. Not -ffast-math itself:
# linking with it turns off subnormal numbers in the whole process.
FLAGS = [
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fassociative-math",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-ffinite-math-only",
    "-fno-math-errno",
    "-shared",
    "-fPIC",
]


@cache
def load(name: str) -> ctypes.CDLL:
    """Build `name` in a temporary directory and load it into this process."""
    source = Path(__file__).with_name(name)
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / f"{source.stem}.so"
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, *FLAGS, str(source), "-o", str(target)], check=True)
        return ctypes.CDLL(str(target))
