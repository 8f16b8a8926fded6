"""How much memory the process may still take."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from qms22._runtime import memory


def test_memory_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = memory.memory_left()
    assert left is None or left > 0
    code = "from qms22._runtime.memory import memory_left; print(memory_left())"
    cap = 4 << 30
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (cap, cap)),
    )
    assert 0 < int(result.stdout) < cap
    # A container may use less than the group that it is in.
    (tmp_path / "pod" / "box").mkdir(parents=True)
    (tmp_path / "pod" / "memory.max").write_text("5000\n")
    (tmp_path / "pod" / "box" / "memory.max").write_text("max\n")
    (tmp_path / "group").write_text("0::/pod/box\n")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "_OWN_CGROUP", tmp_path / "group")
    assert memory.memory_left() == 5000
