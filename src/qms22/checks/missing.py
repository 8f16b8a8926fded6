"""Cells that are missing together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Check, Shower, listed, share_of_rows
from qms22.checks.surprise import LevelReference
from qms22.tables.columns.cells import Columns

_MOST_NAMED = 4


@dataclass(frozen=True)
class MissingTogetherCheck(Check):
    """Cells that are missing together, where normal rows lack only some of them."""

    # The combinations of missing cells that normal rows have, one character for each column.
    patterns: tuple[str, ...]
    reference: LevelReference  # how often they are there

    @classmethod
    def learn(cls, rows: Columns, columns: Sequence[str]) -> MissingTogetherCheck:
        """Learn from the known-normal rows."""
        patterns, places = _patterns(rows, columns)
        return cls(tuple(columns), patterns, LevelReference(np.bincount(places)))

    def _codes(self, rows: Columns) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the numbers of the patterns of rows, and whether several cells are missing."""
        known = {pattern: at for at, pattern in enumerate(self.patterns)}
        patterns, places = _patterns(rows, self.columns)
        codes = np.array([known.get(pattern, -1) for pattern in patterns], dtype=np.intp)
        several = np.array([pattern.count("-") > 1 for pattern in patterns])
        return codes[places], several[places]

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd it is that so many cells are missing, where there are several."""
        codes, several = self._codes(rows)
        return np.where(several, self.reference.surprise(codes, own=own), 0.0)

    def subjects(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return the names of the cells."""
        for gaps in np.array([rows[name].missing for name in self.columns]).T:
            yield listed([self.columns[at] for at in np.flatnonzero(gaps)], _MOST_NAMED)

    def clauses(self, rows: Columns, show: Shower) -> Iterable[str]:
        """Return in words how many normal rows lack the same."""
        counts, n = np.append(self.reference.counts, 0), self.reference.n
        for code in self._codes(rows)[0].tolist():
            yield f" are missing together, as in {share_of_rows(int(counts[code]), n)}"


def _patterns(rows: Columns, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the different patterns of missing cells, and which of them each row has."""
    gaps = np.array([rows[name].missing for name in names]).T
    bits = np.ascontiguousarray(np.packbits(gaps, axis=1))
    packed = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, places = np.unique(packed, return_index=True, return_inverse=True)
    texts = tuple("".join("-" if gap else "x" for gap in gaps[at]) for at in first.tolist())
    return texts, places.ravel()
