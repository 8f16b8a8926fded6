"""All checks of a table, and the scores that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.checks.check import Check, Shower
from qms22.checks.dates import (
    AbsurdDateCheck,
    IntervalCheck,
    TimeOfDayCheck,
    WeekdayCheck,
)
from qms22.checks.fitting import FittingChecks
from qms22.checks.joint import (
    COPIES,
    MOST_LEVELS_IN_PAIR,
    N_ROWS,
    MissingTogetherCheck,
    PairCheck,
    RepeatCheck,
    count_copies,
)
from qms22.checks.single import (
    LevelCheck,
    PresenceCheck,
    ValueCheck,
)
from qms22.estimators.held_out import HeldOutScores
from qms22.estimators.weights import excess, excess_weight
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.columns.date_parts import DAY
from qms22.tables.columns.plan import ColumnPlan

# Known-normal rows that relations are learned from, and that others are compared with.
_MOST_LEARNED = 7000

# Columns whose pairs are looked at; more have too many pairs.
_MOST_IN_PAIRS = 12
_MOST_DATES = 5

# The least weight of the checks, next to the views of a detector; an excess of odd rows adds to it.
_WEIGHT = 1.0

# Surprises are rounded: products of matrices have rounding errors that depend on the place of a
# row, and equal rows must be equally odd.
_DECIMALS = 6

# Microseconds from 1970 to a late date.
_LARGEST_DATE = 1e17

# Rows that are looked at together.
_ROWS_AT_ONCE = 4096

# Checks of a row that are kept.
MOST_KEPT = 4


class OddCells(NamedTuple):
    """The checks in which rows are the oddest, the oddest first.

    Parameters
    ----------
    checks : ndarray of int of shape (n_rows, n_kept)
        Numbers of checks.
    surprises : ndarray of shape (n_rows, n_kept)
        About −log p.
    """

    checks: NDArray[np.int16]
    surprises: NDArray[np.float32]

    @classmethod
    def of(cls, surprises: NDArray[np.float64]) -> OddCells:
        """Keep the largest surprises of each row."""
        n_kept = min(MOST_KEPT, surprises.shape[1])
        order = np.argsort(-surprises, axis=1, kind="stable")[:, :n_kept]
        kept = np.take_along_axis(surprises, order, axis=1)
        found = cls.empty(len(surprises))
        found.checks[:, :n_kept], found.surprises[:, :n_kept] = order, kept
        return found

    @classmethod
    def empty(cls, n_rows: int) -> OddCells:
        """Return a place for rows, none of which is odd."""
        return cls(
            np.zeros((n_rows, MOST_KEPT), np.int16), np.zeros((n_rows, MOST_KEPT), np.float32)
        )

    def put(self, rows: NDArray[np.intp], found: OddCells) -> None:
        """Fill in what was found in some rows."""
        self.checks[rows], self.surprises[rows] = found

    def take(self, rows: NDArray[np.intp]) -> OddCells:
        """Return some of the rows."""
        return OddCells(self.checks[rows], self.surprises[rows])


class OwnOddness(NamedTuple):
    """How odd known-normal rows are that checks have learned from, each compared with the others.

    Parameters
    ----------
    places : ndarray of int
        The rows, ascending.
    oddness : ndarray
        Their largest surprise.
    """

    places: NDArray[np.intp]
    oddness: NDArray[np.float64]


class TableChecks:
    """Checks of the cells and rows of a table, learned from known-normal rows.

    Parameters
    ----------
    encoder : TabularEncoder
        Says what columns are, and which are left out.

    Attributes
    ----------
    names : tuple of str
        The columns that are checked: those that the encoder uses, and constant ones.
    is_scored : bool
        Whether they raise scores; else they only give reasons.
    weight : float
        Of the scores, next to those of the detector.
    threshold : float
        Rows with a higher score, that of the detector and of the checks together, are flagged.
    """

    def __init__(self, encoder: TabularEncoder) -> None:
        self.names = tuple(
            column.name
            for column in encoder.columns_
            if column.outputs or (column.kind == "constant" and column.name not in encoder.ignored_)
        )
        outputs = set(encoder.get_feature_names_out())
        self._dates = tuple(name for name in self.names if f"{name} (days)" in outputs)
        self.checks: list[Check] = []
        self.fitting = FittingChecks((), ())
        self.held_out = HeldOutScores.of(np.zeros(1))
        self.is_scored = True
        self.weight = 0.0
        self.threshold = np.inf

    def read(self, cells: Columns, *, is_part: bool = False) -> Columns:
        """Return the columns that are checked, and how often each row is there.

        Parameters
        ----------
        cells : mapping of str to Cells
            As the encoder understands them. Columns may be lacking.
        is_part : bool
            Whether these are rows picked from a table: how often they are there says nothing.
        """
        rows = {name: cells[name] for name in self.names if name in cells}
        rows = {name: column for name, column in rows.items() if column.form != "other"}
        return {**rows, **count_copies(rows, is_part=is_part)}

    def comparable(self, cells: Cells) -> Cells:
        """Return a column without what only says when rows were made: the day of a date."""
        if cells.form != "date" or cells.name in self._dates:
            return cells
        return replace(cells, values=cells.values % DAY)

    def learn(self, normal: Columns, seed: int) -> OwnOddness:
        """Learn from known-normal rows; return how odd up to 7,000 of them are, held out.

        Parameters
        ----------
        normal : Columns
            As `read` returns them.
        seed : int
            Of the rows that are drawn.
        """
        rows = {name: cells for name, cells in normal.items() if name not in (COPIES, N_ROWS)}
        self.names = tuple(rows)
        levels = []
        for cells in rows.values():
            level = self._learn_single(cells)
            if level is not None and len(level.reference.counts) > 2:
                levels.append(level)
        self.checks += _learn_intervals(rows)
        filled = [name for name in self.names if rows[name].has_value.any()]
        self.checks.append(MissingTogetherCheck.learn(rows, filled or self.names))
        self.checks += _learn_pairs(rows, levels)
        repeat = RepeatCheck.learn(normal, self.names)
        self.checks += [] if repeat is None else [repeat]
        rng = np.random.RandomState(seed)
        drawn = np.arange(len(normal[COPIES].values))
        if len(drawn) > _MOST_LEARNED:
            drawn = np.sort(rng.permutation(drawn)[:_MOST_LEARNED])
            normal = {name: cells.take(drawn) for name, cells in normal.items()}
        numbers = [name for name in self.names if _has_numbers(normal[name])]
        self.fitting = FittingChecks(numbers, [level for level in levels if level.levels])
        of_numbers = self.fitting.learn(normal, rng.randint(2**31 - 1))
        own = np.hstack([self._of_checks(normal, own=True), of_numbers])
        oddness: NDArray[np.float64] = own.max(axis=1).round(_DECIMALS)
        self.held_out = HeldOutScores.of(oddness)
        return OwnOddness(drawn, oddness)

    def score_own(
        self, normal: Columns, own: OwnOddness, places: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Compute −log p of known-normal rows as if the checks had not learned from them.

        Parameters
        ----------
        normal : Columns
            The rows that were learned from.
        own : OwnOddness
            What `learn` returned.
        places : ndarray of int
            Which of the rows.
        """
        at = np.minimum(np.searchsorted(own.places, places), len(own.places) - 1)
        is_held_out = own.places[at] == places
        scores = np.empty(len(places))
        scores[is_held_out] = -self.held_out.log_p_values_of_own(own.oddness[at[is_held_out]])
        others = np.flatnonzero(~is_held_out)
        for first in range(0, len(others), _ROWS_AT_ONCE):
            part = others[first : first + _ROWS_AT_ONCE]
            rows = {name: cells.take(places[part]) for name, cells in normal.items()}
            # Relations have not learned from these rows; all other checks have.
            found = np.hstack([self._of_checks(rows, own=True), self.fitting.surprises(rows)])
            scores[part] = self.scores(found.round(_DECIMALS))
        return scores

    def surprises(self, rows: Columns) -> NDArray[np.float64]:
        """Compute how odd rows are in each check, (n_rows, n_checks)."""
        if not self.checks:
            return np.zeros((len(rows[COPIES].values), 1))
        found = np.hstack([self._of_checks(rows), self.fitting.surprises(rows)])
        return found.round(_DECIMALS, out=found)

    def look(self, rows: Columns) -> tuple[NDArray[np.float64], OddCells]:
        """Return the scores of rows, and where they are the oddest; in parts, for less memory."""
        n_rows = len(rows[COPIES].values)
        scores, odd = np.empty(n_rows), OddCells.empty(n_rows)
        for first in range(0, n_rows, _ROWS_AT_ONCE):
            part = np.arange(first, min(first + _ROWS_AT_ONCE, n_rows))
            found = self.surprises({name: cells.take(part) for name, cells in rows.items()})
            scores[part] = self.scores(found)
            odd.put(part, OddCells.of(found))
        return scores, odd

    def scores(self, surprises: NDArray[Any]) -> NDArray[np.float64]:
        """Compute −log p of rows: how many held-out normal rows are as odd in any check."""
        largest = surprises.max(axis=1).astype(np.float64)
        scores: NDArray[np.float64] = -self.held_out.log_p_values(largest)
        return scores

    def weigh(self, scores: NDArray[np.float64], of_views: float = 0.0) -> None:
        """Set the weight: it is higher if a batch has more odd rows than chance would give.

        Parameters
        ----------
        scores : ndarray
            Of the batch, by the checks alone.
        of_views : float
            The weight of all views of the detector together. Checks have at least half as much: a
            cell that no known-normal row has is not outvoted by views that see nothing.
        """
        if self.is_scored:
            of_excess = excess_weight(excess(scores, len(self.held_out.ascending)))
            self.weight = max(_WEIGHT, of_views / 2) + of_excess

    def columns_of(self, check: int) -> tuple[str, ...]:
        """Return the columns that a check looks at; the first one is to blame."""
        if check < len(self.checks):
            return self.checks[check].columns
        return (self.fitting.numbers[check - len(self.checks)],)

    def is_fitting(self, check: int) -> bool:
        """Whether a check compares a number with the other columns."""
        return check >= len(self.checks)

    def describe(
        self, rows: Columns, places: NDArray[np.intp], check: int, show: Shower
    ) -> list[str]:
        """Say in words what a check finds odd about some of the rows."""
        if check < len(self.checks):
            return self.checks[check].describe(rows, places, show)
        return self.fitting.describe(rows, places, check - len(self.checks), show)

    def try_out(self, encoder: TabularEncoder) -> None:
        """Raise an error if the parts of loaded checks do not fit together, or to the encoder."""
        plans = encoder._plans_by_name
        rows = self.read({name: _cells_to_try(name, plan) for name, plan in plans.items()})
        show = {name: plan.show for name, plan in plans.items()}
        found = self.surprises(rows)
        scores = self.weight * self.scores(found)
        if not np.isfinite(scores).all() or np.isnan(self.threshold):
            raise ValueError("parts of the checks do not fit together")
        for check in range(found.shape[1] if self.checks else 0):
            if not rows.keys() >= set(self.columns_of(check)):
                raise ValueError("the checks are of another table")
            odd = np.flatnonzero(found[:, check])
            self.describe(rows, odd, check, lambda name, value: show[name](value))

    def describe_contradiction(
        self, rows: Columns, places: NDArray[np.intp], check: int, category: str, show: Shower
    ) -> list[str]:
        """Say in words that a category does not fit the number that a check is about."""
        column = check - len(self.checks)
        return self.fitting.describe_contradiction(rows, places, column, category, show)

    def _of_checks(self, rows: Columns, *, own: bool = False) -> NDArray[np.float64]:
        nothing = np.zeros(len(rows[COPIES].values))
        # A column that a table lacks is odd in no row.
        return np.array(
            [
                check.surprise(rows, own=own) if rows.keys() >= set(check.needs) else nothing
                for check in self.checks
            ]
        ).T

    def _learn_single(self, cells: Cells) -> LevelCheck | None:
        """Learn the checks of one column; return that of levels, if there is one."""
        found: list[Check | None] = []
        level = None
        if cells.form == "date":
            if cells.name in self._dates:
                found.append(ValueCheck.learn(cells))
            else:
                found.append(AbsurdDateCheck.learn(cells))
            found += [TimeOfDayCheck.learn(cells), WeekdayCheck.learn(cells)]
        else:
            level = LevelCheck.learn(cells)
            found.append(level)
            if cells.form == "number" and not _is_constant(level):
                found.append(ValueCheck.learn(cells))
        if not cells.is_text or not cells.has_value.any():
            found.append(PresenceCheck.learn(cells))
        self.checks += [check for check in found if check is not None]
        return level


