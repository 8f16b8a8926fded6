"""What the compiled kernel was built with, and what it uses on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from qms22 import _core

if TYPE_CHECKING:
    from qms22._core import BuildInfo


def forced_instruction_set() -> str:
    """Return the instruction set that ``QMS22_ISA`` names, or "" for the CPU's best."""
    return os.environ.get("QMS22_ISA", "")


def build_info() -> BuildInfo:
    """Report the build: compiler, flags, instruction sets.

    Returns
    -------
    dict
        "compiler", "flags", "instruction_sets" (compiled in, oldest first), "runs_here" (those
        this CPU runs) and "chosen" (the one fits use: the newest of them, or the one the
        environment variable ``QMS22_ISA`` names).
    """
    info = _core.build_info()
    return {**info, "chosen": forced_instruction_set() or info["chosen"]}


def show_build() -> None:
    """Print `build_info`, a line each."""
    for name, value in build_info().items():
        print(f"{name:17}", ", ".join(value) if isinstance(value, list) else value)
