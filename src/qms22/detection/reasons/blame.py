"""Which cell is to blame if the numbers of a row do not fit each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from qms22.checks import TableChecks
from qms22.checks.groups import GroupCheck
from qms22.checks.single import LevelCheck, ValueCheck
from qms22.tables.columns.cells import Columns

# A cell is odd by itself if fewer than one normal row in 200 is as odd in one check: −log(1/200).
LEAST_ODD = 5.3

# A cell is clearly odd if fewer than one normal row in 3,000 is as odd in one check; about one row
# in ten has such a cell somewhere.
CLEARLY_ODD = 8.0

# Cells that explain nearly as much as the one that explains most may be to blame as well, and so
# may one that explains a part of it if it is clearly odd.
_NEARLY = 0.85
_PARTLY = 0.2

# So many rows have the same cause if four of five agree in a column, on values that at most a
# quarter of the normal rows have.
_SEVERAL = 5
_AGREEING = 0.8
_FEW = 0.25


def find_culprits(
    checks: TableChecks,
    rows: Columns,
    surprises: NDArray[np.float64],
    blamed: Mapping[str, NDArray[np.float64]],
) -> list[str | None]:
    """Return for each row the column whose cell makes most of the others odd, if any does.

    Of total = price * quantity each may be wrong. That which is odd by itself is to blame, or for
    its group if that is not in doubt; or that in which several such rows agree, as if they had a
    common cause; or else the last number: people put what is computed after what it is computed
    from. `blamed` has by column how much less odd all numbers of each row are without it.
    """
    # A table may lack columns.
    names = tuple(name for name in blamed if name in rows)
    if not names:
        return [None] * len(surprises)
    amounts = np.array([blamed[name] for name in names]).T
    alone = _odd_alone(checks, names, surprises, np.zeros(amounts.shape, dtype=bool))
    most = amounts.max(axis=1, keepdims=True)
    is_likely = (amounts >= _NEARLY * most) | ((alone >= CLEARLY_ODD) & (amounts >= _PARTLY * most))
    in_group = _odd_alone(checks, names, surprises, ~is_likely)
    culprits: list[str | None] = [None] * len(surprises)
    undecided: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in np.flatnonzero(most[:, 0] > 0).tolist():
        likely = np.flatnonzero(is_likely[row])
        oddest = likely[np.argmax(in_group[row, likely])]
        if len(likely) == 1 or in_group[row, oddest] >= LEAST_ODD:
            culprits[row] = names[oddest]
        else:
            undecided[tuple(names[at] for at in likely)].append(row)
    # If several cells are wrong, none explains it all.
    misfit = surprises[:, len(checks.checks) :].max(axis=1, initial=0.0)
    oddest_alone = alone.max(axis=1)
    is_open = (most[:, 0] <= 0) & (oddest_alone >= CLEARLY_ODD) & (oddest_alone < misfit)
    for row in np.flatnonzero(is_open).tolist():
        culprits[row] = names[np.argmax(alone[row])]
    for columns, places in undecided.items():
        cause = _common_cause(checks, rows, columns, np.array(places))
        last = [name for name in checks.fitting.numbers if name in columns]
        for row in places:
            culprits[row] = cause or (last or list(columns))[-1]
    return culprits


def _odd_alone(
    checks: TableChecks, names: Sequence[str], odd: NDArray[np.float64], is_sound: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return how odd cells are by themselves, or for groups by cells that are sound."""
    alone = np.zeros((len(odd), len(names)))
    for number, check in enumerate(checks.checks):
        name, *by = checks.columns_of(number) or ("",)
        if not {name, *by} <= {*names} or (by and not isinstance(check, GroupCheck)):
            continue
        are_sound = is_sound[:, [names.index(each) for each in by]].all(axis=1)
        at = names.index(name)
        alone[:, at] = np.maximum(alone[:, at], np.where(are_sound, odd[:, number], 0.0))
    return alone


def _common_cause(
    checks: TableChecks, rows: Columns, columns: Sequence[str], places: NDArray[np.intp]
) -> str | None:
    """Return the column in which rows agree most, on values that few normal rows have."""
    if len(places) < _SEVERAL:
        return None
    shares = {
        check.columns[0]: _share_of_normal(check, rows, places)
        for check in checks.checks
        if isinstance(check, LevelCheck | ValueCheck) and check.columns[0] in columns
    }
    ascending = sorted(shares, key=lambda name: shares[name])
    if not ascending or shares[ascending[0]] > _FEW:
        return None
    # If they agree in another column nearly as much, neither is the cause.
    if len(ascending) > 1 and shares[ascending[1]] < 2 * shares[ascending[0]]:
        return None
    return ascending[0]


def _share_of_normal(
    check: LevelCheck | ValueCheck, rows: Columns, places: NDArray[np.intp]
) -> float:
    """Return the share of normal rows in the level or the interval that most of the rows are in."""
    cells = rows[check.columns[0]]
    n_agreeing = int(np.ceil(_AGREEING * len(places)))
    if isinstance(check, LevelCheck):
        codes, counts = np.unique(check.coding.codes(rows)[places], return_counts=True)
        code = codes[np.argmax(counts)]
        if counts.max() < n_agreeing or code < 0:
            return 1.0
        return float(check.reference.counts[code] / max(check.reference.n, 1))
    values = np.sort(cells.values[places])
    ascending = check.reference.ascending
    first = np.searchsorted(ascending, values[: len(values) - n_agreeing + 1], side="left")
    last = np.searchsorted(ascending, values[n_agreeing - 1 :], side="right")
    return float(np.min(last - first) / len(ascending))