def _cells_to_try(name: str, plan: ColumnPlan) -> Cells:
    """Return a missing cell, a usual one, and the least and largest there are."""
    if plan.kind == "categorical":
        return Cells(name, "text", np.array([-1, 0, 0, 0]), ("(new)",))
    if plan.kind == "date":
        return Cells(name, "date", np.array([np.nan, 0.0, -_LARGEST_DATE, _LARGEST_DATE]))
    return Cells(name, "number", np.array([np.nan, 0.0, -1e300, 1e300]))


def _is_constant(level: LevelCheck | None) -> bool:
    return level is not None and np.count_nonzero(level.reference.counts) == 1


def _has_numbers(cells: Cells) -> bool:
    """Whether a column has numbers that others may say something about."""
    return cells.form == "number" and len(np.unique(cells.values[~np.isnan(cells.values)])) > 2


def _learn_intervals(rows: Columns) -> list[IntervalCheck]:
    """Learn the days between two dates; they do not depend on when the rows were made."""
    dates = [cells for cells in rows.values() if cells.form == "date"][:_MOST_DATES]
    found = (IntervalCheck.learn(earlier, later) for earlier, later in combinations(dates, 2))
    return [check for check in found if check is not None]


def _learn_pairs(rows: Columns, levels: Sequence[LevelCheck]) -> list[PairCheck]:
    few = [level for level in levels if len(level.reference.counts) <= MOST_LEVELS_IN_PAIR]
    few = few[:_MOST_IN_PAIRS]
    codes = [level.codes(rows[level.columns[0]]) for level in few]
    pairs = (
        PairCheck.learn(few[one], few[other], (codes[one], codes[other]))
        for one, other in combinations(range(len(few)), 2)
    )
    return [pair for pair in pairs if pair is not None]
