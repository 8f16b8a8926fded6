"""The strip of the last batches: a bar and a sign for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qms22.report.text import share_text

_MOST_BATCHES = 40
_STEP = 22
_HIGHEST = 48.0

_DECISIONS = ("fine", "anomalies", "drift")


@dataclass(frozen=True)
class HistoryBar:
    """One batch of the strip, in pixels.

    Parameters
    ----------
    entry : mapping
        As in `PageContent.history`.
    share : float
        The share of flagged rows.
    left, height : float
        Of the bar.
    sign : str
        The path of the sign above it, which says the verdict without color.
    """

    entry: Mapping[str, Any]
    share: float
    left: int
    height: float
    sign: str

    @property
    def decision(self) -> str:
        """The verdict: "fine", "anomalies", "drift" or "none"."""
        decision = str(self.entry["decision"])
        return decision if decision in _DECISIONS else "none"

    @property
    def words(self) -> str:
        """The verdict in words."""
        return "no verdict" if self.decision == "none" else self.decision

    @property
    def title(self) -> str:
        """Everything about the batch in one line."""
        entry = self.entry
        moved = f"; moved: {', '.join(entry['moved'])}" if entry["moved"] else ""
        return (
            f"{entry['when']}, {entry['batch']}: {self.words}, {entry['n_flagged']} of "
            f"{entry['n_rows']} rows flagged ({share_text(self.share)}){moved}"
        )


def history_bars(history: Sequence[Mapping[str, Any]]) -> list[HistoryBar]:
    """Return the bars of the last batches, oldest first; the highest share has the full height."""
    entries = history[-_MOST_BATCHES:]
    shares = [entry["n_flagged"] / max(entry["n_rows"], 1) for entry in entries]
    most = max(shares, default=0.0) or 1.0
    return [
        HistoryBar(entry, share, _STEP * at, height, _sign(entry, _STEP * at + 12, 58 - height))
        for at, (entry, share) in enumerate(zip(entries, shares, strict=True))
        for height in [round(max(1.0, _HIGHEST * share / most), 1)]
    ]


def _sign(entry: Mapping[str, Any], x: float, y: float) -> str:
    """Return the path of a circle, a triangle or a square around a point."""
    y = round(y, 1)
    if entry["decision"] == "anomalies":
        return f"M{x} {y - 6:g}L{x + 6} {y + 5:g}H{x - 6}Z"
    if entry["decision"] == "drift":
        return f"M{x - 5} {y - 5:g}h10v10h-10Z"
    return f"M{x - 5} {y:g}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0"
