"""Checks of several cells of a row: pairs of levels, missing cells together, repeated rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson  # type: ignore[import-untyped, unused-ignore]

from qms22.checks.check import Shower, count_text, listed, share_of_rows, shown_cells
from qms22.checks.single import ColumnCheck, LevelCheck
from qms22.checks.surprise import LevelReference
from qms22.tables.columns.cells import Cells, Columns

# Columns with more levels make too many pairs for the rows there are.
MOST_LEVELS_IN_PAIR = 30
# Pairs that would be in fewer normal rows by chance are missing there by chance, too.
_LEAST_EXPECTED = 5.0
# A pair is lacking if it is there less often than this share of what would be by chance.
_LACKING = 0.1

_MOST_NAMED = 4

# Columns that say how often a row is there, and among how many rows; no column of a table has such
# a name.
COPIES = "\0copies"
N_ROWS = "\0rows"
# The largest surprise of a row that is repeated.
_MOST = 100.0

# With a larger share of normal rows that are there more than once, repetition is usual.
_MOST_REPEATED = 0.01


@dataclass(frozen=True)
class PairCheck(ColumnCheck):
    """Two levels that are common, but rarely or never together."""

    first: LevelCheck
    second: LevelCheck
    counts: NDArray[np.intp]
    ratios: NDArray[np.float64]

    @classmethod
    def learn(
        cls, first: LevelCheck, second: LevelCheck, codes: tuple[NDArray[np.intp], NDArray[np.intp]]
    ) -> PairCheck | None:
        """Learn from the codes of known-normal rows; None if no likely pair is lacking."""
        shape = (len(first.reference.counts), len(second.reference.counts))
        counts = np.bincount(codes[0] * shape[1] + codes[1], minlength=shape[0] * shape[1])
        expected = _expected(first, second).ravel()
        if not (counts < _LACKING * np.where(expected >= _LEAST_EXPECTED, expected, 0.0)).any():
            return None
        ratios = _ratios(counts - 1, expected)
        order = np.argsort(ratios)
        ratios = np.repeat(ratios[order], counts[order])
        names = (*first.columns, *second.columns)
        return cls(names, first, second, counts.reshape(shape), ratios)

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how much rarer pairs are than their levels would have it."""
        codes = (check.codes(rows[check.columns[0]]) for check in (self.first, self.second))
        first, second = codes
        is_known = (first >= 0) & (second >= 0)
        at = np.maximum(first, 0), np.maximum(second, 0)
        counts, expected = self.counts[at] - own, _expected(self.first, self.second)[at]
        ratios = _ratios(counts, expected)
        n_as_high = len(self.ratios) - np.searchsorted(self.ratios, ratios, side="left") - own
        n_others = len(self.ratios) - own
        surprise = -np.log((1.0 + np.maximum(n_as_high, 0)) / (n_others + 1.0))
        surprise += np.where(counts == 0, np.log(np.maximum(expected, 1.0)), 0.0)
        return np.where(is_known & (ratios > 0), surprise, 0.0)

    def describe(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Say how often the pairs are there, and how often they would be by chance."""
        one, other = (shown_cells(rows[name], places, show) for name in self.columns)
        codes = [check.codes(rows[check.columns[0]])[places] for check in (self.first, self.second)]
        at = np.maximum(codes[0], 0), np.maximum(codes[1], 0)
        counts, expected = (
            self.counts[at].tolist(),
            _expected(self.first, self.second)[at].round().tolist(),
        )
        n = self.first.reference.n
        return [
            f"{first} with {second}: {share_of_rows(count, n)}, "
            f"where {count_text(round(usual))} would be usual"
            for first, second, count, usual in zip(one, other, counts, expected, strict=True)
        ]


@dataclass(frozen=True)
class MissingTogetherCheck(ColumnCheck):
    """Cells that are missing together, where normal rows lack only some of them.

    Parameters
    ----------
    columns : tuple of str
    patterns : tuple of str
        The combinations of missing cells that normal rows have, one character for each column.
    reference : LevelReference
        How often they are there.
    """

    patterns: tuple[str, ...]
    reference: LevelReference

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

    def describe(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Name the cells, and say how many normal rows lack the same."""
        codes = self._codes(rows)[0][places].tolist()
        counts, n = np.append(self.reference.counts, 0), self.reference.n
        missing = np.array([rows[name].missing[places] for name in self.columns])
        return [
            f"{listed([self.columns[at] for at in np.flatnonzero(gaps)], _MOST_NAMED)} are missing "
            f"together, as in {share_of_rows(int(counts[code]), n)}"
            for gaps, code in zip(missing.T, codes, strict=True)
        ]


def _patterns(rows: Columns, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the different patterns of missing cells, and which of them each row has."""
    gaps = np.array([rows[name].missing for name in names]).T
    bits = np.ascontiguousarray(np.packbits(gaps, axis=1))
    packed = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, places = np.unique(packed, return_index=True, return_inverse=True)
    texts = tuple("".join("-" if gap else "x" for gap in gaps[at]) for at in first.tolist())
    return texts, places.ravel()


@dataclass(frozen=True)
class RepeatCheck:
    """A row that is there more often than it would be among normal rows.

    Where many normal rows are there more than once, as in narrow tables, repetition says nothing.

    Parameters
    ----------
    columns : tuple of str
        Empty: no cell is to blame.
    compared : tuple of str
        The columns in which rows agree.
    hashes, counts : ndarray of int
        How often rows that are there more than once are among the normal ones.
    n_normal : int
    in_half : ndarray of int
        How many of these are in a random half of the normal rows.
    """

    columns: tuple[str, ...]
    compared: tuple[str, ...]
    hashes: NDArray[np.int64]
    counts: NDArray[np.intp]
    n_normal: int
    in_half: NDArray[np.intp]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return self.compared

    @classmethod
    def learn(cls, rows: Columns, compared: Sequence[str]) -> RepeatCheck | None:
        """Learn from the known-normal rows with their copies; None if many are repeated."""
        n_normal = len(rows[COPIES].values)
        several = np.flatnonzero(rows[COPIES].values > 1)
        if len(several) > _MOST_REPEATED * n_normal:
            return None
        repeated = {name: rows[name].take(several) for name in compared}
        hashes, counts = np.unique(row_hashes(repeated, compared), return_counts=True)
        in_half = np.random.RandomState(0).binomial(counts, 0.5)
        return cls((), tuple(compared), hashes, counts, n_normal, in_half)

    def _look_up(self, rows: Columns, counts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the count of each row; 0 stands for a row that is there once, or never."""
        hashes = row_hashes(rows, self.compared)
        if not len(self.hashes):
            return np.zeros(len(hashes), dtype=np.intp)
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[places] == hashes, counts[places], 0)

    def _among_normal(self, rows: Columns) -> NDArray[np.intp]:
        """Return how many normal rows are like each row; 0 stands for one as well."""
        return self._look_up(rows, self.counts)

    def surprise(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        """Compute how odd it is that rows are there so often."""
        copies, among_normal = rows[COPIES].values, self._among_normal(rows)
        if own:
            # As if the half of the normal rows that a row is in were the batch.
            of_half = self._look_up(rows, self.in_half)
            is_in_half = np.random.RandomState(0).uniform(size=len(copies)) * among_normal < of_half
            found = np.where(is_in_half, of_half, among_normal - of_half)
            expected = among_normal - found + 1.0
        else:
            n_rows = rows[N_ROWS].values
            expected, found = (among_normal + 1) * n_rows / self.n_normal, copies
        tail = -poisson.logsf(found - 1.0, expected)
        is_repeated = found > 1
        return np.where(is_repeated, np.minimum(np.nan_to_num(tail, posinf=_MOST), _MOST), 0.0)

    def describe(self, rows: Columns, places: NDArray[np.intp], show: Shower) -> list[str]:
        """Say how often the rows are there."""
        most = int(self.counts.max(initial=1))
        normal = count_text(self.n_normal)
        never = (
            "no normal row is there twice"
            if most == 1
            else f"at most one of {normal} normal rows is like it"
        )
        return [
            f"the same row is there {count_text(int(copies))} times; "
            + (f"{share_of_rows(among, self.n_normal)} are like it" if among > 1 else never)
            for copies, among in zip(
                rows[COPIES].values[places].tolist(),
                self._among_normal(rows)[places].tolist(),
                strict=True,
            )
        ]


def count_copies(rows: Columns, *, is_part: bool = False) -> dict[str, Cells]:
    """Return how often each row is there, and among how many, as columns.

    Parameters
    ----------
    rows : Columns
    is_part : bool
        Whether these are rows picked from a table: nobody knows how often they are in it.
    """
    hashes = row_hashes(rows, tuple(rows))
    _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    copies = np.ones(len(hashes)) if is_part else counts[places.ravel()].astype(np.float64)
    n_rows = np.full(len(hashes), float(len(hashes)))
    return {COPIES: Cells(COPIES, "number", copies), N_ROWS: Cells(N_ROWS, "number", n_rows)}


def _expected(first: LevelCheck, second: LevelCheck) -> NDArray[np.float64]:
    """Return how often pairs would be there if levels did not depend on each other."""
    n = max(first.reference.n, 1)
    return np.outer(first.reference.counts, second.reference.counts) / n


def _ratios(counts: NDArray[np.intp], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute by how much counts are below what is expected; 0 if that is too little to tell."""
    ratios = np.log((expected + 1.0) / (np.maximum(counts, 0) + 1.0))
    return np.where(expected >= _LEAST_EXPECTED, np.maximum(ratios, 0.0), 0.0)


def row_hashes(rows: Columns, names: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for each row; equal rows have the same."""
    total = np.zeros(len(rows[names[0]].values), dtype=np.uint64)
    for name in names:
        total = (total ^ _cell_hashes(rows[name])) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total.view(np.int64)


def _cell_hashes(cells: Cells) -> NDArray[np.uint64]:
    if cells.is_text:
        of_levels: NDArray[np.uint64] = cells.level_hashes[cells.values]
        return of_levels
    # One NaN for all of them, and 0 for -0.
    plain = np.where(np.isnan(cells.values), np.nan, cells.values + 0.0)
    values: NDArray[np.uint64] = plain.view(np.uint64)
    if cells.words is not None:
        values = np.where(cells.words >= 0, cells.level_hashes[cells.words], values)
    return values
