"""All checks of a table, and the scores that they give."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.chunks import draw_rows
from qms22.checks.arithmetic import ArithmeticCheck, learn_arithmetic
from qms22.checks.cases import (
    LEAST_STAFF,
    repeated_cases,
    staying_levels,
    staying_rises,
    staying_values,
)
from qms22.checks.check import Check, Shower, listed
from qms22.checks.codings import Coding
from qms22.checks.copies import (
    COPIES,
    CopyCheck,
    KeyCheck,
    count_copies,
    count_keys,
    row_hashes,
)
from qms22.checks.dates import (
    AbsurdDateCheck,
    IntervalCheck,
    TimeOfDayCheck,
    WeekdayCheck,
)
from qms22.checks.dependence import learn_dependences
from qms22.checks.fitting import FittingChecks
from qms22.checks.groups import learn_groups
from qms22.checks.missing import MissingTogetherCheck
from qms22.checks.order import learn_orders
from qms22.checks.parts import TextParts
from qms22.checks.sequences import (
    MOST_ROWS,
    RepetitionCheck,
    Sequences,
    learn_sequences,
    time_distance,
    time_order,
)
from qms22.checks.series import Series, find_series, learn_series
from qms22.checks.single import (
    LEAST_ENTITIES,
    LevelCheck,
    PresenceCheck,
    ValueCheck,
    count_new,
)
from qms22.checks.surprise import OddnessScale
from qms22.checks.texts import MisspellingCheck, TextCheck
from qms22.estimators.weights import excess, excess_weight
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns, count_rows, take_rows
from qms22.tables.columns.date_parts import DAY
from qms22.tables.columns.plan import ColumnPlan

# Known-normal rows that relations are learned from, and that others are compared with.
_MOST_LEARNED = 7000

# Dates whose intervals are looked at; more have too many pairs.
_MOST_DATES = 5

# Columns with more levels than this share of the rows have no groups.
_MOST_GROUPS = 1 / 3

# A check says nothing about single rows of a batch if more of them than this share are odder than
# 99 % of the normal rows: that is what the whole batch does.
_MOST_ODD = 0.2
_USUAL = 0.99
_LEAST_MOVED = 20

# Whole numbers with at most so many values are levels as well.
_MOST_VALUES = 50

# The least weight of the checks, next to the views of a detector; an excess of odd rows adds to it.
_WEIGHT = 1.0
_OF_VIEWS = 0.75

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
    checks : TableChecks
        As they were before a batch was compared without what all of it does.
    """

    places: NDArray[np.intp]
    oddness: NDArray[np.float64]
    checks: TableChecks


