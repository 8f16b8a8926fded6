"""Progress on standard error: a bar, and the file that is read."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qms22._runtime.memory import size_text
from qms22._runtime.stages import CLEAR, SECONDS_BETWEEN, shown_line
from qms22._runtime.visible_text import one_line


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
    line = shown_line()
    if line is not None:
        yield lambda done, word: line.update(done, total)
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


class _ReadingLine:
    """A line on standard error about the file that is read."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._named: set[str] = set()
        self._shown_at = -math.inf
        self._is_terminal = sys.stderr.isatty()

    def update(self, name: str, n_done: int, n_bytes: int | None, silent: float) -> None:
        name = one_line(name)
        now = time.monotonic()
        is_quick = now - self._began.setdefault(name, now) < silent
        if is_quick or now - self._shown_at < SECONDS_BETWEEN:
            return
        if self._is_terminal:
            of = "" if n_bytes is None else f" of {size_text(n_bytes)}"
            sys.stderr.write(f"{CLEAR}reading {name}: {size_text(n_done)}{of}")
            self._shown_at = now
        elif name not in self._named:
            size = "" if n_bytes is None else f" ({size_text(n_bytes)})"
            sys.stderr.write(f"reading {name}{size}\n")
            self._named.add(name)
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown_at > -math.inf:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
            self._shown_at = -math.inf


# Not a context variable: pyarrow reads in threads of its own.
_reading: _ReadingLine | None = None


@contextmanager
def reading_shown(*, enabled: bool) -> Iterator[None]:
    """Show files that take more than two seconds to read on standard error in the block."""
    global _reading
    _reading = _ReadingLine() if enabled else None
    try:
        yield
    finally:
        reading_ended()
        _reading = None


def report_reading(
    name: str, n_done: int, n_bytes: int | None = None, *, silent: float = 2.0
) -> None:
    """Report that bytes of a file were read, of `n_bytes` if that is known.

    In the first seconds, `silent`, nothing is shown.
    """
    if _reading is not None:
        _reading.update(name, n_done, n_bytes, silent)


def reading_ended() -> None:
    """Clear the line about the file that was read."""
    if _reading is not None:
        _reading.clear()
