"""Reasons why rows are suspicious, in words people can check against the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.detection.checks import OddCells, TableChecks
from qms22.detection.checks.base import Columns, Shower

REASONS_PER_ROW = 3

# A cell is worth a word if fewer than one normal row in 200 is as odd in one check.
_LEAST_ODD = 5.3
# What is much less odd than the oddest cell of a row is no reason beside it.
_BESIDE = 0.3

# Cells that explain nearly as much as the one that explains most may be to blame as well.
_NEARLY = 0.85


class RowReason(NamedTuple):
    """One thing that makes a row suspicious.

    Parameters
    ----------
    columns : tuple of str
        The cells; the first one is to blame. Empty if it is about the whole row.
    text : str
        What is odd, with the value and how normal rows compare.
    strength : float
        How odd it is: about −log p.
    """

    columns: tuple[str, ...]
    text: str
    strength: float

    def __str__(self) -> str:
        return self.text


class _Found(NamedTuple):
    """A check that finds a row odd."""

    place: int
    check: int
    surprise: float
    columns: tuple[str, ...]


def cell_reasons(
    checks: TableChecks, rows: Columns, odd: OddCells, show: Shower
) -> list[list[RowReason]]:
    """Return the odd cells of rows in words, the oddest first; none where no cell is odd.

    Parameters
    ----------
    checks : TableChecks
    rows : Columns
    odd : OddCells
        Of these rows.
    show : Shower
    """
    limit = np.maximum(_LEAST_ODD, _BESIDE * odd.surprises[:, :1])
    places, kept = np.nonzero(odd.surprises >= limit)
    found = [
        _Found(place, check, surprise, checks.columns_of(check))
        for place, check, surprise in zip(
            places.tolist(),
            odd.checks[places, kept].tolist(),
            odd.surprises[places, kept].tolist(),
            strict=True,
        )
    ]
    return _in_words(checks, rows, len(odd.checks), found, show)


def blamed_reasons(checks: TableChecks, rows: Columns, show: Shower) -> list[list[RowReason]]:
    """Return the odd cells of rows in words, at least one, with the cell to blame first.

    A wrong cell makes others odd that are predicted from it. They are no reasons if they are as
    usual once that cell is taken as unknown.
    """
    surprises = checks.surprises(rows)
    if not checks.checks:
        return [[] for _ in surprises]
    first_fitting = len(checks.checks)
    blamed, without = checks.fitting.blame(rows)
    found = []
    for place, of_row in enumerate(surprises):
        candidates = [
            _Found(place, check, float(of_row[check]), checks.columns_of(check))
            for check in np.argsort(-of_row, kind="stable").tolist()
        ]
        alone = {
            each.columns[0]: each.surprise
            for each in reversed(candidates)
            if each.columns and not checks.is_fitting(each.check)
        }
        culprit = _culprit(blamed, place, checks.fitting.numbers, alone)
        if culprit is not None:
            after = without[culprit][place]
            candidates = [
                each
                if not checks.is_fitting(each.check) or each.columns[0] == culprit
                else each._replace(surprise=float(after[each.check - first_fitting]))
                for each in candidates
            ]
            candidates = [_with_blame(each, culprit, blamed[culprit][place]) for each in candidates]
            if culprit not in checks.fitting.numbers:
                most = int(np.argmax(of_row[first_fitting:])) + first_fitting
                number = checks.columns_of(most)[0]
                surprise = float(of_row[most])
                candidates.append(_Found(place, most, surprise, (culprit, number)))
        candidates.sort(key=lambda each: -each.surprise)
        limit = max(_LEAST_ODD, _BESIDE * candidates[0].surprise)
        found += [each for at, each in enumerate(candidates) if at == 0 or each.surprise >= limit]
    return _in_words(checks, rows, len(surprises), found, show)


def _culprit(
    blamed: dict[str, NDArray[np.float64]],
    place: int,
    numbers: Sequence[str],
    alone: dict[str, float],
) -> str | None:
    """Return the column whose cell makes most of the others odd, if any does.

    Of total = price * quantity each may be wrong. That which is odd by itself is to blame, or else
    the last number: people put what is computed after what it is computed from.
    """
    amounts = {name: float(values[place]) for name, values in blamed.items()}
    most = max(amounts.values(), default=0.0)
    if most <= 0:
        return None
    likely = [name for name in amounts if amounts[name] >= _NEARLY * most]
    oddest = max(likely, key=lambda name: alone.get(name, 0.0))
    if alone.get(oddest, 0.0) >= _LEAST_ODD:
        return oddest
    return next((name for name in reversed(numbers) if name in likely), oddest)


def _with_blame(found: _Found, culprit: str, amount: float) -> _Found:
    """Give the check of the cell to blame the oddness of all cells that it explains."""
    if found.columns[:1] != (culprit,) or found.surprise < _LEAST_ODD:
        return found
    return found._replace(surprise=max(found.surprise, float(amount)))


def _in_words(
    checks: TableChecks, rows: Columns, n_rows: int, found: Sequence[_Found], show: Shower
) -> list[list[RowReason]]:
    """Write what was found; a column has one reason in a row."""
    chosen: dict[int, list[_Found]] = {}
    for each in found:
        of_row = chosen.setdefault(each.place, [])
        same = [at for at, other in enumerate(of_row) if other.columns[:1] == each.columns[:1]]
        if same and each.columns:
            # What other columns suggest says less than the range of the column itself, unless it
            # can be said which columns these are.
            other = of_row[same[0]]
            if checks.is_fitting(other.check) and not checks.sources_of(other.check):
                of_row[same[0]] = each._replace(surprise=other.surprise)
        elif len(of_row) < REASONS_PER_ROW:
            of_row.append(each)
    by_check: dict[int, list[_Found]] = {}
    for each in (each for of_row in chosen.values() for each in of_row):
        by_check.setdefault(each.check, []).append(each)
    texts = {}
    for check, group in by_check.items():
        places = np.array([each.place for each in group], dtype=np.intp)
        described = checks.describe(rows, places, check, show)
        texts.update(
            {(each.place, check): text for each, text in zip(group, described, strict=True)}
        )
    return [
        [
            RowReason(each.columns, texts[place, each.check], each.surprise)
            for each in chosen.get(place, [])
        ]
        for place in range(n_rows)
    ]
