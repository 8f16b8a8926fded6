"""What a long run is doing: one line on a terminal that replaces itself.

A command shows it; the library names its stages wherever it runs, which has no effect elsewhere.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from qms22._runtime.visible_text import one_line

# Seconds between two updates of a line: as fast as one can read.
SECONDS_BETWEEN = 0.2

# Return to the start of the line, and clear it.
CLEAR = "\r\x1b[K"


class StageLine:
    """The line on standard error."""

    def __init__(self) -> None:
        self._stage = ""
        self._shown_at = -math.inf
        self._is_shown = False

    def begin(self, stage: str) -> None:
        """Show what the run does from now on."""
        self._stage = stage
        self._write(f"{stage} …")

    def update(self, n_done: int, n_steps: int) -> None:
        """Show how far the stage is."""
        if self._stage and time.monotonic() - self._shown_at >= SECONDS_BETWEEN:
            self._write(f"{self._stage}: {100 * n_done // max(n_steps, 1)} %")

    def clear(self) -> None:
        """Remove the line, so that other text can be printed."""
        if self._is_shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
            self._is_shown = False

    def _write(self, text: str) -> None:
        # A line that is wrapped could not be cleared.
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(CLEAR + one_line(text)[:width])
        sys.stderr.flush()
        self._shown_at = time.monotonic()
        self._is_shown = True


# Not a context variable: fits run in threads of their own.
_line: StageLine | None = None


@contextmanager
def stages_shown(*, enabled: bool) -> Iterator[bool]:
    """Show the stages of the block on standard error, if that is a terminal; yield whether so."""
    global _line
    if not enabled or not sys.stderr.isatty():
        yield False
        return
    _line = StageLine()
    try:
        yield True
    finally:
        _line.clear()
        _line = None


def begin_stage(stage: str) -> None:
    """Show what the run does from now on, where a command shows its stages."""
    if _line is not None:
        _line.begin(stage)


def clear_stage() -> None:
    """Remove the line about the stage before other text is printed."""
    if _line is not None:
        _line.clear()


def shown_line() -> StageLine | None:
    """Return the line that a command shows; None if it shows none."""
    return _line
