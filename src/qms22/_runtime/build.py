"""How the compiled kernel was built, and which instruction set it uses."""

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
    """Return the compiler, its flags and the instruction sets of the kernel.

    Returns
    -------
    dict
        "compiler", "flags", "instruction_sets" (compiled in, oldest first), "runs_here" (those
        that this CPU supports) and "chosen" (the newest of them, or the one that the environment
        variable ``QMS22_ISA`` names).
    """
    info = _core.build_info()
    return {**info, "chosen": forced_instruction_set() or info["chosen"]}


def show_build() -> None:
    """Print `build_info`, one line per entry."""
    for name, value in build_info().items():
        print(f"{name:17}", ", ".join(value) if isinstance(value, list) else value)
