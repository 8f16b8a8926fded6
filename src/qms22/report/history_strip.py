"""The picture of the last batches: below each other their verdicts, sizes, flags and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from qms22.detection import HistoryEntry

# So many batches are 880 pixels wide.
_MOST_BATCHES = 40
# Columns that moved have a line each; of more, those that moved most often.
_MOST_COLUMNS = 6
# Widths and heights in pixels: of a batch, of the words above a lane, of bars, and of signs.
_STEP = 22
_WORDS = 18
_HIGHEST = 34.0
_SIGNS = 16
# Words of a lane have this room at least, and names of columns at most so many letters.
_LEAST_WIDTH = 360
_MOST_LETTERS = 40


class HistoryBatch(NamedTuple):
    """One batch of the picture.

    `marks` has its shapes, each a class and an SVG path: its verdict, whether a person has accepted
    it or called it an incident, its bars, and a square for each column that moved.
    """

    entry: HistoryEntry
    left: int
    marks: list[tuple[str, str]]

    @property
    def moved(self) -> str:
        """The columns that moved."""
        return ", ".join(name for name, _ in self.entry.moved)

    @property
    def share(self) -> float:
        """The share of flagged rows."""
        return self.entry.n_flagged / max(self.entry.n_rows, 1)

    @property
    def title(self) -> str:
        """Everything about the batch in one line."""
        entry = self.entry
        rows = "row" if entry.n_rows == 1 else "rows"
        return (
            f"{entry.time}, {entry.batch}: {entry.decision}, {entry.n_flagged:,} of "
            f"{entry.n_rows:,} {rows} flagged ({share_text(self.share)})"
            + (f"; moved: {self.moved}" if entry.moved else "")
            + (f"; incident: {entry.incident}" if entry.incident else "")
        )

    @property
    def said(self) -> str:
        """What a person has said of the batch."""
        if self.entry.incident:
            return f"incident: {self.entry.incident}"
        return "accepted" if self.entry.accepted else ""


class HistoryPicture(NamedTuple):
    """The picture of the last batches, oldest first, with its size in pixels.

    Its `lanes` are the words of each line, and where they stand.
    """

    batches: list[HistoryBatch]
    lanes: list[tuple[str, float]]
    width: int
    height: float


def history_picture(history: Sequence[HistoryEntry]) -> HistoryPicture:
    """Return the picture of the last batches; the highest bar of a lane has the full height."""
    entries = history[-_MOST_BATCHES:]
    batches = [HistoryBatch(entry, _STEP * at, []) for at, entry in enumerate(entries)]
    sizes, shares = [entry.n_rows for entry in entries], [batch.share for batch in batches]
    lanes = [("verdict", _WORDS - 5.0)]
    y = float(_WORDS + 2 * _SIGNS)
    for batch in batches:
        middle = batch.left + _STEP // 2
        batch.marks.append((batch.entry.decision, _sign(batch.entry.decision, middle, _WORDS + 8)))
        if batch.said:
            kind = "incident" if batch.entry.incident else "accepted"
            batch.marks.append((kind, _sign(kind, middle, _WORDS + _SIGNS + 8)))
    for words, heights in (
        (f"rows, up to {max(sizes, default=0):,}", sizes),
        (f"flagged, up to {share_text(max(shares, default=0.0))}", shares),
    ):
        lanes.append((words, y + _WORDS - 5))
        y += _WORDS + _HIGHEST
        for batch, height in zip(batches, heights, strict=True):
            high = round(max(1.0, _HIGHEST * height / (max(heights) or 1)), 1)
            batch.marks.append(("bar", f"M{batch.left + 4} {y:g}v{-high:g}h14v{high:g}Z"))
    counts = Counter(name for entry in entries for name in dict(entry.moved))
    for name, _ in counts.most_common(_MOST_COLUMNS):
        short = name if len(name) <= _MOST_LETTERS else f"{name[:_MOST_LETTERS]}…"
        lanes.append((f"{short} moved", y + _WORDS - 5))
        y += _WORDS + _SIGNS
        for batch in batches:
            if name in dict(batch.entry.moved):
                batch.marks.append(("moved", f"M{batch.left + 4} {y - 12:g}h14v8h-14Z"))
    return HistoryPicture(batches, lanes, max(_LEAST_WIDTH, _STEP * len(batches) + 8), y + 4)


def _sign(kind: str, x: int, y: int) -> str:
    """Return the path of a sign around a point; each can be told without color."""
    return {
        "fine": f"M{x - 5} {y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
        "anomalies": f"M{x} {y - 6}L{x + 6} {y + 5}H{x - 6}Z",
        "drift": f"M{x - 5} {y - 5}h10v10h-10Z",
        "accepted": f"M{x - 5} {y}l3.5 4l6.5 -8",
        "incident": f"M{x - 4} {y - 4}l8 8m0 -8l-8 8",
    }.get(kind, "")


def share_text(share: float) -> str:
    """Return a share in percent, with two or three digits."""
    return f"{100 * share:.{3 if share >= 0.1 else 2}g}\N{NO-BREAK SPACE}%"
