"""What a long run is doing: one line on a terminal that replaces itself.

A command shows it; the library names its stages and the files that it reads wherever it runs, which
has no effect elsewhere. Without a terminal only files that take long are named, once each.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qms22._runtime.memory import size_text
from qms22._runtime.visible_text import one_line

# Seconds between two updates of a line: as fast as one can read.
SECONDS_BETWEEN = 0.2

# Return to the start of the line, and clear it.
_CLEAR = "\r\x1b[K"


class _StatusLine:
    """The line on standard error, off until a command shows it."""

    def __init__(self) -> None:
        self.switch(on=False)

    def switch(self, *, on: bool) -> None:
        """Begin anew, on or off."""
        self._is_on, self.is_terminal = on, on and sys.stderr.isatty()
        self._stage = ""
        self._shown_at = -math.inf
        self._is_shown = self._is_reading = False
        self._began: dict[str, float] = {}  # when the reading of a file began
        self._named: set[str] = set()

    def begin(self, stage: str) -> None:
        """Show what the run does from now on."""
        self._stage = stage
        self._show(f"{stage} …")

    def update(self, n_done: int, n_steps: int) -> None:
        """Show how far the stage is."""
        if self._stage and time.monotonic() - self._shown_at >= SECONDS_BETWEEN:
            self._show(f"{self._stage}: {100 * n_done // max(n_steps, 1)} %")

    def read(
        self, name: str, n_done: int, n_bytes: int | None = None, *, silent: float = 2.0
    ) -> None:
        """Show that bytes of a file were read, of `n_bytes` if that is known.

        In the first seconds, `silent`, nothing is shown.
        """
        if not self._is_on:
            return
        name, now = one_line(name), time.monotonic()
        is_quick = now - self._began.setdefault(name, now) < silent
        if is_quick or now - self._shown_at < SECONDS_BETWEEN:
            return
        size = "" if n_bytes is None else size_text(n_bytes)
        if self.is_terminal:
            self._show(f"reading {name}: {size_text(n_done)}" + f" of {size}" * bool(size))
            self._is_reading = True
        elif name not in self._named:
            sys.stderr.write(f"reading {name}" + f" ({size})" * bool(size) + "\n")
            sys.stderr.flush()
            self._named.add(name)

    def end_reading(self) -> None:
        """Remove the line about the file that was read."""
        if self._is_reading:
            self.clear()

    def clear(self) -> None:
        """Remove the line, so that other text can be printed."""
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._is_shown = self._is_reading = False

    def _show(self, text: str) -> None:
        if self.is_terminal:
            # A line that is wrapped could not be cleared.
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(_CLEAR + one_line(text)[:width])
            sys.stderr.flush()
            self._shown_at = time.monotonic()
            self._is_shown, self._is_reading = True, False


# Not a context variable: fits run, and pyarrow reads, in threads of their own.
_line = _StatusLine()
begin_stage = _line.begin
clear_stage = _line.clear
report_reading = _line.read
reading_ended = _line.end_reading


@contextmanager
def stages_shown(*, enabled: bool) -> Iterator[bool]:
    """Show the stages of the block on standard error; yield whether that is a terminal."""
    _line.switch(on=enabled)
    try:
        yield _line.is_terminal
    finally:
        _line.clear()
        _line.switch(on=False)


@contextmanager
def progress_bar(
    description: str, total: int, *, enabled: bool
) -> Iterator[Callable[[int, str], None]]:
    """Show a bar while the block runs; yield a function of (steps done so far, a short text).

    A command that shows its stages says there how far it is, in place of a bar.
    """
    if not enabled:
        yield lambda done, word: None
        return
    if _line.is_terminal:
        yield lambda done, word: _line.update(done, total)
        return
    # Imported here: most programs that import qms22 never show a bar.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        TextColumn("{task.fields[word]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(description, total=total, word="")
        yield lambda done, word: progress.update(task, completed=done, word=word)


def sweep_words(loss: float, rows_per_second: float) -> str:
    """Return the text beside the bar after a sweep."""
    return f"loss {loss:.6g}, {rows_per_second:,.0f} rows/s"
