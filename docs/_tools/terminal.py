"""Run commands as on a terminal, for pages and pictures of the documentation."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path


def run_on_terminal(script: str, folder: Path, width: int = 100) -> str:
    """Run lines of a shell as on a terminal.

    Parameters
    ----------
    script : str
        Commands, one per line. ``qms22`` and ``python`` are those of this environment.
    folder : Path
        Where they run.
    width : int
        Columns of the terminal.

    Returns
    -------
    str
        What they print, without colours and progress.

    Raises
    ------
    RuntimeError
        If a command fails; the message is what was printed.
    """
    programs = Path(sys.executable).parent
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-ec", script],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": str(width),
            "NO_COLOR": "1",
        },
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux ends the output of a closed terminal like this
            break
        if not part:  # and macOS like this
            break
        parts.append(part)
    os.close(master)
    text = _without_controls(b"".join(parts).decode())
    if process.wait():
        raise RuntimeError(text)
    return text


def _without_controls(text: str) -> str:
    """Return the text that is left on the screen."""
    text = text.replace("\r\n", "\n")
    # Progress is written over itself; what counts is the rest of the line after it.
    text = re.sub(r"(?m)^.*\r(\x1b\[K)?", "", text)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