class TableChecks:
    """Checks of the cells and rows of a table, learned from known-normal rows.

    Parameters
    ----------
    encoder : TabularEncoder
        Says what columns are, and which are left out.
    by, time : str, optional
        The columns that say which rows belong together, and in what order.

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

    # Levels and numbers that are new and stay in a later batch; none in models of earlier versions.
    _new_levels: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    _new_values: Mapping[str, NDArray[np.float64]] = MappingProxyType({})

    def __init__(
        self, encoder: TabularEncoder, by: str | None = None, time: str | None = None
    ) -> None:
        self._by, self._time = by, time
        self.names = tuple(
            column.name
            for column in encoder.columns_
            if column.outputs
            or (column.kind == "constant" and column.name not in encoder.ignored_)
            # A date that only says when a row was made may still be of another age.
            or (column.kind == "date" and column.name not in encoder.ignore)
        )
        outputs = set(encoder.get_feature_names_out())
        self._left_out = tuple(column.name for column in encoder.columns_ if not column.outputs)
        self._dates = tuple(name for name in self.names if f"{name} (days)" in outputs)
        # Texts that the encoder cannot use are read nevertheless.
        self._texts = tuple(
            column.name
            for column in encoder.columns_
            if column.kind in ("identifier", "text") and column.name not in encoder.ignored_
        )
        self._keys = tuple(
            column.name
            for column in encoder.columns_
            if column.kind == "identifier" and column.name not in encoder.ignored_
        )
        self._compared = tuple(
            column.name
            for column in encoder.columns_
            if column.name in self.names or (column.kind == "text" and column.name in self._texts)
        )
        self._sequences: Sequences | None = None
        self._entities: tuple[str, ...] = ()
        self._is_later = False
        self._series: tuple[Series, ...] = ()
        self._parts: tuple[TextParts, ...] = ()
        self._n_of_all = 0
        self.checks: list[Check] = []
        self.fitting = FittingChecks((), ())
        self.scale = OddnessScale.of(np.zeros(1))
        self.is_scored = True
        self.weight = 0.0
        self.threshold = np.inf

    @property
    def notes(self) -> tuple[str, ...]:
        """What no check finds odd, as it is in all of a later batch, a sentence per column."""
        return tuple(
            f"{name!r} has {listed([repr(level) for level in levels])} all along, which no normal "
            "row has; in a later batch that is not odd"
            for name, levels in self._new_levels.items()
            if levels
        )

    @property
    def read_names(self) -> tuple[str, ...]:
        """The columns that are read: those that are checked, and texts."""
        return (*self.names, *self._texts)

    def read(self, cells: Columns, *, is_part: bool = False) -> Columns:
        """Return the columns that are checked, and how often each row is there.

        Parameters
        ----------
        cells : mapping of str to Cells
            As the encoder understands them. Columns may be lacking.
        is_part : bool
            Whether these are rows picked from a table: how often they are there says nothing.
        """
        rows = {name: cells[name] for name in self.read_names if name in cells}
        rows = {
            name: column
            for name, column in rows.items()
            if column.form != "other" and (column.is_text or name not in self._texts)
        }
        read = {**rows, **count_copies(rows, self._compared, is_part=is_part)}
        keys = {name: cells[name] for name in self._keys if name in cells}
        read |= keys | count_keys(keys, list(keys), is_part=is_part)
        for parts in self._parts:
            read |= parts.columns(rows[parts.column]) if parts.column in rows else {}
        if self._sequences is not None and not is_part:
            read |= self._sequences.columns(read)
            for series in self._series:
                if read.keys() >= {series.number, series.entity, series.date}:
                    read[series.key] = series.column(read, self._sequences)
        return read

    def comparable(self, cells: Cells) -> Cells:
        """Return a column without what only says when rows were made: the day of a date."""
        if cells.form != "date" or cells.name in self._dates:
            return cells
        return replace(cells, values=cells.values % DAY)

    def learn(
        self, normal: Columns, batch: Columns, seed: int, *, is_part: bool = False
    ) -> tuple[Columns, OwnOddness]:
        """Learn from known-normal rows; return them as read, and how odd up to 7,000 of them are.

        Parameters
        ----------
        normal, batch : Columns
            Rows as the encoder understands them. Checks in which many rows of the batch are odd are
            left out.
        seed : int
            Of the rows that are drawn.
        is_part : bool
            As in `read`.
        """
        texts = (normal[name] for name in self.read_names if normal[name].is_text)
        self._parts = tuple(filter(None, map(TextParts.learn, texts)))
        rows = dict(self.read(normal, is_part=is_part))
        cells = {
            name: column
            for name, column in rows.items()
            if name in normal and (column.is_text or name not in self._texts)
        }
        self.names = tuple(name for name in cells if name not in self._texts)
        self._texts = tuple(name for name in self._texts if name in cells)
        self._compared = tuple(name for name in self._compared if name in cells)
        texts = (column for column in cells.values() if column.is_text)
        self._entities = tuple(column.name for column in texts if _are_entities(column))
        self._keys = tuple(name for name in self._keys if name in normal)
        if not is_part and count_rows(cells) <= MOST_ROWS:
            self._sequences = Sequences.learn(cells, self._by, self._time)
            self._series = find_series(cells, self._sequences)
            rows = dict(self.read(normal))
            rows |= self._sequences.columns(rows, are_normal=True)
            self.checks += learn_sequences(rows, self._sequences)
            self.checks += learn_series(rows, self._series)
        self._is_later = is_later = time_distance(normal, batch) > 1.0
        levels = self._learn_cells(cells, is_later=is_later)
        self.checks += _learn_intervals(cells)
        of_parts = [rows[name] for name in self._owners if name in rows]
        self.checks += filter(None, map(ValueCheck.learn, of_parts))
        filled = [name for name in self.names if cells[name].has_value.any()]
        self.checks.append(MissingTogetherCheck.learn(cells, filled or self.names))
        # Nobody knows how usual copies are among normal rows that are not all there.
        copies = None if is_part else CopyCheck.learn(rows, self._compared)
        keys = () if is_part else (KeyCheck.learn(rows, name) for name in self._keys)
        self.checks += filter(None, [copies, *keys])
        self._n_of_all = len(self.checks)
        rng = np.random.RandomState(seed)
        # In an order that depends on values alone, not on the order in which rows are given.
        drawn = row_hashes(rows, [*cells, COPIES]).argsort(kind="stable")
        if len(drawn) > _MOST_LEARNED:
            drawn = drawn[np.sort(rng.permutation(len(drawn))[:_MOST_LEARNED])]
        some = take_rows(rows, drawn)
        named = (*self.names, *(cells.name for cells in of_parts))
        numbers = [name for name in named if _has_numbers(some[name])]
        # What changes from row to row of an entity has no usual level at another time.
        moving = self._counters | {each.number for each in self._series if is_later}
        self.checks += self._learn_related(some, numbers, moving, rng.randint(2**31 - 1))
        dates = [name for name in self.names if some[name].form == "date"][:_MOST_DATES]
        self.fitting = FittingChecks(
            numbers,
            [level for level in levels if level.coding.levels],
            list(combinations(dates, 2)),
        )
        of_numbers = self.fitting.learn(some, self._counters, rng.randint(2**31 - 1))
        self._trust_rules(some, of_numbers)
        own = np.hstack([self._of_checks(some, own=True), of_numbers])
        for_normal = copy(self)
        for_normal.fitting = copy(self.fitting)
        is_moved = self._align(own, self.read(batch, is_part=is_part), rng)
        for checks in (self, for_normal):
            checks._leave_out(is_moved)
        own[:, is_moved] = 0.0
        oddness: NDArray[np.float64] = own.max(axis=1).round(_DECIMALS)
        self.scale = for_normal.scale = OddnessScale.of(oddness)
        ascending = drawn.argsort()
        return rows, OwnOddness(drawn[ascending], oddness[ascending], for_normal)

    @property
    def _owners(self) -> dict[str, str]:
        """The columns of texts that numbers are parts of."""
        return {name: parts.column for parts in self._parts for name in parts.names}

    @property
    def _counters(self) -> frozenset[str]:
        """Columns that rise from row to row: what they are says when a row was made."""
        counters = () if self._sequences is None else self._sequences.counters
        return frozenset(name for _, name in counters)

    def _learn_cells(self, cells: Columns, *, is_later: bool) -> list[LevelCheck]:
        """Learn the checks of single columns; return those of categories.

        In a batch of another time there are new customers, whose names were not seen before.
        """
        levels, order = [], time_order(cells)
        for column in cells.values():
            if column.name not in self._texts:
                level = self._learn_single(column, order)
                if level is not None and len(level.reference.counts) > 2:
                    levels.append(level)
            if column.is_text:
                has_new = is_later and _are_entities(column)
                by_text = has_new or count_new(column.values[order]) > 0
                self.checks += TextCheck.learn(column, by_text=by_text)
                found = (
                    MisspellingCheck.learn(column, by_text=by_text),
                    MisspellingCheck.of_words(column),
                )
                self.checks += filter(None, found)
        return levels

    def _learn_related(
        self, rows: Columns, numbers: Sequence[str], moving: Collection[str], seed: int
    ) -> list[Check]:
        """Learn the checks of cells that belong together; groups have no usual `moving` number."""
        n_rows = len(rows[COPIES].values)
        by_level = []
        for name in self.read_names:
            cells = rows[name]
            if cells.is_text or (cells.form in ("number", "boolean") and _has_few_values(cells)):
                coding = Coding.of_levels(cells)
                is_asked = name == self._by
                if coding.n_codes > _MOST_GROUPS * n_rows + 1 and cells.is_text and not is_asked:
                    coding = Coding.of_begins(cells)
                if coding.n_codes > 2 and (coding.n_codes <= _MOST_GROUPS * n_rows + 1 or is_asked):
                    by_level.append(coding)
        coded = {coding.name for coding in by_level if coding.how == "level"}
        presence = [Coding(name, "presence") for name in self.read_names if name not in coded]
        of_values = [Coding.of_range(rows[name]) for name in numbers]
        dates = [rows[name] for name in self.names if rows[name].form == "date"]
        hours = [Coding(cells.name, "hour") for cells in dates]
        between = [Coding.of_interval(*pair) for pair in combinations(dates[:_MOST_DATES], 2)]
        return [
            *learn_groups(
                rows,
                [each for each in numbers if each not in moving],
                by_level,
                self._by,
            ),
            *learn_dependences(
                rows, [*by_level, *presence], [*by_level, *presence, *of_values, *hours, *between]
            ),
            *learn_orders(rows, numbers, seed),
            *learn_arithmetic(
                rows,
                [name for name in self.names if rows[name].form == "number"],
                [name for name in self.names if rows[name].is_text],
            ),
        ]

    def _align(
        self, own: NDArray[np.float64], batch: Columns, rng: np.random.RandomState
    ) -> NDArray[np.bool_]:
        """Compare the batch without what all of it does; return which checks are no use then."""
        places = draw_rows(len(batch[COPIES].values), _ROWS_AT_ONCE, rng)
        some = take_rows(batch, places)
        some = take_rows(some, time_order(some))
        self.checks = [
            check.aligned(some) if some.keys() >= set(check.needs) else check
            for check in self.checks
        ]
        self.fitting.align(some)
        new_levels: dict[str, tuple[str, ...]] = {}
        new_values: dict[str, NDArray[np.float64]] = {}
        for check in self.checks if self._is_later else ():
            if not isinstance(check, LevelCheck | ValueCheck) or check.columns[0] not in some:
                continue
            name = check.columns[0]
            if isinstance(check, LevelCheck) and some[name].is_text:
                if LEAST_STAFF <= len(check.coding.levels) < LEAST_ENTITIES:
                    new_levels[name] = staying_levels(check.coding.levels, some[name])
            elif some[name].form == "number":
                values = some[name].values
                if isinstance(check, LevelCheck):
                    found = staying_values(check.coding.values, values)
                else:
                    ascending = check.reference.ascending
                    found = staying_rises(float(ascending[0]), float(ascending[-1]), values)
                new_values[name] = np.union1d(new_values.get(name, []), found)
        self._new_levels, self._new_values = new_levels, new_values
        is_odd = self.surprises(some) > np.quantile(own, _USUAL, axis=0)
        # Copies of a row are one case: a row that is there again and again is not the batch.
        n_odd = np.sum(is_odd / some[COPIES].values[:, np.newaxis], axis=0)
        is_moved: NDArray[np.bool_] = n_odd >= max(_LEAST_MOVED, _MOST_ODD * len(places))
        return is_moved

    def _leave_out(self, out: NDArray[np.bool_]) -> None:
        """Leave out some of the checks."""
        n_checks = len(self.checks)
        self._n_of_all -= int(np.count_nonzero(out[: self._n_of_all]))
        self.checks = [self.checks[at] for at in np.flatnonzero(~out[:n_checks]).tolist()]
        self.fitting.leave_out(np.flatnonzero(out[n_checks:]).tolist())

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
        scores[is_held_out] = self.scale.scores(own.oddness[at[is_held_out]])
        others = np.flatnonzero(~is_held_out)
        for first in range(0, len(others), _ROWS_AT_ONCE):
            part = others[first : first + _ROWS_AT_ONCE]
            rows = {name: cells.take(places[part]) for name, cells in normal.items()}
            plain = own.checks
            of_checks = plain._of_checks(rows, own=True, is_drawn=False)
            found = np.hstack([of_checks, plain._of_fitting(rows)])
            scores[part] = self.scores(found.round(_DECIMALS))
        return scores

    def surprises(self, rows: Columns) -> NDArray[np.float64]:
        """Compute how odd rows are in each check, (n_rows, n_checks)."""
        if not self.checks:
            return np.zeros((len(rows[COPIES].values), 1))
        of_numbers = self._of_fitting(rows)
        for name in self._new_levels.keys() & rows.keys():
            # Nobody knows what numbers go with a new doctor.
            of_numbers[self._are_staying(rows[name])] = 0.0
        for at, name in enumerate(self.fitting.numbers):
            if name in self._new_values and name in rows:  # such as a new rate
                of_numbers[self._are_staying(rows[name]), at] = 0.0
        found = np.hstack([self._of_checks(rows), of_numbers])
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

    def repeats(self, rows: Columns, odd: OddCells) -> NDArray[np.intp]:
        """Return which odd rows of a later batch are of a case that another one stands for.

        Rows of one time are drawn like the known-normal ones, among which there are cases, too.
        """
        if not self._is_later:
            return np.empty(0, dtype=np.intp)
        checks, surprises = odd.checks[:, 0], odd.surprises[:, 0]
        places = np.flatnonzero(surprises > np.quantile(self.scale.ascending, _USUAL))
        places = places[np.argsort(-surprises[places], kind="stable")]
        some = take_rows(rows, places)
        is_repeat = np.zeros(len(places), dtype=bool)
        for number in np.unique(checks[places]).tolist():
            at = np.flatnonzero(checks[places] == number)
            check = self.checks[number] if number < len(self.checks) else None
            most = check.most if isinstance(check, RepetitionCheck) else None
            own = {name: cells.take(at) for name, cells in some.items()}
            names = [name for name in self.columns_of(number) if name in own]
            is_repeat[at] = repeated_cases(own, names, self._entities, most)
        return places[is_repeat]

    def scores(self, surprises: NDArray[Any]) -> NDArray[np.float64]:
        """Compute −log p of rows: how many held-out normal rows are as odd in any check."""
        return self.scale.scores(surprises.max(axis=1).astype(np.float64))

    def weigh(self, scores: NDArray[np.float64], of_views: float = 0.0) -> None:
        """Set the weight: it is higher if a batch has more odd rows than chance would give.

        Parameters
        ----------
        scores : ndarray
            Of the batch, by the checks alone.
        of_views : float
            The weight of all views of the detector together. Checks have nearly as much: a
            cell that no known-normal row has is not outvoted by views that see nothing.
        """
        if self.is_scored:
            of_excess = excess_weight(excess(scores, len(self.scale.ascending)))
            self.weight = max(_WEIGHT, _OF_VIEWS * of_views) + of_excess

    def columns_of(self, check: int) -> tuple[str, ...]:
        """Return the columns that a check looks at; the first one is to blame."""
        if check < len(self.checks):
            columns = self.checks[check].columns
        else:
            columns = (self.fitting.numbers[check - len(self.checks)],)
        owners = self._owners
        return tuple(dict.fromkeys(owners.get(name, name) for name in columns))

    def blame(
        self, rows: Columns
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Ask of each column how odd all numbers are without it; see `FittingChecks.blame`."""
        return self.fitting.blame(rows, self._owners)

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

    def describe(
        self, rows: Columns, places: NDArray[np.intp], check: int, show: Shower
    ) -> list[str]:
        """Say in words what a check finds odd about some of the rows."""
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
        self, rows: Columns, places: NDArray[np.intp], check: int, category: str, show: Shower
    ) -> list[str]:
        """Say in words that a category does not fit the number that a check is about."""
        some, column = take_rows(rows, places), check - len(self.checks)
        return self.fitting.describe_contradiction(some, column, category, show)

    def _of_checks(
        self, rows: Columns, *, own: bool = False, is_drawn: bool = True
    ) -> NDArray[np.float64]:
        """Compute how odd rows are in each check, but for those of fitting numbers.

        Parameters
        ----------
        rows : Columns
        own : bool
            Whether they are known-normal rows.
        is_drawn : bool
            Whether own rows are among those that relations were learned from.
        """
        nothing = np.zeros(len(rows[COPIES].values))
        # A column that a table lacks is odd in no row.
        found = np.array(
            [
                check.surprise(rows, own=own and (is_drawn or at < self._n_of_all))
                if rows.keys() >= set(check.needs)
                else nothing
                for at, check in enumerate(self.checks)
            ]
        ).T
        for at, check in enumerate(self.checks if not own else ()):
            if isinstance(check, LevelCheck | TextCheck | ValueCheck) and check.columns[0] in rows:
                found[self._are_staying(rows[check.columns[0]]), at] = 0.0
        return found

    def _are_staying(self, cells: Cells) -> NDArray[np.bool_]:
        """Return which cells have a level or number that is new and stays in a later batch."""
        if cells.is_text:
            return cells.is_among(self._new_levels.get(cells.name, ()))
        return np.isin(cells.values, self._new_values.get(cells.name, ()))

    def _of_fitting(self, rows: Columns) -> NDArray[np.float64]:
        """Compute how odd numbers are next to the other columns."""
        return self._trust_rules(rows, self.fitting.surprises(rows))

    def _trust_rules(self, rows: Columns, surprises: NDArray[np.float64]) -> NDArray[np.float64]:
        """Let numbers that keep a rule fit the others of the rule, in place."""
        for check in self.checks:
            if isinstance(check, ArithmeticCheck) and rows.keys() >= set(check.needs):
                is_kept = check.is_kept(rows)
                for number in self.fitting.within(check.columns):
                    surprises[is_kept, number] = 0.0
        return surprises

    def _learn_single(self, cells: Cells, order: NDArray[np.intp]) -> LevelCheck | None:
        """Learn the checks of one column; return that of levels, if there is one."""
        found: list[Check | None] = []
        level = None
        if cells.form == "date":
            if cells.name in self._dates:
                found.append(ValueCheck.learn(cells))
            else:
                found.append(AbsurdDateCheck.learn(cells))
            if cells.name not in self._left_out:
                found += [TimeOfDayCheck.learn(cells), WeekdayCheck.learn(cells)]
        else:
            level = LevelCheck.learn(cells, order)
            found.append(level)
            is_number = cells.form == "number" and cells.name not in self._counters
            if is_number and not _is_constant(level):
                found.append(ValueCheck.learn(cells))
        if not cells.is_text or not cells.has_value.any():
            found.append(PresenceCheck.learn(cells))
        self.checks += [check for check in found if check is not None]
        return level


def _cells_to_try(name: str, plan: ColumnPlan) -> Cells:
    """Return a missing cell, a usual one, and the least and largest there are."""
    if plan.kind in ("categorical", "identifier", "text"):
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


def _are_entities(cells: Cells) -> bool:
    """Whether texts are of many entities with several rows each."""
    return LEAST_ENTITIES <= len(cells.levels) <= _MOST_GROUPS * len(cells.values)


def _has_few_values(cells: Cells) -> bool:
    """Whether the values of a column recur, as those of a code do."""
    present = cells.values[~np.isnan(cells.values)]
    values = np.unique(present)
    return bool(len(values) <= _MOST_VALUES and (values == np.rint(values)).all())
