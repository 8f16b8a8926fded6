"""What a row of the page is seen beside: the past of its entity, or the row that it repeats."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Shower, listed, shown_cells
from qms22.checks.copies import cell_hashes
from qms22.checks.sequences.in_time import time_order
from qms22.detection.reasons.explaining import shower
from qms22.detection.reasons.row_reasons import RowReason
from qms22.report.content import RowContext
from qms22.tables.columns.cells import Columns

if TYPE_CHECKING:
    from qms22.detection.result import Detection

# Nobody reads the context of more rows, nor a line of more points.
_MOST_ROWS = 200
_MOST_POINTS = 60
# Reasons that compare a number with the other rows of an entity or group.
_OF_ENTITY = ("group", "series", "step", "repetition")
_OF_TWIN = ("copy", "key")


def row_contexts(found: Detection, kept: NDArray[np.intp]) -> dict[int, RowContext]:
    """Return the context of the first rows of a page that have one, by their places in `kept`."""
    if found.columns is None:
        return {}
    tables = _Tables(*found.columns, shower(found.encoder))
    contexts = {}
    for place, row in enumerate(kept[:_MOST_ROWS].tolist()):
        shown = (tables.context(row, reason) for reason in found.reasons.get(row, ()))
        if context := next(filter(None, shown), None):
            contexts[place] = context
    return contexts


class _Tables:
    """Both tables, as the encoder understands them."""

    def __init__(self, normal: Columns, batch: Columns, show: Shower) -> None:
        self.normal, self.batch = self.both = normal, batch
        self.show = show

    def context(self, row: int, reason: RowReason) -> RowContext | None:
        if reason.kind in _OF_TWIN:
            return self._twin(row)
        if reason.kind in _OF_ENTITY and len(reason.columns) > 1:
            return self._past(row, reason.columns[0], reason.columns[1:])
        return None

    def _past(self, row: int, name: str, by: tuple[str, ...]) -> RowContext | None:
        """Return the numbers of known-normal and earlier rows of the entity, in order of time."""
        if not self.normal.keys() >= {name, *by} or self.normal[name].form != "number":
            return None
        known, order = self._orders
        parts = []
        for at, rows in enumerate((known, order[: int(np.argmax(order == row))])):
            same = [self._hashes[at][each][rows] == self._hashes[1][each][row] for each in by]
            parts.append(self.both[at][name].values[rows[np.all(same, axis=0)]])
        values = np.concatenate(parts)
        values = values[~np.isnan(values)]
        here = float(self.batch[name].values[row])
        if len(values) < 2 or np.isnan(here):
            return None
        low, high, last = (
            self.show(name, float(each)) for each in (values.min(), values.max(), values[-1])
        )
        of = listed([self._shown(1, each, row) for each in by])
        kind = "known-normal and earlier" if len(parts[1]) else "known-normal"
        text = (
            f"{name} in {len(values):,} {kind} rows with {of}: {low} to {high}, "
            f"last {last}; here {self.show(name, here)}"
        )
        return RowContext(text, tuple(values[-_MOST_POINTS:].tolist()), here)

    def _twin(self, row: int) -> RowContext | None:
        """Return the row that is most like a row, and where they differ."""
        best: tuple[int, int, int] | None = None
        for at, hashes in enumerate(self._hashes):
            same = [of_rows == self._hashes[1][name][row] for name, of_rows in hashes.items()]
            n_same = np.sum(same, axis=0)
            if at == 1:
                n_same[row] = -1
            twin = int(np.argmax(n_same))
            best = max(best or (-1, 0, 0), (int(n_same[twin]), at, twin))
        if best is None or best[0] < 1:
            return None
        _, at, twin = best
        others = [
            self._shown(at, name, twin)
            for name, of_rows in self._hashes[at].items()
            if of_rows[twin] != self._hashes[1][name][row]
        ]
        text = f"{'row' if at else 'known-normal row'} {twin:,} has the same cells"
        return RowContext(f"{text}, but for {listed(others, 4)}" if others else text)

    def _shown(self, at: int, name: str, row: int) -> str:
        return shown_cells(self.both[at][name].take(np.array([row])), self.show)[0]

    @cached_property
    def _hashes(self) -> tuple[Mapping[str, NDArray[np.uint64]], ...]:
        names = [name for name in self.batch if name in self.normal]
        usable = [name for name in names if self.batch[name].is_text == self.normal[name].is_text]
        return tuple({name: cell_hashes(table[name]) for name in usable} for table in self.both)

    @cached_property
    def _orders(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return time_order(self.normal), time_order(self.batch)
