"""Reasons why rows are suspicious, in words people can check against the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.checks import OddCells, TableChecks
from qms22.checks.check import Said, Shower, Usual, listed, share_of_rows, shown_cells
from qms22.checks.copies import CopyCheck, cell_hashes
from qms22.checks.single import LevelCheck
from qms22.checks.texts import FAULTS, TextCheck
from qms22.detection.reasons.blame import LEAST_ODD, find_culprits
from qms22.estimators.batch_detector import BatchDetector
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns

# More reasons in a cell of a table are not read.
REASONS_PER_ROW = 3

# What is less than a third as odd as the oddest cell of a row is no reason beside it.
_BESIDE = 0.3
# More columns are hard to check at a glance, and one that counts for less than a third of the
# strongest adds little.
_MOST_COLUMNS = 3
_LEAST_PART = 0.3

# Numbers count as alike if at most 5 % of the normal rows are between them. A combination that more
# than 2 % of them have is no reason.
_NEAR = 0.05
_MOST_ALIKE = 0.02


# Less than any difference between two surprises that counts.
_A_LITTLE = 1e-3


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
    kind : str
        What kind of reason it is: the check that finds it ("level", "interval", "copy"), "misfit"
        for a number that does not fit the other columns, or "combination".
    usual : Usual, optional
        What normal rows have instead in the cell to blame, if there is one and the check knows.
    """

    columns: tuple[str, ...]
    text: str
    strength: float
    kind: str = ""
    usual: Usual | None = None

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
    """Return the odd cells of rows in words, the oddest first; none where no cell is odd."""
    is_odd = odd.surprises >= np.maximum(LEAST_ODD, _BESIDE * odd.surprises[:, :1])
    places, numbers, surprises = np.nonzero(is_odd)[0], odd.checks[is_odd], odd.surprises[is_odd]
    triples = zip(places.tolist(), numbers.tolist(), surprises.tolist(), strict=True)
    found = [_Found(*triple, checks.columns_of(triple[1])) for triple in triples]
    return _in_words(checks, rows, len(odd.checks), found, show)


def blamed_reasons(checks: TableChecks, rows: Columns, show: Shower) -> list[list[RowReason]]:
    """Return the odd cells of rows in words, at least one, with the cell to blame first.

    A wrong cell makes others odd that are predicted from it. They are no reasons if they are as
    usual once that cell is taken as unknown.
    """
    surprises = checks.surprises(rows)
    if not checks.checks:
        return [[] for _ in surprises]
    _prefer_new_levels(checks, surprises)
    _prefer_cells(checks, rows, surprises)
    blamed, without = checks.blame(rows)
    culprits = find_culprits(checks, rows, surprises, blamed)
    found = []
    for place, (of_row, culprit) in enumerate(zip(surprises.tolist(), culprits, strict=True)):
        candidates = [
            _Found(place, check, surprise, checks.columns_of(check))
            for check, surprise in enumerate(of_row)
        ]
        odd = [each for each in candidates if each.surprise >= LEAST_ODD]
        broken = [each for each in odd if checks.is_rule(each.check)]
        # By the number that they compute, such as a sum.
        rules = {each.columns[0]: each for each in sorted(broken, key=lambda each: each.surprise)}
        if culprit is not None:
            candidates = _with_blame(checks, candidates, culprit, without[culprit][place])
        candidates = _in_rules(checks, candidates, rules)
        # What the others suggest says more than that a value was never seen.
        candidates.sort(key=lambda each: (-each.surprise, not checks.is_fitting(each.check)))
        limit = max(LEAST_ODD, _BESIDE * candidates[0].surprise)
        found += [each for at, each in enumerate(candidates) if at == 0 or each.surprise >= limit]
    return _in_words(checks, rows, len(surprises), found, show)


def _in_rules(
    checks: TableChecks, found: Sequence[_Found], rules: Mapping[str, _Found]
) -> list[_Found]:
    """Return what was found, where a number that does not fit is explained by the rule it breaks.

    That it does not fit shows which cell is wrong; the rule alone is about several.
    """
    misfits = {
        name
        for each in found
        if checks.is_fitting(each.check) and each.surprise >= LEAST_ODD
        for name in each.columns
    }
    kept = []
    for each in found:
        if checks.is_rule(each.check) and misfits & set(each.columns):
            kept.append(each._replace(surprise=0.0))
        elif checks.is_fitting(each.check) and each.columns[0] in rules and len(each.columns) == 1:
            rule = rules[each.columns[0]]
            kept.append(each._replace(check=rule.check, columns=rule.columns))
        else:
            kept.append(each)
    return kept


def _prefer_new_levels(checks: TableChecks, surprises: NDArray[np.float64]) -> None:
    """Let a level be called never seen, not written in its own way, unless it is damaged."""
    levels = {
        check.columns[0]: at
        for at, check in enumerate(checks.checks)
        if isinstance(check, LevelCheck) and check.coding.levels
    }
    for at, check in enumerate(checks.checks):
        if not isinstance(check, TextCheck) or check.columns[0] not in levels:
            continue
        preferred, other = levels[check.columns[0]], at
        if not check.is_form:
            preferred, other = other, preferred
        if check.is_form or check.trait in FAULTS:
            is_odd = surprises[:, preferred] >= LEAST_ODD
            surprises[is_odd, preferred] = surprises[is_odd][:, [preferred, other]].max(axis=1)
            surprises[is_odd, other] = 0.0


