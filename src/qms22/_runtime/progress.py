"""A progress bar on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qms22._runtime.stages import shown_line


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
