"""The strip of the last batches: a bar and a sign for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from qms22.report.text import share_text

if TYPE_CHECKING:
    from qms22.detection import HistoryEntry

# So many bars are 880 pixels wide.
_MOST_BATCHES = 40
# The width of a bar with its gap, and the height of the highest, as in the template.
_STEP = 22
_HIGHEST = 48.0


class HistoryBar(NamedTuple):
    """One batch of the strip: its share of flagged rows, and its bar and sign in pixels.

    The sign above the bar, a path, shows the verdict without color.
    """

    entry: HistoryEntry
    share: float
    left: int
    height: float
    sign: str

    @property
    def moved(self) -> str:
        """The columns that moved."""
        return ", ".join(name for name, _ in self.entry.moved)

    @property
    def title(self) -> str:
        """Everything about the batch in one line."""
        entry = self.entry
        rows = "row" if entry.n_rows == 1 else "rows"
        return (
            f"{entry.time}, {entry.batch}: {entry.decision}, {entry.n_flagged:,} of "
            f"{entry.n_rows:,} {rows} flagged ({share_text(self.share)})"
            + (f"; moved: {self.moved}" if entry.moved else "")
        )


def history_bars(history: Sequence[HistoryEntry]) -> list[HistoryBar]:
    """Return the bars of the last batches, oldest first; the highest share has the full height."""
    entries = history[-_MOST_BATCHES:]
    shares = [entry.n_flagged / max(entry.n_rows, 1) for entry in entries]
    most = max(shares, default=0.0) or 1.0
    bars = []
    for at, (entry, share) in enumerate(zip(entries, shares, strict=True)):
        height = round(max(1.0, _HIGHEST * share / most), 1)
        sign = _sign(entry.decision, _STEP * at + 12, round(58 - height, 1))
        bars.append(HistoryBar(entry, share, _STEP * at, height, sign))
    return bars


def _sign(decision: str, x: int, y: float) -> str:
    """Return the path of a circle, a triangle or a square around a point."""
    if decision == "anomalies":
        return f"M{x} {y - 6:g}L{x + 6} {y + 5:g}H{x - 6}Z"
    if decision == "drift":
        return f"M{x - 5} {y - 5:g}h10v10h-10Z"
    return f"M{x - 5} {y:g}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0"