def _prefer_cells(checks: TableChecks, rows: Columns, surprises: NDArray[np.float64]) -> None:
    """Let rows that are the same but for a cell be odd for their other cells, if these are odd.

    Airports at 0° north and east are alike because that is wrong.
    """
    for at, check in enumerate(checks.checks):
        if not isinstance(check, CopyCheck) or not rows.keys() >= {*check.more}:
            continue
        alone = check.differ_in(rows)
        for place in np.flatnonzero(alone >= 0).tolist():
            is_other = [check.more[alone[place]] != name != "" for name in checks.blamed]
            oddest = surprises[place, is_other].max(initial=0.0)
            if oddest >= LEAST_ODD:
                surprises[place, at] = min(surprises[place, at], oddest - _A_LITTLE)


def _with_blame(
    checks: TableChecks, found: Sequence[_Found], culprit: str, after: NDArray[np.float64]
) -> list[_Found]:
    """Put the cell to blame before all numbers that do not fit, and drop what it explains.

    `found` are all checks of a row, in their order; `after` are the surprises of numbers without
    the column to blame, the culprit.
    """
    alone, misfits = found[: len(checks.checks)], found[len(checks.checks) :]
    most = max(misfits, key=lambda each: each.surprise)
    left = [
        each if each.columns[0] == culprit else each._replace(surprise=surprise)
        for each, surprise in zip(misfits, after.tolist(), strict=True)
    ]
    odd_alone = [each for each in alone if each.surprise >= LEAST_ODD]
    if all(each.columns != (culprit,) for each in (*odd_alone, *misfits)):
        left.append(most._replace(columns=(culprit, *most.columns)))
    return [
        each._replace(surprise=max(each.surprise, most.surprise))
        if each.columns[:1] == (culprit,) and each.surprise >= LEAST_ODD
        else each
        for each in (*alone, *left)
    ]


def _in_words(
    checks: TableChecks, rows: Columns, n_rows: int, found: Sequence[_Found], show: Shower
) -> list[list[RowReason]]:
    """Write what was found; a column has one reason in a row."""
    chosen: dict[int, list[_Found]] = {}
    for each in found:
        of_row = chosen.setdefault(each.place, [])
        # "nights is missing with kind hotel" and "kind hotel with nights is missing" are one.
        is_named = each.columns and any(
            other.columns[:1] == each.columns[:1] or {*other.columns} == {*each.columns}
            for other in of_row
        )
        if not is_named and len(of_row) < REASONS_PER_ROW:
            of_row.append(each)
    by_check: dict[tuple[int, tuple[str, ...]], list[_Found]] = {}
    for each in chain.from_iterable(chosen.values()):
        by_check.setdefault((each.check, each.columns), []).append(each)
    said: dict[_Found, Said] = {}
    for (check, columns), group in by_check.items():
        places = np.array([each.place for each in group], dtype=np.intp)
        if columns == checks.columns_of(check):
            described = checks.describe(rows, places, check, show)
        else:
            described = checks.describe_contradiction(rows, places, check, columns[0], show)
        said.update(zip(group, described, strict=True))

    def reason(each: _Found) -> RowReason:
        text, usual = said[each]
        return RowReason(each.columns, text, each.surprise, checks.kind_of(each.check), usual)

    return [[reason(each) for each in chosen.get(place, [])] for place in range(n_rows)]


def combination_reasons(
    detector: BatchDetector,
    encoder: TabularEncoder,
    matrix: NDArray[np.float64],
    rows: Columns,
    normal: Columns,
    show: Shower,
) -> list[RowReason | None]:
    """Return for each row two or three columns that are odd together; None if there are none.

    The detector tells, by the `matrix` of the rows, how much less suspicious a row is with the
    usual value of a column. The known-normal rows are to count those alike.
    """
    explanation = detector.explain(matrix, groups=encoder.groups_, typical=encoder.typical_row_)
    ascending = {name: np.sort(cells.values[cells.has_value]) for name, cells in normal.items()}
    reasons: list[RowReason | None] = []
    for row in range(len(matrix)):
        top = [reason for reason in explanation.top(row, _MOST_COLUMNS) if reason.name in rows]
        names = [each.name for each in top if each.drop >= _LEAST_PART * top[0].drop]
        is_alike = [
            _are_alike(rows[name], row, normal[name], ascending[name])
            for name in (names if normal else [])
        ]
        n_alike = int(np.logical_and.reduce(is_alike).sum()) if is_alike else 0
        n_normal = len(is_alike[0]) if is_alike else 0
        # What no normal row has is odd without the other columns.
        is_one_alone = not all(each.any() for each in is_alike)
        if len(names) < 2 or is_one_alone or n_alike > _MOST_ALIKE * n_normal:
            reasons.append(None)
            continue
        texts = [shown_cells(rows[name].take(np.array([row])), show)[0] for name in names]
        text = f"{listed(texts, _MOST_COLUMNS)} together"
        if is_alike:
            text += f", as in {share_of_rows(n_alike, n_normal)}"
        strength = math.log((n_normal + 1) / (n_alike + 1))
        reasons.append(RowReason(tuple(names), text, strength, "combination"))
    return reasons


def _are_alike(
    cells: Cells, row: int, normal: Cells, ascending: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which normal rows have about the value of a row; their numbers are `ascending`."""
    value, n = cells.values[row], len(ascending)
    if normal.is_text or np.isnan(value):  # a text, a word, or a missing cell
        return np.asarray(cell_hashes(normal) == cell_hashes(cells)[row])
    reach = int(_NEAR * n)
    first = np.searchsorted(ascending, value, side="left") - reach
    last = np.searchsorted(ascending, value, side="right") + reach
    low, high = ascending[np.clip([first, last], 0, n - 1)] if n else (np.nan, np.nan)
    return np.asarray((normal.values >= low) & (normal.values <= high))
