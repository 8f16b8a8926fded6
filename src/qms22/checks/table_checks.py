"""All checks of a table: what columns are to them, the scores that they give, the oddest cells."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22.checks.arithmetic import ArithmeticCheck
from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.cases import Staying, repeated_cases
from qms22.checks.check import Check, Said, Shower, listed
from qms22.checks.codings import TextParts
from qms22.checks.copies import COPIES, count_copies, count_keys
from qms22.checks.dependence import DependenceCheck
from qms22.checks.fitting import FittingChecks
from qms22.checks.sequences.in_order import Derived, derive
from qms22.checks.sequences.repetition import RepetitionCheck
from qms22.checks.sequences.series import Series
from qms22.checks.sequences.steps import CounterSteps
from qms22.checks.single import LevelCheck, ValueCheck, may_get_others
from qms22.checks.surprise import OddnessScale
from qms22.checks.texts import MisspellingCheck, TextCheck
from qms22.estimators.weights import excess, excess_weight
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns, take_rows
from qms22.tables.columns.date_parts import DAY
from qms22.tables.columns.plan import ColumnPlan

# Rows are odd if they are odder than 99 % of the normal ones.
USUAL = 0.99
# The least weight of the checks, next to the views of a detector; an excess of odd rows adds to it.
_WEIGHT = 1.0
_OF_VIEWS = 0.75
# Surprises are rounded: products of matrices have rounding errors that depend on the place of a
# row, and equal rows must be equally odd.
DECIMALS = 6
# Microseconds from 1970 to a late date.
_LARGEST_DATE = 1e17
# Rows that are looked at together: enough that what each part takes by itself does not count.
ROWS_AT_ONCE = 2**14
# Checks of a row that are kept.
MOST_KEPT = 4


class OddCells(NamedTuple):
    """The checks in which rows are the oddest, the oddest first, (n_rows, n_kept)."""

    checks: NDArray[np.int16]  # their numbers
    surprises: NDArray[np.float32]  # about −log p

    @classmethod
    def of(cls, surprises: Floats) -> OddCells:
        """Keep the largest surprises of each row."""
        order = np.argsort(-surprises, axis=1, kind="stable")[:, :MOST_KEPT]
        found, kept = cls.empty(len(surprises)), slice(order.shape[1])
        found.checks[:, kept] = order
        found.surprises[:, kept] = np.take_along_axis(surprises, order, axis=1)
        return found

    @classmethod
    def empty(cls, n_rows: int) -> OddCells:
        """Return a place for rows, none of which is odd."""
        shape = n_rows, MOST_KEPT
        return cls(np.zeros(shape, np.int16), np.zeros(shape, np.float32))

    def put(self, rows: Ints, found: OddCells) -> None:
        """Fill in what was found in some rows."""
        self.checks[rows], self.surprises[rows] = found

    def take(self, rows: Ints) -> OddCells:
        """Return some of the rows."""
        return OddCells(self.checks[rows], self.surprises[rows])


@dataclass(frozen=True)
class Roles:
    """What columns of a table are to its checks."""

    names: tuple[str, ...]  # those that are checked: those that the encoder uses, and constant ones
    texts: tuple[str, ...]  # texts that the encoder cannot use; they are read nevertheless
    keys: tuple[str, ...]  # those of them that are identifiers
    compared: tuple[str, ...]  # those in which copies of a row agree
    days: tuple[str, ...]  # dates whose day can be odd
    moments: tuple[str, ...]  # dates whose time of day and weekday can be odd

    @classmethod
    def of(cls, encoder: TabularEncoder) -> Roles:
        """Return what columns are by what the encoder has learned of them."""
        kinds = {column.name: column.kind for column in encoder.columns_}
        used = {column.name for column in encoder.columns_ if column.outputs}
        kept = {name: kind for name, kind in kinds.items() if name not in encoder.ignored_}
        names = tuple(
            name
            for name, kind in kinds.items()
            if name in used
            or kept.get(name) == "constant"
            # A date that only says when a row was made may still be of another age.
            or (kind == "date" and name not in encoder.ignore)
        )
        texts = tuple(name for name, kind in kept.items() if kind in ("identifier", "text"))
        keys = tuple(name for name in texts if kinds[name] == "identifier")
        whole = {*names, *texts} - ({*keys} - {*names})
        compared = tuple(name for name in kinds if name in whole)
        outputs = set(encoder.get_feature_names_out())
        days = tuple(name for name in names if f"{name} (days)" in outputs)
        moments = tuple(name for name in names if name in used)
        return cls(names, texts, keys, compared, days, moments)

    def among(self, rows: Columns) -> Roles:
        """Return the roles of the columns that are among some as they are read."""
        texts = tuple(name for name in self.texts if name in rows and rows[name].is_text)
        names = tuple(name for name in self.names if name in rows)
        keys = tuple(name for name in self.keys if name in rows)
        compared = tuple(name for name in self.compared if name in {*names, *texts})
        return replace(self, names=names, texts=texts, keys=keys, compared=compared)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read: those that are checked, and texts."""
        return (*self.names, *self.texts)


