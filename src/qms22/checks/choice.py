"""Which checks a table has: all are learned here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from qms22._runtime.chunks import draw_rows
from qms22.checks.arithmetic import learn_arithmetic
from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.cases import Staying
from qms22.checks.check import Check
from qms22.checks.codings import Coding, TextParts
from qms22.checks.copies import COPIES, CopyCheck, KeyCheck, row_hashes
from qms22.checks.counting import find_places
from qms22.checks.dates import AbsurdDateCheck, IntervalCheck, TimeOfDayCheck, WeekdayCheck
from qms22.checks.dependence import MissingTogetherCheck, learn_dependences, learn_orders
from qms22.checks.groups import learn_groups
from qms22.checks.sequences.in_order import derive
from qms22.checks.sequences.in_time import find_sequences, is_of_another_time, time_order
from qms22.checks.sequences.limits import learn_product_limits
from qms22.checks.sequences.series import Series
from qms22.checks.single import LEAST_ENTITIES, LevelCheck, PresenceCheck, ValueCheck, count_new
from qms22.checks.surprise import OddnessScale
from qms22.checks.table_checks import DECIMALS, ROWS_AT_ONCE, USUAL, Roles, TableChecks
from qms22.checks.texts import MisspellingCheck, TextCheck
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns, count_rows, take_rows
from qms22.tables.columns.date_parts import has_days

# Known-normal rows that relations are learned from, and that others are compared with.
_MOST_LEARNED = 7000
# Rows of a batch that checks are aligned with.
_MOST_ALIGNED = 4096
# A check says nothing about single rows of a batch if more of them than this share are odder than
# 99 % of the normal rows: that is what the whole batch does.
_MOST_ODD = 0.2
_LEAST_MOVED = 20
# Nor does one that finds a normal row in a hundred so odd: it says one in 3,000.
_MOST_USUAL = 8.0
# Dates whose intervals are looked at; more have too many pairs.
_MOST_DATES = 5
# Columns with more levels than this share of the rows have no groups.
_MOST_GROUPS = 1 / 3
# Whole numbers with at most so many values are levels as well.
_MOST_VALUES = 50


class LearnedChecks(NamedTuple):
    """Checks, and how odd the known-normal rows are that they have learned from."""

    checks: TableChecks
    plain: TableChecks  # as they were before a batch was compared without what all of it does
    normal: Columns  # the known-normal rows, as they are read
    places: Ints  # of those that relations were learned from, ascending
    oddness: Floats  # their largest surprise, each compared with the others

    def score(self, places: Ints) -> Floats:
        """Compute −log p of known-normal rows as if the checks had not learned from them."""
        at = find_places(self.places, places)
        is_held_out = at < len(self.places)
        scores = np.empty(len(places))
        scores[is_held_out] = self.checks.scale.scores(self.oddness[at[is_held_out]])
        others = np.flatnonzero(~is_held_out)
        for first in range(0, len(others), ROWS_AT_ONCE):
            part = others[first : first + ROWS_AT_ONCE]
            rows = take_rows(self.normal, places[part])
            of_checks = self.plain.of_checks(rows, own=True, is_drawn=False)
            of_both = of_checks, self.plain.of_fitting(rows)
            oddness = np.maximum(*(found.max(axis=1, initial=0.0) for found in of_both))
            scores[part] = self.checks.scale.scores(oddness.round(DECIMALS))
        return scores


def learn_checks(
    encoder: TabularEncoder,
    normal: Columns,
    batch: Columns,
    seed: int,
    *,
    by: str | None = None,
    time: str | None = None,
    is_scored: bool = True,
    is_part: bool = False,
) -> LearnedChecks:
    """Learn the checks of a table from known-normal rows; relations from up to 7,000 of them.

    Rows are as the encoder understands them. Checks in which many rows of the batch are odd are
    left out. The columns `by` and `time` say which rows belong together, and in what order. If
    `is_scored`, the checks raise scores; else they only give reasons. If `is_part`, rows of the
    batch will be read in parts; see `TableChecks.read`.
    """
    checks = TableChecks(encoder)
    checks.is_scored = is_scored
    checks.is_later = is_of_another_time(normal, batch)
    rows = _learn_from_all(checks, normal, by, time, is_part=is_part)
    rng = np.random.RandomState(seed)
    # In an order that depends on values alone, not on the order in which rows are given.
    drawn = row_hashes(rows, [*checks.roles.read, COPIES]).argsort(kind="stable")
    if len(drawn) > _MOST_LEARNED:
        drawn = drawn[np.sort(rng.permutation(len(drawn))[:_MOST_LEARNED])]
    own = _learn_from_drawn(checks, take_rows(rows, drawn), by, rng)
    plain = copy(checks)
    plain.fitting = copy(checks.fitting)
    is_moved = _align(checks, own, checks.read(batch, is_part=is_part), rng)
    for each in (checks, plain):
        _leave_out(each, is_moved)
    own[:, is_moved] = 0.0
    oddness: Floats = own.max(axis=1).round(DECIMALS)
    checks.scale = plain.scale = OddnessScale.of(oddness)
    ascending = drawn.argsort()
    return LearnedChecks(checks, plain, rows, drawn[ascending], oddness[ascending])


def _learn_from_all(
    checks: TableChecks, normal: Columns, by: str | None, time: str | None, *, is_part: bool
) -> Columns:
    """Learn what takes little time from all known-normal rows; return them as they are read."""
    if by is not None and by not in checks.roles.read:
        # Left out as it says when a row was made: which rows belong together can still be seen.
        checks.roles = replace(checks.roles, texts=(*checks.roles.texts, by))
    texts = (normal[name] for name in checks.roles.read if normal[name].is_text)
    checks.parts = tuple(filter(None, map(TextParts.learn, texts)))
    rows = dict(checks.read(normal, is_part=is_part))
    checks.roles = checks.roles.among(rows)
    cells = {name: rows[name] for name in checks.roles.read}
    checks.entities = tuple(
        name for name, column in cells.items() if column.is_text and are_entities(column)
    )
    found: list[Check | None] = []
    if not is_part:
        checks.derived = find_sequences(cells, by, time)
        rows |= derive(checks.derived, rows, are_normal=True)
        found += [each.learn(rows) for each in checks.derived]
    found += learn_cells(checks, rows)
    if not is_part:
        # Nobody knows how usual copies are among normal rows that are not all there.
        found += [CopyCheck.learn(rows, checks.roles.compared)]
        found += [KeyCheck.learn(rows, name) for name in checks.roles.keys]
    checks.checks += filter(None, found)
    checks.n_of_all = len(checks.checks)
    return rows


def _learn_from_drawn(
    checks: TableChecks, rows: Columns, by: str | None, rng: np.random.RandomState
) -> Floats:
    """Learn relations of cells; return how odd the rows are in each check, next to the others."""
    names = (*checks.roles.names, *checks.owners)
    numbers = [name for name in names if name in rows and has_numbers(rows[name])]
    # What changes from row to row of an entity has no usual level at another time.
    series = {each.name for each in checks.derived if isinstance(each, Series)}
    moving = checks.counters | series if checks.is_later else checks.counters
    largest = 2**31 - 1
    checks.checks += learn_related(checks, rows, numbers, moving, by, rng.randint(largest))
    categories = [
        check
        for check in checks.checks
        if isinstance(check, LevelCheck) and check.coding.levels and len(check.reference.counts) > 2
    ]
    dates, seed = date_pairs(rows, checks.roles), rng.randint(largest)
    of_numbers = checks.fitting.learn(rows, numbers, categories, dates, checks.counters, seed)
    of_numbers[checks.right_numbers(rows)] = 0.0
    return np.hstack([checks.of_checks(rows, own=True), of_numbers])


def _align(checks: TableChecks, own: Floats, batch: Columns, rng: np.random.RandomState) -> Bools:
    """Compare the batch without what all of it does; return which checks are no use then."""
    places = draw_rows(len(batch[COPIES].values), _MOST_ALIGNED, rng)
    some = take_rows(batch, places)
    some = take_rows(some, time_order(some))
    checks.checks = [
        check.aligned(some) if some.keys() >= set(check.needs) else check for check in checks.checks
    ]
    checks.fitting.align(some)
    checks.staying = Staying.learn(checks.checks if checks.is_later else (), some)
    most = np.quantile(own, USUAL, axis=0)
    is_odd = checks.surprises(some) > most
    if checks.is_later:
        n_numbers = len(checks.fitting.numbers)
        checks.staying = checks.staying.comparing(
            some, is_odd, checks.blamed, n_numbers, checks.series_of
        )
        for name in checks.staying.levels:
            is_odd[checks.staying.among(some[name])] = False
    # Copies of a row are one case: a row that is there again and again is not the batch.
    n_odd = np.sum(is_odd / some[COPIES].values[:, np.newaxis], axis=0)
    is_useless: Bools = n_odd >= max(_LEAST_MOVED, _MOST_ODD * len(places))
    return is_useless | (most > _MOST_USUAL)


def _leave_out(checks: TableChecks, out: Bools) -> None:
    """Leave out some of the checks."""
    n_checks = len(checks.checks)
    checks.n_of_all -= int(np.count_nonzero(out[: checks.n_of_all]))
    checks.checks = [checks.checks[at] for at in np.flatnonzero(~out[:n_checks]).tolist()]
    checks.fitting.leave_out(np.flatnonzero(out[n_checks:]).tolist())


def learn_cells(checks: TableChecks, rows: Columns) -> Iterator[Check | None]:
    """Learn the checks of single columns of known-normal rows, and of days between two dates."""
    roles, order = checks.roles, time_order(rows)
    for name in roles.read:
        cells, is_checked = rows[name], name not in roles.texts
        if is_checked and cells.form == "date":
            yield ValueCheck.learn(cells) if name in roles.days else AbsurdDateCheck.learn(cells)
            if name in roles.moments:
                yield TimeOfDayCheck.learn(cells)
                yield WeekdayCheck.learn(cells)
        elif is_checked:
            level = LevelCheck.learn(cells, order)
            yield level
            is_constant = level is not None and np.count_nonzero(level.reference.counts) == 1
            if cells.form == "number" and name not in checks.counters and not is_constant:
                yield ValueCheck.learn(cells)
        if is_checked and not (cells.is_text and cells.has_value.any()):
            yield PresenceCheck.learn(cells)
        if cells.is_text:
            # Most texts and identifiers of a later batch are new, and so are customers.
            has_new = checks.is_later and (not is_checked or are_entities(cells))
            by_text = has_new or count_new(cells.values[order]) > 0
            yield from TextCheck.learn(cells, by_text=by_text)
            yield MisspellingCheck.learn(cells, by_text=by_text)
            yield MisspellingCheck.of_words(cells)
    # Intervals do not depend on when the rows were made.
    for earlier, later in date_pairs(rows, roles):
        yield IntervalCheck.learn(rows[earlier], rows[later])
    for name in dict.fromkeys((*roles.keys, *roles.names)):
        yield from TextCheck.of_numbers(rows[name])
    parts = [rows[name] for name in checks.owners if name in rows]
    yield from map(ValueCheck.learn, parts)
    yield from (LevelCheck.learn(cells, order) for cells in parts)
    filled = [name for name in roles.names if rows[name].has_value.any()]
    yield MissingTogetherCheck.learn(rows, filled or roles.names)


def learn_related(
    checks: TableChecks,
    rows: Columns,
    numbers: Sequence[str],
    moving: Collection[str],
    by: str | None,
    seed: int,
) -> list[Check]:
    """Learn the checks of cells of known-normal rows that belong together.

    Numbers that are `moving` have no usual level in a group; `by` is the column of which the user
    says that its rows belong together.
    """
    roles, by_level = checks.roles, []
    most = _MOST_GROUPS * count_rows(rows) + 1
    for name in roles.read:
        cells = rows[name]
        if cells.is_text or (cells.form in ("number", "boolean") and _has_few_values(cells)):
            coding = Coding.of_levels(cells)
            if coding.n_codes > most and cells.is_text and name != by:
                coding = Coding.of_begins(cells)
            if coding.n_codes > 2 and (coding.n_codes <= most or name == by):
                by_level.append(coding)
    coded = {coding.name for coding in by_level if coding.how == "level"}
    targets = [*by_level, *(Coding(name, "presence") for name in roles.read if name not in coded)]
    sources = [
        *targets,
        *(Coding.of_range(rows[name]) for name in numbers),
        *(Coding(name, "hour") for name in roles.names if rows[name].form == "date"),
        *(Coding.of_interval(rows[one], rows[other]) for one, other in date_pairs(rows, roles)),
    ]
    level = [name for name in numbers if name not in moving]
    plain = [name for name in roles.names if rows[name].form == "number"]
    texts = [name for name in roles.names if rows[name].is_text]
    return [
        *learn_groups(rows, level, by_level, by),
        *learn_dependences(rows, targets, sources, checks.entities, is_later=checks.is_later),
        *learn_orders(rows, numbers, seed),
        *learn_product_limits(rows, level, seed),
        *learn_arithmetic(rows, plain, texts),
    ]


def date_pairs(rows: Columns, roles: Roles) -> list[tuple[str, str]]:
    """Return the pairs of dates, or of times of the day, with the time between them looked at."""
    dates = [name for name in roles.names if rows[name].form == "date"]
    pairs = combinations(dates[:_MOST_DATES], 2)
    return [(one, other) for one, other in pairs if has_days(rows[one]) == has_days(rows[other])]


def has_numbers(cells: Cells) -> bool:
    """Whether a column has numbers that others may say something about."""
    return cells.form == "number" and len(np.unique(cells.values[~np.isnan(cells.values)])) > 2


def are_entities(cells: Cells) -> bool:
    """Whether texts are of many entities with several rows each."""
    return LEAST_ENTITIES <= len(cells.levels) <= _MOST_GROUPS * len(cells.values)


def _has_few_values(cells: Cells) -> bool:
    """Whether the values of a column recur, as those of a code do."""
    present = cells.values[~np.isnan(cells.values)]
    values = np.unique(present)
    return bool(len(values) <= _MOST_VALUES and (values == np.rint(values)).all())