class TableChecks:
    """Checks of the cells and rows of a table, learned from known-normal rows by `learn_checks`.

    The encoder says what columns are, and which are left out.
    """

    def __init__(self, encoder: TabularEncoder) -> None:
        self.roles = Roles.of(encoder)
        self.derived: tuple[Derived, ...] = ()
        self.parts: tuple[TextParts, ...] = ()
        self.entities: tuple[str, ...] = ()
        self.is_later = False
        self.staying = Staying()
        self.n_of_all = 0  # so many of the first checks have learned from all known-normal rows
        self.checks: list[Check] = []
        self.fitting = FittingChecks()
        self.scale = OddnessScale.of(np.zeros(1))
        self.is_scored = True  # whether they raise scores; else they only give reasons
        self.weight = 0.0  # of the scores, next to those of the detector
        # Rows with a higher score, that of the detector and of the checks together, are flagged.
        self.threshold = np.inf

    @property
    def notes(self) -> tuple[str, ...]:
        """What no check finds odd, as it is in all of a later batch, a sentence per column."""
        return tuple(
            f"{name!r} has {listed([repr(level) for level in levels])} all along, which no normal "
            "row has; in a later batch that is not odd"
            for name, levels in self.staying.levels.items()
            if levels
        )

    def read(self, cells: Columns, *, is_part: bool = False) -> Columns:
        """Return the columns that are checked, where there, and how often each row is there.

        With `is_part` these are rows picked from a table: how often they are there says nothing.
        """
        roles = self.roles
        read = {
            name: cells[name]
            for name in roles.read
            if name in cells
            and cells[name].form != "other"
            and (cells[name].is_text or name not in roles.texts)
        }
        keys = {name: cells[name] for name in roles.keys if name in cells}
        read |= keys | count_copies(read, roles.compared, is_part=is_part)
        read |= count_keys(keys, is_part=is_part)
        for parts in self.parts:
            read |= parts.columns(read[parts.column]) if parts.column in read else {}
        return read if is_part else read | derive(self.derived, read)

    def comparable(self, cells: Cells) -> Cells:
        """Return a column without what only says when rows were made: the day of a date."""
        if cells.form != "date" or cells.name in self.roles.days:
            return cells
        return replace(cells, values=cells.values % DAY)

    @property
    def owners(self) -> dict[str, str]:
        """The columns of texts that numbers are parts of."""
        return {name: parts.column for parts in self.parts for name in parts.names}

    @property
    def counters(self) -> set[str]:
        """The columns whose numbers rise from row to row, which say when a row was made."""
        return {each.name for each in self.derived if isinstance(each, CounterSteps)}

    @property
    def series_of(self) -> set[str]:
        """The columns whose levels have a series each, such as meters with their readings."""
        return {each.entity for each in self.derived if isinstance(each, CounterSteps | Series)}

    def surprises(self, rows: Columns) -> Floats:
        """Compute how odd rows are in each check, (n_rows, n_checks)."""
        if not self.checks:
            return np.zeros((len(rows[COPIES].values), 1))
        found = np.hstack([self.of_checks(rows), self.of_fitting(rows)])
        new = self.staying
        # Nobody knows what numbers go with a new doctor.
        for name in new.levels.keys() & rows.keys():
            found[new.among(rows[name]), len(self.checks) :] = 0.0
        blamed = np.array(self.blamed)
        for (name, level), columns in new.unlike.items():
            if name in rows:
                is_alone = name in self.series_of and level not in new.levels.get(name, ())
                first = len(self.checks) if is_alone else 0
                odd = first + np.flatnonzero(np.isin(blamed[first:], columns))
                found[np.ix_(rows[name].is_among((level,)), odd)] = 0.0
        of_cells = (LevelCheck, MisspellingCheck, TextCheck, ValueCheck)
        for at, name in enumerate(self.blamed):
            is_of_cell = self.is_fitting(at) or isinstance(self.checks[at], of_cells)
            if is_of_cell and name in rows and (name in new.levels or name in new.values):
                found[new.among(rows[name]), at] = 0.0
        return found.round(DECIMALS, out=found)

    def look(self, rows: Columns) -> tuple[Floats, OddCells]:
        """Return the scores of rows, and where they are the oddest; in parts, for less memory."""
        n_rows = len(rows[COPIES].values)
        scores, odd = np.empty(n_rows), OddCells.empty(n_rows)
        for first in range(0, n_rows, ROWS_AT_ONCE):
            part = np.arange(first, min(first + ROWS_AT_ONCE, n_rows))
            found = self.surprises({name: cells.take(part) for name, cells in rows.items()})
            scores[part] = self.scores(found)
            odd.put(part, OddCells.of(found))
        return scores, odd

    def repeats(self, rows: Columns, odd: OddCells) -> Ints:
        """Return which rows of a batch are of a case that another one stands for.

        Rows of a run or a burst are one. Those of a later batch are odd as another one is, or no
        check finds them odd and they do what several rows do. Rows of one time are drawn like the
        known-normal ones, among which there are such cases, too.
        """
        checks, surprises = odd.checks[:, 0], odd.surprises[:, 0]
        places = np.flatnonzero(surprises > np.quantile(self.scale.ascending, USUAL))
        places = places[np.argsort(-surprises[places], kind="stable")]
        some = take_rows(rows, places)
        is_repeat = np.zeros(len(places), dtype=bool)
        # A panel may have few entities.
        entities = {*self.entities, *self.series_of}
        for number in np.unique(checks[places]).tolist():
            at = np.flatnonzero(checks[places] == number)
            check = self.checks[number] if number < len(self.checks) else None
            most = check.most if isinstance(check, RepetitionCheck) else None
            if most is None and not self.is_later:
                continue
            own = {name: cells.take(at) for name, cells in some.items()}
            names = [name for name in self.columns_of(number) if name in own]
            is_alone = len(names) == 1 and not self.is_fitting(number)
            is_repeat[at] = repeated_cases(own, names, entities, is_alone=is_alone, most=most)
        if not self.is_later:
            return places[is_repeat]
        there = [check for check in self.checks if rows.keys() >= set(check.needs)]
        for check in there:
            # Whatever is odd about a new article is odd about all of its rows.
            if isinstance(check, LevelCheck) and may_get_others(check.coding.levels):
                cells = some[check.columns[0]]
                is_repeat |= check.repeats_new(cells) & ~self.staying.among(cells)
        # Of what many rows do, and no check finds odd, a detector knows nothing more either.
        is_usual = np.ones(len(checks), dtype=bool)
        is_usual[places] = False
        does_as_others = np.zeros(len(checks), dtype=bool)
        for check in there:
            if isinstance(check, DependenceCheck) and len(check.moved):
                does_as_others |= check.repeats_moved(rows)
        return np.union1d(places[is_repeat], np.flatnonzero(is_usual & does_as_others))

    def scores(self, surprises: NDArray[Any]) -> Floats:
        """Compute −log p of rows: how many held-out normal rows are as odd in any check."""
        return self.scale.scores(surprises.max(axis=1).astype(np.float64))

    def weigh(self, scores: Floats, of_views: float = 0.0) -> None:
        """Set the weight by the scores of a batch: more odd rows than chance would give raise it.

        Checks have nearly as much weight as all views of the detector together: a cell that no
        known-normal row has is not outvoted by views that see nothing.
        """
        if self.is_scored:
            of_excess = excess_weight(excess(scores, len(self.scale.ascending)))
            self.weight = max(_WEIGHT, _OF_VIEWS * of_views) + of_excess

    @property
    def blamed(self) -> list[str]:
        """The column that each check is about, the first of its columns; "" for whole rows."""
        return [*(next(iter(each.columns), "") for each in self.checks), *self.fitting.numbers]

    def columns_of(self, check: int) -> tuple[str, ...]:
        """Return the columns that a check looks at; the first one is to blame."""
        owners, of_fitting = self.owners, self.fitting.numbers[check - len(self.checks) :][:1]
        names = of_fitting if self.is_fitting(check) else self.checks[check].columns
        return tuple(dict.fromkeys(owners.get(name, name) for name in names))

    def blame(self, rows: Columns) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return of each column how odd numbers are without it; see `FittingChecks.blame`."""
        return self.fitting.blame(rows, self.owners, self.right_numbers(rows))

    def is_fitting(self, check: int) -> bool:
        """Whether a check compares a number with the other columns."""
        return check >= len(self.checks)

    def is_rule(self, check: int) -> bool:
        """Whether a check computes a number from others."""
        return not self.is_fitting(check) and isinstance(self.checks[check], ArithmeticCheck)

    def kind_of(self, check: int) -> str:
        """Return what a check looks for in a word or two: "level", "time of day", "misfit"."""
        if self.is_fitting(check):
            return "misfit"
        name = type(self.checks[check]).__name__.removesuffix("Check")
        return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()

    def describe(self, rows: Columns, places: Ints, check: int, show: Shower) -> list[Said]:
        """Return in words what a check finds odd about some of the rows."""
        some = take_rows(rows, places)
        if check < len(self.checks):
            return self.checks[check].describe(some, show)
        return self.fitting.describe(some, check - len(self.checks), show)

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
        self, rows: Columns, places: Ints, check: int, category: str, show: Shower
    ) -> list[Said]:
        """Return in words that a category does not fit the number that a check is about."""
        some, column = take_rows(rows, places), check - len(self.checks)
        return self.fitting.describe_contradiction(some, column, category, show)

    def of_checks(self, rows: Columns, *, own: bool = False, is_drawn: bool = True) -> Floats:
        """Compute how odd rows are in each check, but for those of fitting numbers.

        Own rows, which are known-normal, may not be among those that relations were learned from.
        """
        nothing = np.zeros(len(rows[COPIES].values))
        # A column that a table lacks is odd in no row.
        return np.array(
            [
                check.surprise(rows, own=own and (is_drawn or at < self.n_of_all))
                if rows.keys() >= set(check.needs)
                else nothing
                for at, check in enumerate(self.checks)
            ]
        ).T

    def of_fitting(self, rows: Columns) -> Floats:
        """Compute how odd numbers are next to the other columns."""
        return np.where(self.right_numbers(rows), 0.0, self.fitting.surprises(rows))

    def right_numbers(self, rows: Columns) -> Bools:
        """Return which numbers fit the others as a rule that they keep, such as a sum, says."""
        found = np.zeros((len(rows[COPIES].values), len(self.fitting.numbers)), dtype=bool)
        for check in self.checks:
            if isinstance(check, ArithmeticCheck) and rows.keys() >= set(check.needs):
                found[:, self.fitting.within(check.columns)] |= check.is_kept(rows)[:, np.newaxis]
        return found


def _cells_to_try(name: str, plan: ColumnPlan) -> Cells:
    """Return a missing cell, a usual one, and the least and largest there are."""
    if plan.kind in ("category", "identifier", "text"):
        return Cells(name, "text", np.array([-1, 0, 0, 0]), ("(new)",))
    if plan.kind == "date":
        return Cells(name, "date", np.array([np.nan, 0.0, -_LARGEST_DATE, _LARGEST_DATE]))
    return Cells(name, "number", np.array([np.nan, 0.0, -1e300, 1e300]))
